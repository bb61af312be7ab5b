"""Kafka 4.3's properties without effect here, as DescribeConfigs describes them.

A tool that compares configs with a Kafka cluster expects every name, with its type, default and documentation. Those of
names in the property tables come from there; all others that Kafka 4.3 describes are in two data files, made from
Kafka's ConfigDef (Apache License 2.0) and read at the first description:

    tables/kafka_broker.json    name -> [type, default, update mode, documentation, [least, most] if it has bounds]
    tables/kafka_topic.json     name -> [type, default, the broker's property or null, documentation]

Internal properties, which Kafka does not describe, are left out. A broker's property that is set and in neither table
(of an older Kafka, of a plug-in) has no known type, and may be a secret.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from barnabas.config.names import LISTENER_PREFIX
from barnabas.config.property import BadValueError, Property, PropertyType, Synonym, UpdateMode, parse_as
from barnabas.config.property_values import DEFAULT_ORIGIN, PropertyValues
from barnabas.config.synonyms import Synonym as Layer
from barnabas.config.tables.broker_properties import BROKER_PROPERTIES
from barnabas.config.tables.topic_properties import TOPIC_PROPERTIES
from barnabas.config.validators import AtLeast, Between, ListOf, ThrottledReplicas, Validator
from barnabas.config.value import ConfigSource, ConfigValue, PropertyValue, trim

NO_EFFECT: Final = "Has no effect in Barnabas. In Apache Kafka: "
"""What the documentation of each property begins with."""

_TOPIC_RULES: Final[Mapping[str, Validator]] = {
    "follower.replication.throttled.replicas": ThrottledReplicas(),
    "leader.replication.throttled.replicas": ThrottledReplicas(),
    "local.retention.bytes": AtLeast(-2),
    "local.retention.ms": AtLeast(-2),
}

_TABLES: Final = Path(__file__).parent / "tables"


class UnservedConfig(NamedTuple):
    """A property of Kafka's with its value and the layers that set it, the effective one first.

    `known` is None where no type is known.
    """

    name: str
    known: Property | None
    value: ConfigValue
    layers: list[Layer]


@cache
def unserved_broker_properties() -> Mapping[str, Property]:
    """Return what Kafka 4.3 describes of a broker and Barnabas has no use for."""
    return {
        name: Property(
            name,
            PropertyType(kind),
            _parsed(kind, default),
            NO_EFFECT + doc,
            _rule(kind, bounds),
            UpdateMode(update_mode),
        )
        for name, (kind, default, update_mode, doc, *bounds) in _read("kafka_broker.json")
        if name not in BROKER_PROPERTIES
    }


@cache
def unserved_topic_properties() -> Mapping[str, Property]:
    """Return what Kafka 4.3 describes of a topic and Barnabas has no use for."""
    return {
        name: Property(
            name,
            PropertyType(kind),
            _parsed(kind, default),
            NO_EFFECT + doc,
            _TOPIC_RULES.get(name),
            synonyms=() if broker_name is None else (Synonym(broker_name),),
        )
        for name, (kind, default, broker_name, doc) in _read("kafka_topic.json")
        if name not in TOPIC_PROPERTIES
    }


def describe_unserved_broker(config: PropertyValues) -> list[UnservedConfig]:
    """Return every property of Kafka's brokers without effect here, and others that were set."""
    table = unserved_broker_properties()
    described = [_of_broker(config, name, known) for name, known in table.items()]
    return described + [_of_broker(config, name, _with_prefix(name)) for name in config.unserved if name not in table]


def describe_unserved_topic(config: PropertyValues, overrides: Mapping[str, str]) -> list[UnservedConfig]:
    """Return every property of Kafka's topics without effect here; `overrides` are the topic's own configs."""
    table = unserved_topic_properties()
    described = []
    for name, known in table.items():
        layers = [_own(name, overrides[name])] if name in overrides else []
        for synonym in known.synonyms:
            layers += _of_broker(config, synonym.name, unserved_broker_properties().get(synonym.name)).layers
        value = layers[0].value if layers else _default_of(known)
        described.append(UnservedConfig(name, known, value, layers))
    others = [_own(*each) for each in overrides.items() if each[0] not in table and each[0] not in TOPIC_PROPERTIES]
    return described + [UnservedConfig(each.name, None, each.value, [each]) for each in others]


def problem_of_topic(name: str, text: str) -> str | None:
    """Return why Kafka would refuse the value of a topic's property without effect here; None if it would not."""
    known = unserved_topic_properties().get(name)
    if known is None:
        return None
    try:
        known.parse(text)
    except BadValueError as error:
        return str(error)
    return None


def problem_of_broker(name: str, text: str, *, is_default_layer: bool) -> str | None:
    """Return why Kafka would not set a broker's property without effect here while it runs; None if it would."""
    known = unserved_broker_properties().get(name)
    if known is None:
        return None
    if not known.is_dynamic:
        return "read-only, it is read when the broker starts"
    if known.update_mode is UpdateMode.PER_BROKER and is_default_layer:
        return "it can be set for one broker only"
    try:
        known.parse(text)
    except BadValueError as error:
        return str(error)
    return None


def _rule(kind: str, bounds: list[list[int]]) -> Validator | None:
    if not bounds:
        return ListOf() if kind == PropertyType.LIST.value else None
    return AtLeast(*bounds[0]) if len(bounds[0]) == 1 else Between(*bounds[0])


def _of_broker(config: PropertyValues, name: str, known: Property | None) -> UnservedConfig:
    layers = [Layer(name, _shown(each, known)) for each in config.layers(name)]
    if known is not None and known.default is not None:
        layers.append(Layer(name, _default_of(known)))
    value = layers[0].value if layers else ConfigValue(None, None, ConfigSource.DEFAULT_CONFIG, DEFAULT_ORIGIN)
    return UnservedConfig(name, known, value, layers)


def _shown(given: ConfigValue, known: Property | None) -> ConfigValue:
    """Return a value that was set with the text that may be shown."""
    is_secret = known is None or known.is_sensitive
    return given if is_secret else given._replace(text=trim(str(given.value)))


def _own(name: str, text: str) -> Layer:
    return Layer(name, ConfigValue(text, trim(text), ConfigSource.DYNAMIC_TOPIC_CONFIG, "the topic's config"))


def _default_of(known: Property) -> ConfigValue:
    return ConfigValue(known.default, known.show(known.default), ConfigSource.DEFAULT_CONFIG, DEFAULT_ORIGIN)


def _with_prefix(name: str) -> Property | None:
    """Return the property of a name with a listener's prefix."""
    if not name.startswith(LISTENER_PREFIX):
        return None
    known = unserved_broker_properties().get(name.removeprefix(LISTENER_PREFIX).partition(".")[2])
    return None if known is None else known._replace(name=name)


def _parsed(kind: str, default: str | None) -> PropertyValue:
    return None if default is None else parse_as(PropertyType(kind), default)


def _read(name: str) -> Iterable[tuple[str, list[Any]]]:
    """Return the rows of a data file."""
    content: dict[str, list[Any]] = json.loads((_TABLES / name).read_text("utf-8"))
    return content.items()
