"""The committed offsets of all groups: a map that only replay changes. No I/O.

    group id -> {(topic, partition) -> OffsetCommitValue}

A group without offsets has no entry. The cost of reading and changing a group does not depend on the number of groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from barnabas.broker.groups.log.records import GroupRecord
from barnabas.protocol.groups.keys import OffsetCommitKey
from barnabas.protocol.groups.values import OffsetCommitValue
from barnabas.protocol.uuids import ZERO_UUID

PartitionKey = tuple[str, int]
"""Topic and partition."""

NO_OFFSETS: Final[Mapping[PartitionKey, OffsetCommitValue]] = MappingProxyType({})


class CommittedOffsets:
    """Committed offsets by group, topic and partition."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[PartitionKey, OffsetCommitValue]] = {}

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups

    def group_ids(self) -> Iterable[str]:
        """Return the groups that have an offset."""
        return self._groups

    def of(self, group_id: str) -> Mapping[PartitionKey, OffsetCommitValue]:
        """Return a group's offsets, possibly none."""
        return self._groups.get(group_id, NO_OFFSETS)

    def snapshot(self) -> list[tuple[str, dict[PartitionKey, OffsetCommitValue]]]:
        """Return a copy for another thread, in which each group is consistent."""
        return [(group_id, offsets.copy()) for group_id, offsets in self._groups.copy().items()]

    def count(self) -> int:
        """Return the number of offsets of all groups."""
        return sum(map(len, self._groups.values()))

    def replay(self, record: GroupRecord) -> None:
        """Apply a record of the log; records of other kinds are ignored."""
        key, value = record
        if not isinstance(key, OffsetCommitKey):
            return
        if isinstance(value, OffsetCommitValue):
            self.put(key, value)
        else:
            self._remove(key)

    def put(self, key: OffsetCommitKey, value: OffsetCommitValue) -> None:
        """Set one offset."""
        offsets = self._groups.get(key.group)
        if offsets is None:
            offsets = self._groups[key.group] = {}
        offsets[key.topic, key.partition] = value

    def adopt(self, groups: Mapping[str, dict[PartitionKey, OffsetCommitValue]]) -> None:
        """Add the loaded offsets of groups that have no entry yet."""
        self._groups.update(groups)

    def forget(self, group_ids: Iterable[str]) -> None:
        """Drop whole groups whose log is deleted."""
        for group_id in group_ids:
            self._groups.pop(group_id, None)

    def of_topics(self, topics: Mapping[str, bytes]) -> Iterator[OffsetCommitKey]:
        """Return the offsets in topics of these names that have these ids, or no known id."""
        for group_id, offsets in self._groups.items():
            for (topic, partition), value in offsets.items():
                topic_id = topics.get(topic)
                if topic_id is not None and value.topic_id in (topic_id, ZERO_UUID):
                    yield OffsetCommitKey(group_id, topic, partition)

    def _remove(self, key: OffsetCommitKey) -> None:
        offsets = self._groups.get(key.group)
        if offsets is not None and offsets.pop((key.topic, key.partition), None) is not None and not offsets:
            del self._groups[key.group]
