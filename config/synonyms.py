"""Synonyms of a property in DescribeConfigs: all sources of its value, in order of precedence.

A synonym is a layer that sets the property, or another property of its family (log.retention.hours for
log.retention.ms), or the property without its listener's prefix. A topic property has its own value, then the synonyms
of its broker property. The effective one comes first. As in Kafka, other members of the family are left out unless the
property itself is set.

Different from Kafka: if log.retention.hours is set and decides a topic's retention, it is listed.
Source: Kafka's ConfigHelper, DynamicBrokerConfig.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import dropwhile
from typing import NamedTuple

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.names import served_property
from barnabas.config.property import Property
from barnabas.config.tables.topic_properties import TOPIC_PROPERTIES
from barnabas.config.value import ConfigSource, ConfigValue

_FAMILIES: Mapping[str, tuple[str, ...]] = {
    member.name: tuple(synonym.name for synonym in known.synonyms)
    for known in TOPIC_PROPERTIES.values()
    for member in known.synonyms
    if len(known.synonyms) > 1
}
"""Broker property -> its family, finest unit first."""


class Synonym(NamedTuple):
    """A property in one layer."""

    name: str
    value: ConfigValue


def broker_synonyms(config: BrokerConfig, name: str) -> list[Synonym]:
    """Return the layers of a broker property and of the rest of its family."""
    return list(dropwhile(lambda synonym: synonym.name != name, _of_family(config, name)))


def topic_synonyms(config: BrokerConfig, known: Property, value: ConfigValue) -> list[Synonym]:
    """Return the synonyms of a topic property with `value`: the topic's own, then the broker's."""
    own = [Synonym(known.name, value)] if value.source is ConfigSource.DYNAMIC_TOPIC_CONFIG else []
    if not known.synonyms:
        return own
    name = known.synonyms[0].name
    if not own and value.problem is not None:
        own = [Synonym(name, value)]
    return own + list(
        dropwhile(lambda synonym: synonym.name != name and synonym.value.is_default, _of_family(config, name))
    )


def _of_family(config: BrokerConfig, name: str) -> list[Synonym]:
    """Return every layer of every member, sorted by layer, then finest unit first."""
    family = _FAMILIES.get(name) or _with_and_without_prefix(name)
    found = [Synonym(member, value) for member in family for value in config.layers(member)]
    if len(found) < 2:
        return found
    return sorted(found, key=lambda synonym: synonym.value.source.value)


def _with_and_without_prefix(name: str) -> tuple[str, ...]:
    known = served_property(name)
    return (name,) if known is None or known.name == name else (name, known.name)
