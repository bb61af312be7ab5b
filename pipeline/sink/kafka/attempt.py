"""Writes one task attempt's rows by librdkafka, in a transaction that the driver ends.

librdkafka does not report its producer id and epoch, so they are read from the transaction's coordinator while the
transaction is open. No other attempt uses the transactional id, so they are this attempt's.

A producer that is closed aborts its transaction; one that is only released leaves it open. So `close` is never called
on the successful path.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import uvloop
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from barnabas.clients.config import ProducerConfig
from barnabas.pipeline.errors import OptionError, PipelineError, SourceError
from barnabas.pipeline.sink.kafka.settings import librdkafka_settings
from barnabas.pipeline.sink.kafka.transactions import KafkaTransactions
from barnabas.pipeline.sink.rows import SinkRecord
from barnabas.pipeline.sink.run_files import RunFiles
from barnabas.pipeline.sink.transactional_task import Attempt, Prepared, ensure_run_open, timeout_above_limit

_POLL_EVERY: Final = 1000
_POLL_S: Final = 0.1
_ANY_PARTITION: Final = -1


def write_prepared(
    config: ProducerConfig, timeout_ms: int, records: Iterable[SinkRecord], attempt: Attempt, run: RunFiles | None
) -> Prepared:
    """Write the rows and leave their transaction open. On an error it is aborted, as far as the broker can be reached.

    Raises OptionError, PipelineError if the run is decided already or a record was not delivered, ClientError, OSError.
    """
    try:
        producer = Producer(librdkafka_settings(config, attempt.transactional_id, timeout_ms))
    except KafkaException as error:
        raise OptionError(f"options kafka.*: {_reason(error)}") from None
    api_timeout_s = config.api_timeout_ms / 1000
    try:
        producer.init_transactions(api_timeout_s)
        ensure_run_open(run, attempt)
        producer.begin_transaction()
    except KafkaException as error:
        raise _refused(config, error, timeout_ms) from None
    try:
        sent = _send_all(producer, records)
        return uvloop.run(_prepared(config, attempt, sent))
    except BaseException as error:
        _abort(producer, api_timeout_s, error)
        if isinstance(error, KafkaException):
            raise _refused(config, error, timeout_ms) from None
        raise


async def _prepared(config: ProducerConfig, attempt: Attempt, sent: int) -> Prepared:
    async with KafkaTransactions(config) as transactions:
        return Prepared(await transactions.prepared(attempt.transactional_id), transactions.cluster_id, sent)


def _send_all(producer: Producer, records: Iterable[SinkRecord]) -> int:
    """Send all records, wait for their delivery and return their number. Raises PipelineError, KafkaException."""
    deliveries = _Deliveries()
    sent = 0
    for record in records:
        _send(producer, record, deliveries)
        sent += 1
        if not sent % _POLL_EVERY:
            producer.poll(0)
            deliveries.ensure_none_failed()
    while producer.flush(_POLL_S):  # ends by the message timeout
        deliveries.ensure_none_failed()
    deliveries.ensure_none_failed()
    return sent


def _send(producer: Producer, record: SinkRecord, deliveries: _Deliveries) -> None:
    optional: dict[str, Any] = {}
    if record.timestamp_ms is not None:
        if record.timestamp_ms == 0:
            raise PipelineError(
                "a row's timestamp is 1970-01-01 00:00:00 UTC, which librdkafka takes for a missing one: "
                "protocol=kafka cannot write it"
            )
        optional["timestamp"] = record.timestamp_ms
    if record.headers:
        optional["headers"] = record.headers
    partition = _ANY_PARTITION if record.partition is None else record.partition
    while True:
        try:
            producer.produce(
                record.topic, record.value, record.key, partition, on_delivery=deliveries.delivered, **optional
            )
        except BufferError:  # kafka.buffer.memory is full
            producer.poll(_POLL_S)
            deliveries.ensure_none_failed()
        else:
            return


class _Deliveries:
    """The first record that was not delivered."""

    def __init__(self) -> None:
        self._failure: str | None = None

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and self._failure is None:
            self._failure = f"{message.topic()}-{message.partition()}: a record was not delivered: {error.str()}"

    def ensure_none_failed(self) -> None:
        if self._failure is not None:
            raise SourceError(self._failure)


def _abort(producer: Producer, timeout_s: float, reason: BaseException) -> None:
    try:
        producer.abort_transaction(timeout_s)
    except KafkaException as error:  # the driver aborts it, or else its timeout
        reason.add_note(f"the transaction was not aborted: {_reason(error)}")


def _refused(config: ProducerConfig, error: KafkaException, timeout_ms: int) -> PipelineError:
    reason = _reason(error)
    if error.args[0].code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
        return timeout_above_limit(timeout_ms)
    return SourceError(f"{config.bootstrap}: {reason}")


def _reason(error: KafkaException) -> str:
    """Return the error's text, and drop its traceback.

    confluent-kafka 2.16 never releases some errors. With a traceback such an error keeps the producer, which would go
    on to connect to its broker's address, whatever listens there later.
    """
    return str(error.with_traceback(None).args[0].str())
