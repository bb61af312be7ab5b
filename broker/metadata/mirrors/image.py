"""MirrorsImage: mirrors and mirrored topics, from configs of the broker with the largest possible node id.

Apache Kafka carries these records through its log and its snapshots, and applies configs of its own node id only. Other
forms harm it: an unknown record type stops it, and so does a broker whose name is no number; 4.3 drops unknown configs
of topics and groups; and kafka-configs 3.9 refuses every change of the default of all brokers while that has unknown
configs, because it takes them for secrets.

The image keeps these configs apart from the properties of brokers, so neither the configuration nor AlterConfigs sees
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.protocol.metadata.records import BROKER_RESOURCE, ConfigRecord
from barnabas.protocol.mirrors.fields import DEFINITION_PREFIX, TOPIC_PREFIX, MirrorFormatError

if TYPE_CHECKING:
    from barnabas.protocol.mirrors.definition import MirrorDefinition
    from barnabas.protocol.mirrors.topic import TopicMirror

MIRRORS_RESOURCE: Final = str(2**31 - 1)
"""Name of the broker resource whose configs are the mirrors."""

UNREADABLE_MIRROR: Final = "?"
"""The mirror of a topic whose record cannot be read. The topic stays read-only."""


def mirror_record(key: str, value: str | None) -> ConfigRecord:
    """Return the record that sets a config of mirrors, or deletes it."""
    return ConfigRecord(BROKER_RESOURCE, MIRRORS_RESOURCE, key, value)


def is_mirror_record(record: ConfigRecord) -> bool:
    """Return whether a config is a definition or a mirrored topic."""
    return (
        record.resource_name == MIRRORS_RESOURCE
        and record.resource_type == BROKER_RESOURCE
        and record.name.startswith((DEFINITION_PREFIX, TOPIC_PREFIX))
    )


_EMPTY: Final[Mapping[Any, Any]] = MappingProxyType({})


class MirrorsImage(NamedTuple):
    """Definitions by name, and mirrored topics by topic, which may no longer exist: see `MetadataImage.mirror_of`.

    `texts` are the stored values by the names of their configs; `unreadable` names those that are not valid, with a
    clause each. A definition that is not valid runs no mirror.
    """

    definitions: Mapping[str, MirrorDefinition] = _EMPTY
    topics: Mapping[str, TopicMirror] = _EMPTY
    texts: Mapping[str, str] = _EMPTY
    unreadable: Mapping[str, str] = _EMPTY

    def topics_of(self, mirror: str) -> dict[str, TopicMirror]:
        """Return the topics of one mirror, in every state."""
        return {topic: each for topic, each in self.topics.items() if each.mirror == mirror}

    def records(self) -> Iterator[ConfigRecord]:
        """Yield the records that rebuild this image."""
        for key, text in self.texts.items():
            yield mirror_record(key, text)

    def complaints(self) -> list[str]:
        """Return sentences about configs that cannot be read."""
        return [f"{key} cannot be read and is ignored: {reason}" for key, reason in self.unreadable.items()]


class MirrorsBuilder:
    """Builds the next value. It copies the maps at the first record, because most changes have none."""

    def __init__(self, start: MirrorsImage) -> None:
        self._start = start
        self._changed: _Maps | None = None

    def apply(self, record: ConfigRecord) -> None:
        """Apply a record of `is_mirror_record`. Call it in log order."""
        maps = self._changed
        if maps is None:
            maps = self._changed = _Maps(self._start)
        maps.set(record.name, record.value)

    @property
    def current(self) -> MirrorsImage:
        """The value so far. Later records change it."""
        return self._start if self._changed is None else self._changed.image()

    def build(self) -> MirrorsImage:
        """Return the new value; do not use the builder afterwards."""
        return self.current


class _Maps:
    """Changing copies of the maps of a MirrorsImage."""

    def __init__(self, start: MirrorsImage) -> None:
        self.definitions = dict(start.definitions)
        self.topics = dict(start.topics)
        self.texts = dict(start.texts)
        self.unreadable = dict(start.unreadable)

    def image(self) -> MirrorsImage:
        return MirrorsImage(self.definitions, self.topics, self.texts, self.unreadable)

    def set(self, key: str, text: str | None) -> None:
        self.unreadable.pop(key, None)
        if text is None:
            self.texts.pop(key, None)
        else:
            self.texts[key] = text
        try:
            if key.startswith(DEFINITION_PREFIX):
                self._set_definition(key.removeprefix(DEFINITION_PREFIX), text)
            else:
                self._set_topic(key.removeprefix(TOPIC_PREFIX), text)
        except MirrorFormatError as error:
            self.unreadable[key] = str(error)

    def _set_definition(self, name: str, text: str | None) -> None:
        self.definitions.pop(name, None)
        if text is not None:
            from barnabas.protocol.mirrors.definition import parse_definition  # here: most brokers have no mirrors

            self.definitions[name] = parse_definition(name, text)

    def _set_topic(self, topic: str, text: str | None) -> None:
        self.topics.pop(topic, None)
        if text is None:
            return
        from barnabas.protocol.mirrors.topic import TopicMirror, TopicMirrorState, parse_topic_mirror

        try:
            self.topics[topic] = parse_topic_mirror(text)
        except MirrorFormatError:
            # Writable, it could diverge from its source for good.
            self.topics[topic] = TopicMirror(UNREADABLE_MIRROR, b"", state=TopicMirrorState.FAILED)
            raise
