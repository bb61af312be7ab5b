"""Validation and description of a topic's configs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from barnabas.config import names
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.combinations import MEBIBYTE, segment_bytes_at_full_index
from barnabas.config.errors import ConfigError
from barnabas.config.log_config import KEPT, LogConfig, problems_of_deletion
from barnabas.config.property import BadValueError, Property
from barnabas.config.tables.topic_properties import TOPIC_PROPERTIES
from barnabas.config.value import ConfigSource, ConfigValue, trim

ORIGIN = "the topic's config"


def validate_topic_configs(
    overrides: Mapping[str, str], broker_config: BrokerConfig, changed: Collection[str] | None = None
) -> list[str]:
    """Check a topic's configs; return warnings about legal ones.

    `overrides` is the topic's resulting set, of which `changed` is new (None: all). Raises ConfigError for an unknown
    name, a value of the wrong type or against its rule, and impossible combinations of a new value with the others or
    the broker's. Stored ones of a topic prevent nothing: its cleaner obeys both lags.
    """
    for name, text in overrides.items():
        _ensure_legal(name, text)
    config = broker_config.log_config.with_overrides(overrides)
    is_new = changed is None or not {"min.compaction.lag.ms", "max.compaction.lag.ms"}.isdisjoint(changed)
    if is_new and config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        lowest = _shown("min.compaction.lag.ms", overrides, broker_config)
        raise ConfigError(f"{lowest} is above {_shown('max.compaction.lag.ms', overrides, broker_config)}")
    return list(_warnings(overrides, config))


def complaints(overrides: Mapping[str, str]) -> list[str]:
    """What LogConfig.with_overrides skips in a topic's stored configs, one sentence for each, for the log at start."""
    sentences = []
    unread = problems_of_deletion(overrides)
    for name, text in overrides.items():
        try:
            _ensure_legal(name, text)
        except ConfigError as error:
            without_effect = "the broker's value is used" if name in TOPIC_PROPERTIES else "it has no effect"
            sentences.append(f"{error}; {KEPT if name in unread else without_effect}")
    return sentences


def describe_topic(broker_config: BrokerConfig, overrides: Mapping[str, str]) -> list[tuple[Property, ConfigValue]]:
    """Return every topic property with its value and origin.

    An illegal stored value counts as unset, except for one that has the logs kept: it is there with its problem.
    """
    described = []
    unread = problems_of_deletion(overrides)
    for known in TOPIC_PROPERTIES.values():
        value = broker_config.topic_default(known)
        text = overrides.get(known.name)
        if text is not None:
            try:
                parsed = known.parse(text)
            except BadValueError:  # complaints() says so; here as in LogConfig.with_overrides
                if known.name in unread:
                    source = ConfigSource.DYNAMIC_TOPIC_CONFIG
                    value = ConfigValue(value.value, trim(text), source, ORIGIN, unread[known.name])
            else:
                value = ConfigValue(parsed, trim(text), ConfigSource.DYNAMIC_TOPIC_CONFIG, ORIGIN)
        described.append((known, value))
    return described


def unread_configs(broker_config: BrokerConfig, overrides: Mapping[str, str]) -> dict[str, ConfigValue]:
    """Return the topic's and the broker's stored values because of which the topic's logs are kept, by name."""
    unread = {
        name: ConfigValue(None, trim(overrides[name]), ConfigSource.DYNAMIC_TOPIC_CONFIG, ORIGIN, problem)
        for name, problem in problems_of_deletion(overrides).items()
    }
    described = {known.name: value for known, value in describe_topic(broker_config, overrides)}
    return unread | {name: value for name, value in described.items() if value.problem is not None}


def _ensure_legal(name: str, text: str) -> None:
    known = TOPIC_PROPERTIES.get(name)
    if known is None:
        if not names.is_unserved_topic(name):
            raise names.unknown_topic_property(name, ORIGIN)
        if (removed := names.removed_topic_property(name, ORIGIN)) is not None:
            raise removed
        if name == "remote.storage.enable" and trim(text).lower() == "true":
            raise ConfigError(f"{name}={text} in {ORIGIN}: Barnabas has no tiered storage")
        from barnabas.config.tables.kafka_properties import problem_of_topic

        if (problem := problem_of_topic(name, text)) is not None:
            raise ConfigError(f"{name}={text} in {ORIGIN}: {problem}")
        return
    try:
        known.parse(text)
    except BadValueError as error:
        raise ConfigError(f"{name}={text} in {ORIGIN}: {error}") from None


def _shown(name: str, overrides: Mapping[str, str], broker_config: BrokerConfig) -> str:
    if name in overrides:
        return f"{name}={overrides[name]} in {ORIGIN}"
    return broker_config.setting(TOPIC_PROPERTIES[name].synonyms[0].name)


def _warnings(overrides: Mapping[str, str], config: LogConfig) -> Iterator[str]:
    unserved = [name for name in overrides if name not in TOPIC_PROPERTIES]
    if unserved:
        yield f"properties of Apache Kafka that Barnabas does not serve, without effect: {', '.join(unserved)}"
    for name, text in overrides.items():
        for entry in TOPIC_PROPERTIES[name].repeated(text) if name in TOPIC_PROPERTIES else ():
            yield f"{name}={text} names {entry} more than once, which counts once"
    size = TOPIC_PROPERTIES["segment.bytes"].parse(overrides["segment.bytes"]) if "segment.bytes" in overrides else None
    if isinstance(size, int) and size < MEBIBYTE:
        yield (
            f"segment.bytes={size} is legal here, and Apache Kafka 4.x does not start on a "
            f"directory with a topic under {MEBIBYTE}: raise it before a hand-over"
        )
    if "segment.index.bytes" in overrides or "index.interval.bytes" in overrides or "segment.bytes" in overrides:
        full = segment_bytes_at_full_index(config.segment_index_bytes, config.index_interval_bytes)
        if full < config.segment_bytes:
            yield (
                f"with segment.index.bytes={config.segment_index_bytes} and "
                f"index.interval.bytes={config.index_interval_bytes} the indexes are full after about {full} bytes, "
                f"before segment.bytes={config.segment_bytes}"
            )
    if "max.message.bytes" in overrides and config.max_message_bytes > config.segment_bytes:
        yield (
            f"max.message.bytes={config.max_message_bytes} is above segment.bytes={config.segment_bytes}: "
            "a batch larger than a segment is refused"
        )
    if "min.insync.replicas" in overrides and config.min_insync_replicas > 1:
        yield (
            f"min.insync.replicas={config.min_insync_replicas}: Barnabas is one node, so acks=all is answered "
            "NOT_ENOUGH_REPLICAS (19)"
        )
