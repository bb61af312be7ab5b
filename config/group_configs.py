"""Configs of single groups (resource type GROUP): each overrides a broker property within the broker's bounds.

    consumer.session.timeout.ms       overrides group.consumer.session.timeout.ms
    consumer.heartbeat.interval.ms    overrides group.consumer.heartbeat.interval.ms
    consumer.assignment.interval.ms   overrides group.consumer.assignment.interval.ms
    share.session.timeout.ms, share.heartbeat.interval.ms, share.assignment.interval.ms, share.record.lock.duration.ms,
    share.delivery.count.limit, share.partition.max.record.locks       override group.<the same name>
    share.auto.offset.reset, share.isolation.level, share.renew.acknowledge.enable       have no broker property

Likewise of streams groups: streams.session.timeout.ms, streams.heartbeat.interval.ms, streams.assignment.interval.ms,
streams.num.standby.replicas and streams.initial.rebalance.delay.ms, which override group.streams.*.

The bounds are group.consumer.min.*, group.share.max.* and so on; they apply to groups only, not to the broker's own
value. A stored value that is out of bounds, because these were changed later, is clamped. Source: Kafka 4.3's
GroupConfig.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.errors import ConfigError
from barnabas.config.offset_reset import OffsetResetValue
from barnabas.config.property import BadValueError, Property, PropertyType, Synonym
from barnabas.config.property_values import DEFAULT_ORIGIN
from barnabas.config.tables.broker_properties import BROKER_PROPERTIES
from barnabas.config.validators import AtLeast, Between, OneOf
from barnabas.config.value import ConfigSource, ConfigValue, PropertyValue, trim

SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL: Final = "consumer.assignment.interval.ms"
SHARE_SESSION_TIMEOUT: Final = "share.session.timeout.ms"
SHARE_HEARTBEAT_INTERVAL: Final = "share.heartbeat.interval.ms"
SHARE_ASSIGNMENT_INTERVAL: Final = "share.assignment.interval.ms"
SHARE_RECORD_LOCK_DURATION: Final = "share.record.lock.duration.ms"
SHARE_DELIVERY_COUNT_LIMIT: Final = "share.delivery.count.limit"
SHARE_PARTITION_MAX_RECORD_LOCKS: Final = "share.partition.max.record.locks"
SHARE_OFFSET_RESET: Final = "share.auto.offset.reset"
SHARE_ISOLATION_LEVEL: Final = "share.isolation.level"
SHARE_RENEW: Final = "share.renew.acknowledge.enable"
STREAMS_SESSION_TIMEOUT: Final = "streams.session.timeout.ms"
STREAMS_HEARTBEAT_INTERVAL: Final = "streams.heartbeat.interval.ms"
STREAMS_ASSIGNMENT_INTERVAL: Final = "streams.assignment.interval.ms"
STREAMS_STANDBY_REPLICAS: Final = "streams.num.standby.replicas"
STREAMS_INITIAL_DELAY: Final = "streams.initial.rebalance.delay.ms"

ORIGIN: Final = "the group's config"

_TIMEOUTS_AND_INTERVALS: Final = (
    (SESSION_TIMEOUT, HEARTBEAT_INTERVAL),
    (SHARE_SESSION_TIMEOUT, SHARE_HEARTBEAT_INTERVAL),
    (STREAMS_SESSION_TIMEOUT, STREAMS_HEARTBEAT_INTERVAL),
)


def _of_broker(name: str) -> Property:
    known = BROKER_PROPERTIES[f"group.{name}"]
    validator = known.validator
    if isinstance(validator, Between):  # the broker's own value has an upper bound, the group's one that is a property
        validator = AtLeast(validator.minimum)
    return Property(name, known.type, known.default, known.doc, validator, synonyms=(Synonym(known.name),))


GROUP_CONFIGS: Mapping[str, Property] = MappingProxyType(
    {
        **{
            name: _of_broker(name)
            for name in (
                SESSION_TIMEOUT,
                HEARTBEAT_INTERVAL,
                ASSIGNMENT_INTERVAL,
                SHARE_SESSION_TIMEOUT,
                SHARE_HEARTBEAT_INTERVAL,
                SHARE_ASSIGNMENT_INTERVAL,
                SHARE_RECORD_LOCK_DURATION,
                SHARE_DELIVERY_COUNT_LIMIT,
                SHARE_PARTITION_MAX_RECORD_LOCKS,
                STREAMS_SESSION_TIMEOUT,
                STREAMS_HEARTBEAT_INTERVAL,
                STREAMS_ASSIGNMENT_INTERVAL,
                STREAMS_STANDBY_REPLICAS,
                STREAMS_INITIAL_DELAY,
            )
        },
        SHARE_OFFSET_RESET: Property(
            SHARE_OFFSET_RESET,
            PropertyType.STRING,
            "latest",
            "Where the group begins in a partition of which it has no state: earliest, latest, or "
            "by_duration:<ISO 8601 duration> before now.",
            OffsetResetValue(),
        ),
        SHARE_ISOLATION_LEVEL: Property(
            SHARE_ISOLATION_LEVEL,
            PropertyType.STRING,
            "read_uncommitted",
            "Whether the group gets records of open and aborted transactions: read_committed or read_uncommitted.",
            OneOf(("read_committed", "read_uncommitted")),
        ),
        SHARE_RENEW: Property(
            SHARE_RENEW,
            PropertyType.BOOLEAN,
            True,
            "Whether consumers may extend their lock of a record with the acknowledgement RENEW.",
        ),
    }
)


def validate_group_configs(
    overrides: Mapping[str, str], changed: Mapping[str, str | None], config: BrokerConfig
) -> None:
    """Check a group's configs. Raises ConfigError.

    `overrides` is the resulting set, `changed` its new values (None: deleted). Only those are refused: illegal values
    that Kafka stored earlier do not block other changes.
    """
    for name, text in changed.items():
        if text is not None:
            _ensure_legal(name, text, config)
    for timeout, interval in _TIMEOUTS_AND_INTERVALS:
        session, heartbeat = (group_value(config, name, overrides) for name in (timeout, interval))
        if session <= heartbeat and {timeout, interval} & changed.keys():
            would_have = f"the group would have {session} and {heartbeat}"
            raise ConfigError(f"{timeout} must be greater than {interval}: {would_have}")


def group_value(config: BrokerConfig, name: str, overrides: Mapping[str, str]) -> int:
    """Return a number for a group with `overrides`: its own value, clamped to the bounds, else the broker's."""
    value = own_value(name, overrides)
    if value is None:
        return config.get_int(f"group.{name}")
    assert isinstance(value, int)
    lowest, highest = _bounds(name)
    if lowest is not None:
        value = max(value, config.get_int(lowest))
    return value if highest is None else min(value, config.get_int(highest))


def own_value(name: str, overrides: Mapping[str, str]) -> PropertyValue:
    """Return the group's own value; None without one, or if another program stored an illegal one."""
    text = overrides.get(name)
    if text is None:
        return None
    try:
        return GROUP_CONFIGS[name].parse(text)
    except BadValueError:
        return None


def group_problems(overrides: Mapping[str, str]) -> list[str]:
    """Return a sentence for each stored config of a group that is not used: another program set it."""
    problems = []
    for name, text in overrides.items():
        known = GROUP_CONFIGS.get(name)
        if known is None:
            problems.append(f"{name}={text} in {ORIGIN}: unknown here; it has no effect")
            continue
        try:
            known.parse(text)
        except BadValueError as error:
            used = "broker's value" if known.synonyms else "default"
            problems.append(f"{name}={text} in {ORIGIN} is not understood, {error}: the {used} is used")
    return problems


def describe_group(config: BrokerConfig, overrides: Mapping[str, str]) -> list[tuple[Property, ConfigValue]]:
    """Return every served config of a group with its value, unclamped, and origin. An illegal one counts as unset."""
    described = []
    for known in GROUP_CONFIGS.values():
        own = own_value(known.name, overrides)
        if own is not None:
            value = ConfigValue(own, trim(overrides[known.name]), ConfigSource.GROUP_CONFIG, ORIGIN)
        elif known.synonyms:
            value = config.value(known.synonyms[0].name)
        else:
            value = _default_of(known)
        described.append((known, value))
    return described


def group_synonyms(config: BrokerConfig, known: Property, value: ConfigValue) -> Sequence[tuple[str, ConfigValue]]:
    """Return the synonyms of a config: the group's own value, then the broker property's layers or the default."""
    own = [(known.name, value)] if value.source is ConfigSource.GROUP_CONFIG else []
    if not known.synonyms:
        return [*own, (known.name, _default_of(known))]
    return [*own, *((each.name, layer) for each in known.synonyms for layer in config.layers(each.name))]


def _default_of(known: Property) -> ConfigValue:
    return ConfigValue(known.default, known.show(known.default), ConfigSource.DEFAULT_CONFIG, DEFAULT_ORIGIN)


def _ensure_legal(name: str, text: str, config: BrokerConfig) -> None:
    known = GROUP_CONFIGS.get(name)
    if known is None:
        of_broker = name.removeprefix("group.")
        hint = f"; the group's is {of_broker}" if of_broker in GROUP_CONFIGS else f"; it has {', '.join(GROUP_CONFIGS)}"
        raise ConfigError(f"{name} in {ORIGIN}: Unknown group config name{hint}")
    try:
        value = known.parse(text)
    except BadValueError as error:
        raise ConfigError(f"{name}={text} in {ORIGIN}: {error}") from None
    if not known.synonyms:
        return
    lowest, highest = _bounds(name)
    assert isinstance(value, int)
    if lowest is not None and value < config.get_int(lowest):
        raise ConfigError(f"{name}={text} must be greater than or equal to {config.setting(lowest)}")
    if highest is not None and value > config.get_int(highest):
        raise ConfigError(f"{name}={text} must be less than or equal to {config.setting(highest)}")


def _bounds(name: str) -> tuple[str | None, str | None]:
    """Return the broker properties with the lowest and the highest value; None where there is no bound."""
    if name == STREAMS_INITIAL_DELAY:
        return None, None
    if name == STREAMS_STANDBY_REPLICAS:
        return None, "group.streams.max.standby.replicas"
    protocol, _, rest = name.partition(".")
    return f"group.{protocol}.min.{rest}", f"group.{protocol}.max.{rest}"
