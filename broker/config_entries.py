"""Config entries of DescribeConfigs and CreateTopics: every property with value, source, type and documentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.config import (
    BROKER_PROPERTIES,
    TOPIC_PROPERTIES,
    BrokerConfig,
    ConfigSource,
    ConfigValue,
    Property,
    describe_topic,
)
from barnabas.config.group_configs import GROUP_CONFIGS, describe_group, group_synonyms
from barnabas.config.synonyms import Synonym, broker_synonyms, topic_synonyms
from barnabas.protocol.messages.cluster.configs import ConfigEntry, ConfigSynonym

UNKNOWN_TYPE: Final = "unknown"
"""Type of a stored topic or group property of Kafka without effect here, and of a mirror's definition."""

_INTERNAL: Final = "internal.segment.bytes"


def topic_entries(
    config: BrokerConfig, overrides: Mapping[str, str], *, with_synonyms: bool = False, with_docs: bool = True
) -> list[ConfigEntry]:
    """Describe a topic's configuration; `overrides` are the topic's own configs."""
    entries = []
    for known, value in describe_topic(config, overrides):
        if known.name == _INTERNAL and value.is_default:
            continue
        synonyms = topic_synonyms(config, known, value) if with_synonyms else []
        entries.append(_entry(known, value, synonyms, read_only=False, with_docs=with_docs))
    for name, text in overrides.items():
        if name not in TOPIC_PROPERTIES:
            entries.append(_of_unknown_type(name, text, ConfigSource.DYNAMIC_TOPIC_CONFIG, with_synonyms))
    return entries


def group_entries(
    config: BrokerConfig, overrides: Mapping[str, str], *, with_synonyms: bool = False, with_docs: bool = True
) -> list[ConfigEntry]:
    """Describe a group's configuration; `overrides` are the group's own configs."""
    entries = []
    for known, value in describe_group(config, overrides):
        synonyms = [Synonym(*each) for each in group_synonyms(config, known, value)] if with_synonyms else []
        entries.append(_entry(known, value, synonyms, read_only=False, with_docs=with_docs))
    for name, text in overrides.items():
        if name not in GROUP_CONFIGS:
            entries.append(_of_unknown_type(name, text, ConfigSource.GROUP_CONFIG, with_synonyms))
    return entries


def broker_entries(
    config: BrokerConfig,
    described: Iterable[tuple[Property, ConfigValue]],
    *,
    with_synonyms: bool = False,
    with_docs: bool = True,
) -> list[ConfigEntry]:
    """Describe a broker's properties; those read at start only, and all with a listener's prefix, are marked read-only.

    Kafka marks the latter although key stores can be changed.
    """
    return [
        _entry(
            known,
            value,
            broker_synonyms(config, known.name) if with_synonyms else [],
            read_only=not known.is_dynamic or known.name not in BROKER_PROPERTIES,
            with_docs=with_docs,
        )
        for known, value in described
    ]


def mirror_entries(definitions: Mapping[str, str], *, with_synonyms: bool = False) -> list[ConfigEntry]:
    """Describe stored definitions of mirrors, by the names of their configs."""
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    return [_of_unknown_type(name, text, source, with_synonyms) for name, text in definitions.items()]


def _entry(
    known: Property, value: ConfigValue, synonyms: Iterable[Synonym], *, read_only: bool, with_docs: bool
) -> ConfigEntry:
    return ConfigEntry(
        name=known.name,
        value=value.text,
        source=value.source.name,
        type=known.type.value,
        doc=known.doc if with_docs else "",
        read_only=read_only,
        is_default=value.is_default,
        sensitive=known.is_sensitive,
        synonyms=[ConfigSynonym(each.name, each.value.text, each.value.source.name) for each in synonyms],
    )


def _of_unknown_type(name: str, text: str, source: ConfigSource, with_synonyms: bool) -> ConfigEntry:
    synonyms = [ConfigSynonym(name, text, source.name)] if with_synonyms else []
    return ConfigEntry(name, text, source.name, UNKNOWN_TYPE, "", synonyms=synonyms)
