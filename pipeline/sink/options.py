"""The options of a writer: those of Spark's Kafka sink, and `kafka.*` settings for the native producer.

    kafka.bootstrap.servers   required
    topic                     the topic of every row; without it each row's column `topic`
    checkpointLocation        where the producers' identities are stored (sink/identity.py); required for a stream. A
                              batch write with one can be run again, and adds only the missing records
    replaySafe                true; false writes without identities: at least once, as Spark's Kafka sink
    exactlyOnce               sequences (sink/task.py), which a replay in the same order needs; or transactions
                              (sink/transactional_writers.py), which commits any query's rows once
    kafka.transaction.timeout.ms   of transactions: the broker aborts those that are not committed by then. Without it
                              none are aborted, which needs transaction.two.phase.commit.enable on the broker
    protocol                  native; or kafka (sink/kafka), which writes transactions to Apache Kafka. Kafka serves no
                              two-phase commit, so they have a timeout, by default DEFAULT_TIMEOUT_MS

Settings of Kafka's producer without a counterpart here (interceptors, socket buffers) are accepted and ignored, so that
a job moves over by changing its format. Settings that would promise a missing feature (transactions) are
refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from barnabas.clients.config import ProducerConfig
from barnabas.clients.security.settings import SecuritySettings
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.options import Options

KNOWN: Final = ("topic", "checkpointLocation", "replaySafe", "exactlyOnce", "protocol", "includeHeaders", "path")

DEFAULT_TIMEOUT_MS: Final = 900_000
"""Kafka's transaction.max.timeout.ms: of transactions without a checkpoint, which nothing finishes after a crash, and
of those in Apache Kafka.
"""

_LOWEST_KAFKA_TIMEOUT_MS: Final = 1000
"""librdkafka's."""

_WHOLE: Final = {
    "batch.size": "batch_size",
    "buffer.memory": "buffer_memory",
    "max.block.ms": "max_block_ms",
    "max.request.size": "max_request_bytes",
    "delivery.timeout.ms": "delivery_timeout_ms",
    "request.timeout.ms": "request_timeout_ms",
    "retries": "retries",
    "retry.backoff.ms": "retry_backoff_ms",
    "retry.backoff.max.ms": "retry_backoff_max_ms",
    "linger.ms": "linger_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
}
_TEXT: Final = {"compression.type": "compression", "client.id": "client_id"}
_MAX_INT32: Final = (1 << 31) - 1
_ACKS: Final = {"all": -1, "-1": -1, "1": 1, "0": 0}
_REFUSED: Final = {
    "transactional.id": "with exactlyOnce=transactions each attempt of a task takes an id of its own",
    "key.serializer": "keys are written as they are: give bytes or strings",
    "value.serializer": "values are written as they are: give bytes or strings",
}


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Parsed options, pickled to the executors. `checkpoint` is a path or URI; None stores nothing.

    `transaction_timeout_ms` is None without a limit (two-phase commit).
    """

    producer: ProducerConfig
    topic: str | None
    checkpoint: str | None
    transactions: bool = False
    transaction_timeout_ms: int | None = None
    kafka_protocol: bool = False


def sink_options(given: Mapping[str, str], *, streaming: bool) -> SinkOptions:
    """Parse the options of a writer. Raises OptionError, naming the option."""
    options = Options(given)
    options.refuse_unknown(KNOWN)
    options.refuse(("path",), "a topic has no path; name it by the option topic")
    options.boolean("includeHeaders", True)  # accepted and ignored, as in Spark's Kafka sink
    checkpoint = options.text("checkpointLocation")
    transactions = options.choice("exactlyOnce", ("sequences", "transactions"), "sequences") == "transactions"
    if "exactlyOnce" in options and not options.boolean("replaySafe", True):
        raise OptionError("options exactlyOnce and replaySafe=false exclude each other: give one of them")
    if not options.boolean("replaySafe", True):
        checkpoint = None
    elif checkpoint is None and streaming:
        raise OptionError(
            "option checkpointLocation is missing: the sink keeps its state there, so that a replayed micro-batch adds "
            "no record twice; give it on the writer, or replaySafe=false for at least once"
        )
    kafka_protocol = options.choice("protocol", ("native", "kafka"), "native") == "kafka"
    if kafka_protocol and not transactions:
        raise OptionError(
            "option protocol=kafka needs exactlyOnce=transactions: Spark's own Kafka sink writes at least once to "
            "Apache Kafka"
        )
    return SinkOptions(
        _producer_config(options, needs_idempotence=transactions or checkpoint is not None),
        options.text("topic"),
        checkpoint,
        transactions,
        _transaction_timeout_ms(options, checkpoint, kafka_protocol=kafka_protocol) if transactions else None,
        kafka_protocol,
    )


def _transaction_timeout_ms(options: Options, checkpoint: str | None, *, kafka_protocol: bool) -> int | None:
    default = None if checkpoint is not None and not kafka_protocol else DEFAULT_TIMEOUT_MS
    low = _LOWEST_KAFKA_TIMEOUT_MS if kafka_protocol else 1
    return options.integer("kafka.transaction.timeout.ms", default, low=low, high=_MAX_INT32)


def _producer_config(options: Options, *, needs_idempotence: bool) -> ProducerConfig:
    bootstrap = options.required("kafka.bootstrap.servers", "it names the broker as host:port")
    fields: dict[str, Any] = {"bootstrap": bootstrap, "client_id": "barnabas-spark"}
    for name, value in options.kafka().items():
        text = value.strip()
        if name in _WHOLE:
            if not text.isascii() or not text.isdigit():
                raise OptionError(f"option kafka.{name} must be a whole number, not {value!r}")
            fields[_WHOLE[name]] = int(text)
        elif name in _TEXT:
            fields[_TEXT[name]] = text
        elif name == "acks":
            if text not in _ACKS:
                raise OptionError(f"option kafka.acks must be all, -1, 1 or 0, not {value!r}")
            fields["acks"] = _ACKS[text]
        elif name == "enable.idempotence":
            fields["enable_idempotence"] = options.boolean("kafka.enable.idempotence", True)
        elif name in _REFUSED:
            raise OptionError(f"option kafka.{name} cannot be given: {_REFUSED[name]}")
    if needs_idempotence and (fields.get("acks", -1) != -1 or fields.get("enable_idempotence") is False):
        raise OptionError(
            "kafka.acks=all and kafka.enable.idempotence=true are needed to write exactly once; "
            "give replaySafe=false to do without"
        )
    try:
        return ProducerConfig(security=SecuritySettings.from_properties(options.kafka()), **fields)
    except ValueError as error:
        sentence = str(error)
        option = f"option kafka.{sentence}" if sentence.startswith(("security.", "sasl.", "ssl.")) else None
        raise OptionError(option or f"options kafka.*: {sentence}") from error
