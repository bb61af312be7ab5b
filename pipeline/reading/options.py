"""The options of reading, as one frozen value. Names, meanings and defaults are those of Spark's Kafka source.

Three additions: a path (`.load(path)`) instead of `kafka.bootstrap.servers` reads segment files; `mode` chooses how
damaged batches are handled; `pushFilters` passes the query's filters to the source.

Of Kafka's consumer options (`kafka.*`), those in _CLIENT_SETTINGS are used; those that Spark's source refuses are
refused; the rest are accepted and ignored, so that a job moves over unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.errors import ClientConfigError
from barnabas.clients.security.settings import SecuritySettings
from barnabas.config.regex import Regex, RegexError, compiled
from barnabas.pipeline.options import KAFKA_PREFIX, OptionError, Options
from barnabas.pipeline.reading.offsets import (
    EARLIEST,
    LATEST,
    Bound,
    BoundKind,
    parse_assignment,
    parse_partition_numbers,
)
from barnabas.protocol.topic_partition import TopicPartition

BOOTSTRAP: Final = "kafka.bootstrap.servers"
SUBSCRIPTIONS: Final = ("assign", "subscribe", "subscribePattern")
STARTING: Final = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
ENDING: Final = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
KNOWN: Final = (
    *("path", "paths", BOOTSTRAP, *SUBSCRIPTIONS, *STARTING, *ENDING),
    *("startingOffsetsByTimestampStrategy", "failOnDataLoss", "includeHeaders", "minPartitions"),
    *("maxRecordsPerPartition", "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"),
    *("mode", "pushFilters", "maxPartitionBytes"),
    *("groupIdPrefix", "kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs"),
)

DEFAULT_MAX_PARTITION_BYTES: Final = 128 << 20
"""The default of spark.sql.files.maxPartitionBytes."""
DEFAULT_TRIGGER_DELAY_MS: Final = 15 * 60_000

MODES: Final = ("strict", "permissive")

_REFUSED_BY_SPARK: Final = (
    "auto.offset.reset",
    "key.deserializer",
    "value.deserializer",
    "enable.auto.commit",
    "interceptor.classes",
)
_CLIENT_SETTINGS: Final = {
    "client.id": "client_id",
    "isolation.level": "isolation",
    "check.crcs": "check_crcs",
    "fetch.max.bytes": "max_bytes",
    "max.partition.fetch.bytes": "max_partition_bytes",
    "fetch.max.wait.ms": "max_wait_ms",
    "request.timeout.ms": "request_timeout_ms",
    "default.api.timeout.ms": "api_timeout_ms",
    "socket.connection.setup.timeout.ms": "connect_timeout_ms",
    "retry.backoff.ms": "retry_backoff_ms",
    "retry.backoff.max.ms": "retry_backoff_max_ms",
}
_FETCH_BYTES: Final = 16 << 20
"""max.partition.fetch.bytes is 1 MiB in Kafka's consumer, which has many partitions; a task here has one."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """What is read: partitions, topics, or a pattern that must match a whole topic name. `option` is its option."""

    option: str
    partitions: frozenset[TopicPartition] = frozenset()
    topics: frozenset[str] = frozenset()
    pattern: str | None = None

    def matches(self, topic: str) -> bool:
        """Return whether the topic's name is part of the subscription."""
        if self.pattern is not None:
            return Regex(self.pattern, java=True).matches(topic)
        return topic in self.topics or any(partition.topic == topic for partition in self.partitions)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """All options of one read, from either `client` (the broker) or `paths` (segment files).

    `subscription` None: every topic below the paths except internal ones.
    """

    client: ConsumerConfig | None
    paths: tuple[str, ...]
    subscription: Subscription | None
    starting: Bound
    ending: Bound
    latest_for_late_timestamps: bool
    fail_on_data_loss: bool
    is_strict: bool
    push_filters: bool
    read_committed: bool
    check_crcs: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    max_partition_bytes: int
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int

    @property
    def place(self) -> str:
        """The broker or paths, for messages."""
        return f"the broker at {self.client.bootstrap}" if self.client is not None else ", ".join(self.paths)


def parse_read_options(given: Mapping[str, str], *, is_streaming: bool) -> ReadOptions:
    """Parse the options of a read. Raises OptionError, naming the option."""
    options = Options(given)
    options.refuse_unknown(KNOWN)
    paths = _paths(options)
    if paths and BOOTSTRAP in options:
        raise OptionError(f"option {BOOTSTRAP} and a path exclude each other: read from the broker or from its files")
    client = None if paths else _client(options)
    kafka = options.kafka()
    subscription = _subscription(options, needed=not paths)
    if is_streaming:
        options.refuse(ENDING, "a stream has no end")
    late = options.choice("startingOffsetsByTimestampStrategy", ("error", "latest"), "error")
    minimum = options.integer("minOffsetsPerTrigger", None, low=1)
    maximum = options.integer("maxOffsetsPerTrigger", None, low=1)
    if minimum is not None and maximum is not None and minimum > maximum:
        raise OptionError(f"option minOffsetsPerTrigger={minimum} must not be above maxOffsetsPerTrigger={maximum}")
    return ReadOptions(
        client=client,
        paths=paths,
        subscription=subscription,
        starting=_starting(options, is_streaming=is_streaming),
        ending=_ending(options),
        latest_for_late_timestamps=late == "latest",
        fail_on_data_loss=options.boolean("failOnDataLoss", True),
        is_strict=options.choice("mode", MODES, "strict") == "strict",
        push_filters=options.boolean("pushFilters", False),
        read_committed=_isolation(kafka) == "read_committed",
        check_crcs=_boolean_text("kafka.check.crcs", kafka.get("check.crcs", "true")),
        min_partitions=options.integer("minPartitions", None, low=1, high=(1 << 31) - 1),
        max_records_per_partition=options.integer("maxRecordsPerPartition", None, low=1),
        max_partition_bytes=_present(options.integer("maxPartitionBytes", DEFAULT_MAX_PARTITION_BYTES, low=1)),
        max_offsets_per_trigger=maximum,
        min_offsets_per_trigger=minimum,
        max_trigger_delay_ms=options.duration_ms("maxTriggerDelay", DEFAULT_TRIGGER_DELAY_MS),
    )


def _present(number: int | None) -> int:
    assert number is not None
    return number


def _paths(options: Options) -> tuple[str, ...]:
    """Spark hands over `.load("a")` as path, `.load(["a", "b"])` as a JSON list in paths."""
    found = []
    path = options.text("path")
    if path is not None:
        found.append(path)
    listed = options.text("paths")
    if listed is not None:
        try:
            several = json.loads(listed)
        except ValueError:
            several = None
        if not isinstance(several, list) or not all(isinstance(each, str) and each for each in several):
            raise OptionError(f"option paths must be a JSON list of paths, not {listed!r}")
        found += several
    return tuple(dict.fromkeys(found))


_SECURITY = ("security.", "sasl.", "ssl.")
"""Beginnings of the names of security properties, and of the sentences about them."""


def _client(options: Options) -> ConsumerConfig:
    bootstrap = options.required(BOOTSTRAP, "name the broker as host:port, or give .load() a path to read files")
    settings: dict[str, Any] = {"client_id": "barnabas-spark", "max_partition_bytes": _FETCH_BYTES}
    for name, value in options.kafka().items():
        if name in _REFUSED_BY_SPARK:
            raise OptionError(f"option {KAFKA_PREFIX}{name} cannot be given: the source sets it itself")
        field = _CLIENT_SETTINGS.get(name)
        if field is not None:
            settings[field] = _client_value(name, value.strip())
    try:
        security = SecuritySettings.from_properties(options.kafka())
        return ConsumerConfig(bootstrap=bootstrap, security=security, **settings)
    except ClientConfigError as error:
        sentence = str(error)
        for name, field in (("bootstrap.servers", "bootstrap"), *_CLIENT_SETTINGS.items()):
            sentence = re.sub(rf"^{field}\b", f"option {KAFKA_PREFIX}{name}", sentence)
        if sentence.startswith(_SECURITY):
            sentence = f"option {KAFKA_PREFIX}{sentence}"
        raise OptionError(sentence) from error


def _client_value(name: str, value: str) -> str | int | bool:
    if name == "client.id":
        return value
    if name == "isolation.level":
        return _isolation({name: value})
    if name == "check.crcs":
        return _boolean_text(f"{KAFKA_PREFIX}{name}", value)
    if not re.fullmatch(r"\d{1,10}", value, re.ASCII):
        raise OptionError(f"option {KAFKA_PREFIX}{name} must be a whole number, not {value!r}")
    return int(value)


def _isolation(kafka: Mapping[str, str]) -> str:
    value = kafka.get("isolation.level", "read_uncommitted").strip().lower()
    if value not in ("read_uncommitted", "read_committed"):
        raise OptionError(f"option kafka.isolation.level must be read_uncommitted or read_committed, not {value!r}")
    return value


def _boolean_text(name: str, value: str) -> bool:
    return Options({name: value}).boolean(name, True)


def _subscription(options: Options, *, needed: bool) -> Subscription | None:
    option = options.only_one_of(SUBSCRIPTIONS)
    if option is None:
        if needed:
            raise OptionError(f"one of the options {', '.join(SUBSCRIPTIONS)} is missing: say which topics to read")
        return None
    text = options.required(option, "")
    if option == "assign":
        return Subscription(option, partitions=parse_assignment(option, text))
    if option == "subscribe":
        topics = frozenset(topic.strip() for topic in text.split(",") if topic.strip())
        if not topics:
            raise OptionError("option subscribe names no topic")
        return Subscription(option, topics=topics)
    try:
        compiled(text, java=True)
    except RegexError as error:
        raise OptionError(f"option subscribePattern: {error}") from error
    return Subscription(option, pattern=text)


def _starting(options: Options, *, is_streaming: bool) -> Bound:
    bound = _bound(options, "starting", STARTING, default="latest" if is_streaming else "earliest")
    if not is_streaming and (bound.kind is BoundKind.LATEST or LATEST in bound.by_partition.values()):
        raise OptionError(f"option {bound.option}: a batch cannot start at the latest offset: no records follow it")
    return bound


def _ending(options: Options) -> Bound:
    bound = _bound(options, "ending", ENDING, default="latest")
    if bound.kind is BoundKind.EARLIEST or EARLIEST in bound.by_partition.values():
        raise OptionError(f"option {bound.option}: a batch cannot end at the earliest offset: no records precede it")
    return bound


def _bound(
    options: Options, which: Literal["starting", "ending"], names: tuple[str, str, str], *, default: str
) -> Bound:
    """Timestamp forms take precedence over offsets, and one timestamp over timestamps by partition."""
    one, each, offsets = names
    if one in options:
        return Bound(BoundKind.TIMESTAMP, one, _present(options.integer(one, None, low=0)))
    if each in options:
        times = parse_partition_numbers(each, options.required(each, ""), what="timestamp", low=0)
        return Bound(BoundKind.TIMESTAMPS, each, by_partition=times)
    text = options.text(offsets) or default
    if text.lower() in ("earliest", "latest"):
        return Bound(BoundKind(text.lower()), offsets)
    if not text.startswith("{"):
        raise OptionError(f'option {offsets} must be earliest, latest or {{"topic": {{"0": 23}}}}, not {text!r}')
    return Bound(
        BoundKind.OFFSETS,
        offsets,
        by_partition=parse_partition_numbers(offsets, text, what="offset", low=EARLIEST),
    )
