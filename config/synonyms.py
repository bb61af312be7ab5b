"""Where else a property's value comes from, or would: what DescribeConfigs calls its synonyms.

A synonym is a layer that sets the property, or another property of its family (log.retention.hours for
log.retention.ms); a topic property's are its own value, then those of the broker property behind it. The one that
holds comes first. As in Kafka, what another member of the family says is left out until the property itself is set.

Different from Kafka: a topic's retention that log.retention.hours gives names it, where somebody set it.
Source: Kafka's ConfigHelper, DynamicBrokerConfig.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import dropwhile
from typing import NamedTuple

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.property import Property
from barnabas.config.tables.topic_properties import TOPIC_PROPERTIES
from barnabas.config.value import ConfigSource, ConfigValue

_FAMILIES: Mapping[str, tuple[str, ...]] = {
    member.name: tuple(synonym.name for synonym in known.synonyms)
    for known in TOPIC_PROPERTIES.values()
    for member in known.synonyms
    if len(known.synonyms) > 1
}
"""Broker property -> its family, the finest unit first."""


class Synonym(NamedTuple):
    """The property `name` in one layer."""

    name: str
    value: ConfigValue


def broker_synonyms(config: BrokerConfig, name: str) -> list[Synonym]:
    """Of a broker property: its layers, and those of its family from there on."""
    return list(dropwhile(lambda synonym: synonym.name != name, _of_family(config, name)))


def topic_synonyms(config: BrokerConfig, known: Property, value: ConfigValue) -> list[Synonym]:
    """Of a topic property that has `value`: the topic's own, then the broker's."""
    own = [Synonym(known.name, value)] if value.source is ConfigSource.DYNAMIC_TOPIC_CONFIG else []
    if not known.synonyms:
        return own
    name = known.synonyms[0].name
    return own + list(
        dropwhile(lambda synonym: synonym.name != name and synonym.value.is_default, _of_family(config, name))
    )


def _of_family(config: BrokerConfig, name: str) -> list[Synonym]:
    """Every layer of every member, by layer; within one the finest unit is first."""
    family = _FAMILIES.get(name, (name,))
    found = [Synonym(member, value) for member in family for value in config.layers(member)]
    if len(found) < 2:
        return found
    return sorted(found, key=lambda synonym: synonym.value.source.value)
