"""Config entries of DescribeConfigs and CreateTopics: every property with value, source, type and documentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.config import (
    BROKER_PROPERTIES,
    BrokerConfig,
    ConfigSource,
    ConfigValue,
    Property,
    describe_topic,
)
from barnabas.config.client_metrics_configs import CLIENT_METRICS_CONFIGS
from barnabas.config.group_configs import describe_group, group_synonyms
from barnabas.config.property import BadValueError, show
from barnabas.config.synonyms import Synonym, broker_synonyms, topic_synonyms
from barnabas.config.unserved_configs import UnservedConfig, describe_unserved_broker, describe_unserved_topic
from barnabas.config.value import trim
from barnabas.protocol.messages.cluster.configs import CONFIG_SOURCES, CONFIG_TYPES, ConfigEntry, ConfigSynonym

UNKNOWN_TYPE: Final = CONFIG_TYPES["unknown"]
"""Type of a stored property that Kafka 4.3 does not define, of a group's without effect here, and of a mirror."""

LOGGER_SOURCE: Final = CONFIG_SOURCES["DYNAMIC_BROKER_LOGGER_CONFIG"]
"""Source of the level of a logger, which is no layer of a property."""

_INTERNAL: Final = "internal.segment.bytes"
_OWN_SOURCES: Final = frozenset(
    {ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.GROUP_CONFIG, ConfigSource.CLIENT_METRICS_CONFIG}
)


def topic_entries(
    config: BrokerConfig, overrides: Mapping[str, str], *, with_synonyms: bool = False, with_docs: bool = True
) -> list[ConfigEntry]:
    """Describe a topic's configuration; `overrides` are the topic's own configs.

    As in Kafka 4.3, stored ones of an unknown name, such as those of Kafka 3, are left out; here and of groups.
    """
    entries = []
    for known, value in describe_topic(config, overrides):
        if known.name == _INTERNAL and value.is_default:
            continue
        synonyms = topic_synonyms(config, known, value) if with_synonyms else []
        entries.append(_entry(known, value, synonyms, read_only=False, with_docs=with_docs))
    return entries + [
        _unserved_entry(each, read_only=False, with_synonyms=with_synonyms, with_docs=with_docs)
        for each in describe_unserved_topic(config, overrides)
    ]


def group_entries(
    config: BrokerConfig, overrides: Mapping[str, str], *, with_synonyms: bool = False, with_docs: bool = True
) -> list[ConfigEntry]:
    """Describe a group's configuration; `overrides` are the group's own configs."""
    entries = []
    for known, value in describe_group(config, overrides):
        synonyms = [Synonym(*each) for each in group_synonyms(config, known, value)] if with_synonyms else []
        entries.append(_entry(known, value, synonyms, read_only=False, with_docs=with_docs))
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


def unserved_broker_entries(
    config: BrokerConfig, *, with_synonyms: bool = False, with_docs: bool = True
) -> list[ConfigEntry]:
    """Describe a broker's properties without effect here. Those of unknown type may be secrets, and have no value."""
    return [
        _unserved_entry(
            each,
            read_only=each.known is None or not each.known.is_dynamic,
            with_synonyms=with_synonyms,
            with_docs=with_docs,
            is_secret=each.known is None or each.known.is_sensitive,
        )
        for each in describe_unserved_broker(config)
    ]


def client_metrics_entries(
    overrides: Mapping[str, str], *, with_synonyms: bool = False, with_docs: bool = True
) -> list[ConfigEntry]:
    """Describe a subscription of client metrics, which need not exist."""
    entries = []
    for known in CLIENT_METRICS_CONFIGS.values():
        text = overrides.get(known.name)
        value = ConfigValue(known.default, known.show(known.default), ConfigSource.DEFAULT_CONFIG, "default")
        if text is not None:
            value = ConfigValue(text, trim(text), ConfigSource.CLIENT_METRICS_CONFIG, "the subscription's config")
        synonyms = [Synonym(known.name, value)] if with_synonyms and text is not None else []
        entries.append(_entry(known, value, synonyms, read_only=False, with_docs=with_docs))
    return entries


def logger_entries(levels: Mapping[str, str]) -> list[ConfigEntry]:
    """Describe the levels of loggers, by name."""
    return [
        ConfigEntry(name=name, value=level, source_code=LOGGER_SOURCE, type_code=UNKNOWN_TYPE, documentation=None)
        for name, level in levels.items()
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
        value=_written(known, value),
        source_code=value.source.value,
        type_code=CONFIG_TYPES[known.type.value],
        documentation=(known.doc or None) if with_docs else None,
        read_only=read_only,
        sensitive=known.is_sensitive,
        synonyms=[_synonym(known, each) for each in synonyms],
    )


def _unserved_entry(
    described: UnservedConfig, *, read_only: bool, with_synonyms: bool, with_docs: bool, is_secret: bool = False
) -> ConfigEntry:
    known, value = described.known, described.value
    layers = described.layers if with_synonyms else []
    return ConfigEntry(
        name=described.name,
        value=_written(known, value),
        source_code=value.source.value,
        type_code=UNKNOWN_TYPE if known is None else CONFIG_TYPES[known.type.value],
        documentation=(known.doc or None) if with_docs and known is not None else None,
        read_only=read_only,
        sensitive=is_secret,
        synonyms=[_synonym(known, each) for each in layers],
    )


def _synonym(known: Property | None, synonym: Synonym) -> ConfigSynonym:
    """Describe one source of a value: a resource's own as Kafka writes it, a broker's with the text that was set."""
    value = synonym.value
    text = _written(known, value) if value.source in _OWN_SOURCES else value.text
    return ConfigSynonym(name=synonym.name, value=text, source_code=value.source.value)


def _written(known: Property | None, value: ConfigValue) -> str | None:
    """Return a value as Kafka writes it: the text of what was parsed instead of the text that was set.

    The text of a reference to a config provider stays, because it may stand for a secret. So does an illegal one: a
    stored one, or of a property without effect here.
    """
    if known is None or value.text is None or value.is_default or "${" in value.text:
        return value.text
    try:
        return show(known.parse(value.text))
    except BadValueError:
        return value.text


def _of_unknown_type(name: str, text: str, source: ConfigSource, with_synonyms: bool) -> ConfigEntry:
    synonyms = [ConfigSynonym(name=name, value=text, source_code=source.value)] if with_synonyms else []
    return ConfigEntry(
        name=name, value=text, source_code=source.value, type_code=UNKNOWN_TYPE, documentation=None, synonyms=synonyms
    )
