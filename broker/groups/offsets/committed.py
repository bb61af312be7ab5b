"""The committed offsets of all groups, as the log says: a map that replay alone changes. No I/O.

    group id -> {(topic, partition) -> OffsetCommitValue}

A group without an offset has no entry, so the groups of the map are those that have any. Reading and changing one
group costs the same however many others there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from barnabas.broker.groups.log.records import GroupRecord
from barnabas.protocol.groups.keys import OffsetCommitKey
from barnabas.protocol.groups.offsets import OffsetCommitValue
from barnabas.protocol.uuids import ZERO_UUID

PartitionKey = tuple[str, int]
"""Topic and partition."""

NO_OFFSETS: Final[Mapping[PartitionKey, OffsetCommitValue]] = MappingProxyType({})


class CommittedOffsets:
    """By group, topic and partition."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[PartitionKey, OffsetCommitValue]] = {}

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups

    def group_ids(self) -> Iterable[str]:
        """The groups that have an offset."""
        return self._groups

    def of(self, group_id: str) -> Mapping[PartitionKey, OffsetCommitValue]:
        """A group's offsets; empty for one that has none."""
        return self._groups.get(group_id, NO_OFFSETS)

    def snapshot(self) -> list[tuple[str, dict[PartitionKey, OffsetCommitValue]]]:
        """A copy for another thread: each group as it is at one moment."""
        return [(group_id, offsets.copy()) for group_id, offsets in self._groups.copy().items()]

    def count(self) -> int:
        """Offsets of all groups."""
        return sum(map(len, self._groups.values()))

    def replay(self, record: GroupRecord) -> None:
        """Make a record of the log state; those of other kinds are not its business."""
        key, value = record
        if not isinstance(key, OffsetCommitKey):
            return
        if isinstance(value, OffsetCommitValue):
            self.put(key, value)
        else:
            self._remove(key)

    def put(self, key: OffsetCommitKey, value: OffsetCommitValue) -> None:
        """Remember one offset."""
        offsets = self._groups.get(key.group)
        if offsets is None:
            offsets = self._groups[key.group] = {}
        offsets[key.topic, key.partition] = value

    def adopt(self, groups: Mapping[str, dict[PartitionKey, OffsetCommitValue]]) -> None:
        """Take over what was loaded of groups that are not here yet."""
        self._groups.update(groups)

    def forget(self, group_ids: Iterable[str]) -> None:
        """Drop whole groups: their log has gone."""
        for group_id in group_ids:
            self._groups.pop(group_id, None)

    def of_topics(self, topics: Mapping[str, bytes]) -> Iterator[OffsetCommitKey]:
        """The offsets in topics of those names that are of those ids, or of an id that was not known."""
        for group_id, offsets in self._groups.items():
            for (topic, partition), value in offsets.items():
                topic_id = topics.get(topic)
                if topic_id is not None and value.topic_id in (topic_id, ZERO_UUID):
                    yield OffsetCommitKey(group_id, topic, partition)

    def _remove(self, key: OffsetCommitKey) -> None:
        offsets = self._groups.get(key.group)
        if offsets is not None and offsets.pop((key.topic, key.partition), None) is not None and not offsets:
            del self._groups[key.group]
