"""Configs of single groups (resource type GROUP): each overrides a broker property within the broker's bounds.

    consumer.session.timeout.ms       overrides group.consumer.session.timeout.ms
    consumer.heartbeat.interval.ms    overrides group.consumer.heartbeat.interval.ms
    consumer.assignment.interval.ms   overrides group.consumer.assignment.interval.ms

The bounds are group.consumer.min.* and group.consumer.max.*; they apply to groups only, not to the broker's own value.
A stored value that is out of bounds, because these were changed later, is clamped. Kafka's configs of share and streams
groups are kept without effect. Source: Kafka 4.3's GroupConfig.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.errors import ConfigError
from barnabas.config.property import BadValueError, Property, Synonym
from barnabas.config.tables.broker_properties import BROKER_PROPERTIES
from barnabas.config.value import ConfigSource, ConfigValue

SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL: Final = "consumer.assignment.interval.ms"

ORIGIN: Final = "the group's config"

_UNSERVED: Final = frozenset(
    (
        "share.assignment.interval.ms",
        "share.auto.offset.reset",
        "share.delivery.count.limit",
        "share.heartbeat.interval.ms",
        "share.isolation.level",
        "share.partition.max.record.locks",
        "share.record.lock.duration.ms",
        "share.renew.acknowledge.enable",
        "share.session.timeout.ms",
        "streams.assignment.interval.ms",
        "streams.heartbeat.interval.ms",
        "streams.initial.rebalance.delay.ms",
        "streams.num.standby.replicas",
        "streams.session.timeout.ms",
    )
)


def _of_broker(name: str) -> Property:
    known = BROKER_PROPERTIES[f"group.{name}"]
    return Property(name, known.type, known.default, known.doc, known.validator, synonyms=(Synonym(known.name),))


GROUP_CONFIGS: Mapping[str, Property] = MappingProxyType(
    {name: _of_broker(name) for name in (SESSION_TIMEOUT, HEARTBEAT_INTERVAL, ASSIGNMENT_INTERVAL)}
)


def validate_group_configs(
    overrides: Mapping[str, str], changed: Mapping[str, str | None], config: BrokerConfig
) -> list[str]:
    """Check a group's configs; return warnings about legal ones. Raises ConfigError.

    `overrides` is the resulting set, `changed` its new values (None: deleted). Only those are refused: illegal values
    that Kafka stored earlier do not block other changes.
    """
    for name, text in changed.items():
        if text is not None:
            _ensure_legal(name, text, config)
    session, heartbeat = (group_value(config, name, overrides) for name in (SESSION_TIMEOUT, HEARTBEAT_INTERVAL))
    if session <= heartbeat and {SESSION_TIMEOUT, HEARTBEAT_INTERVAL} & changed.keys():
        would_have = f"the group would have {session} and {heartbeat}"
        raise ConfigError(f"{SESSION_TIMEOUT} must be greater than {HEARTBEAT_INTERVAL}: {would_have}")
    unserved = [name for name, text in changed.items() if name in _UNSERVED and text is not None]
    if not unserved:
        return []
    return [f"configs of groups of Apache Kafka that Barnabas does not serve, without effect: {', '.join(unserved)}"]


def group_value(config: BrokerConfig, name: str, overrides: Mapping[str, str]) -> int:
    """Return the value for a group with `overrides`: its own value, clamped to the bounds, else the broker's."""
    text = overrides.get(name)
    if text is not None:
        try:
            value = GROUP_CONFIGS[name].parse(text)
        except BadValueError:
            pass  # stored by another program: treated as unset
        else:
            assert isinstance(value, int)
            lowest, highest = (config.get_int(bound) for bound in _bounds(name))
            return min(max(value, lowest), highest)
    return config.get_int(f"group.{name}")


def describe_group(config: BrokerConfig, overrides: Mapping[str, str]) -> list[tuple[Property, ConfigValue]]:
    """Return every served config of a group with its value and origin."""
    described = []
    for known in GROUP_CONFIGS.values():
        value = config.value(known.synonyms[0].name)
        if known.name in overrides:
            number = group_value(config, known.name, overrides)
            value = ConfigValue(number, overrides[known.name], ConfigSource.GROUP_CONFIG, ORIGIN)
        described.append((known, value))
    return described


def group_synonyms(config: BrokerConfig, known: Property, value: ConfigValue) -> Sequence[tuple[str, ConfigValue]]:
    """Return the synonyms of a config: the group's own value, then the layers of the broker property."""
    name = known.synonyms[0].name
    own = [(known.name, value)] if value.source is ConfigSource.GROUP_CONFIG else []
    return [*own, *((name, each) for each in config.layers(name))]


def _ensure_legal(name: str, text: str, config: BrokerConfig) -> None:
    known = GROUP_CONFIGS.get(name)
    if known is None:
        if name in _UNSERVED:
            return
        of_broker = name.removeprefix("group.")
        hint = f"; the group's is {of_broker}" if of_broker in GROUP_CONFIGS else f"; it has {', '.join(GROUP_CONFIGS)}"
        raise ConfigError(f"{name} in {ORIGIN}: Unknown group config name{hint}")
    try:
        value = known.parse(text)
    except BadValueError as error:
        raise ConfigError(f"{name}={text} in {ORIGIN}: {error}") from None
    lowest, highest = _bounds(name)
    assert isinstance(value, int)
    if value < config.get_int(lowest):
        raise ConfigError(f"{name}={text} must be greater than or equal to {config.setting(lowest)}")
    if value > config.get_int(highest):
        raise ConfigError(f"{name}={text} must be less than or equal to {config.setting(highest)}")


def _bounds(name: str) -> tuple[str, str]:
    rest = name.removeprefix("consumer.")
    return f"group.consumer.min.{rest}", f"group.consumer.max.{rest}"
