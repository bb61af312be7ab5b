"""Kafka 4.3's properties without effect here, with their types, defaults and documentation.

Those of names in the property tables come from there; all others that Kafka 4.3 describes are in two data files, made
from Kafka's ConfigDef (Apache License 2.0) and read at the first use:

    kafka_broker.json    name -> [type, default, update mode, documentation, [least, most] if it has bounds]
    kafka_topic.json     name -> [type, default, the broker's property or null, documentation]

Internal properties, which Kafka does not describe, are left out. The names that are accepted are in unserved.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from barnabas.config.property import BadValueError, Property, PropertyType, Synonym, UpdateMode, parse_as
from barnabas.config.tables.broker_properties import BROKER_PROPERTIES
from barnabas.config.tables.topic_properties import TOPIC_PROPERTIES
from barnabas.config.validators import AtLeast, Between, ListOf, ThrottledReplicas, Validator
from barnabas.config.value import PropertyValue

NO_EFFECT: Final = "Has no effect in Barnabas. In Apache Kafka: "
"""What the documentation of each property begins with."""

_TOPIC_RULES: Final[Mapping[str, Validator]] = {
    "follower.replication.throttled.replicas": ThrottledReplicas(),
    "leader.replication.throttled.replicas": ThrottledReplicas(),
    "local.retention.bytes": AtLeast(-2),
    "local.retention.ms": AtLeast(-2),
}


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


def _parsed(kind: str, default: str | None) -> PropertyValue:
    return None if default is None else parse_as(PropertyType(kind), default)


def _read(name: str) -> Iterable[tuple[str, list[Any]]]:
    """Return the rows of a data file."""
    content: dict[str, list[Any]] = json.loads(Path(__file__).with_name(name).read_text("utf-8"))
    return content.items()
