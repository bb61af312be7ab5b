"""Kafka 4.3's properties without effect here, as DescribeConfigs describes them.

A tool that compares configs with a Kafka cluster expects every name, with its type, default and documentation
(tables/kafka_properties.py). A broker's property that is set and not in that table (of an older Kafka, of a plug-in)
has no known type, and may be a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.config.names import LISTENER_PREFIX
from barnabas.config.property import Property
from barnabas.config.property_values import DEFAULT_ORIGIN, PropertyValues
from barnabas.config.synonyms import Synonym
from barnabas.config.tables.kafka_properties import unserved_broker_properties, unserved_topic_properties
from barnabas.config.value import ConfigSource, ConfigValue, trim


class UnservedConfig(NamedTuple):
    """A property of Kafka's with its value and the layers that set it, the effective one first.

    `known` is None where no type is known.
    """

    name: str
    known: Property | None
    value: ConfigValue
    layers: list[Synonym]


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
    return described


def _of_broker(config: PropertyValues, name: str, known: Property | None) -> UnservedConfig:
    layers = [Synonym(name, _shown(each, known)) for each in config.layers(name)]
    if known is not None and known.default is not None:
        layers.append(Synonym(name, _default_of(known)))
    value = layers[0].value if layers else ConfigValue(None, None, ConfigSource.DEFAULT_CONFIG, DEFAULT_ORIGIN)
    return UnservedConfig(name, known, value, layers)


def _shown(given: ConfigValue, known: Property | None) -> ConfigValue:
    """Return a value that was set with the text that may be shown."""
    is_secret = known is None or known.is_sensitive
    return given if is_secret else given._replace(text=trim(str(given.value)))


def _own(name: str, text: str) -> Synonym:
    return Synonym(name, ConfigValue(text, trim(text), ConfigSource.DYNAMIC_TOPIC_CONFIG, "the topic's config"))


def _default_of(known: Property) -> ConfigValue:
    return ConfigValue(known.default, known.show(known.default), ConfigSource.DEFAULT_CONFIG, DEFAULT_ORIGIN)


def _with_prefix(name: str) -> Property | None:
    """Return the property of a name with a listener's prefix."""
    if not name.startswith(LISTENER_PREFIX):
        return None
    known = unserved_broker_properties().get(name.removeprefix(LISTENER_PREFIX).partition(".")[2])
    return None if known is None else known._replace(name=name)
