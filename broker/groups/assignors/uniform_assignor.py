"""uniform: members get equal numbers of partitions, and keep their present ones as far as that allows.

    same topics         a share is the number of partitions divided by that of members, or one more. A member above its
                        share gives up the rest, a member below it gets free partitions
    different topics    a free partition goes to the least loaded reader of its topic, beginning with the topics that
                        have most partitions per reader. Then partitions move from the most to the least loaded reader
                        of a topic while their loads differ by more than one, until no topic changes

Source: Kafka's UniformAssignor, which may choose another of several equally good assignments.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.groups.assignors.assignor import GroupSpec
from barnabas.protocol.groups.consumer_group_values import Partitions

MAX_ROUNDS: Final = 16
"""Passes over all topics; Kafka has the same bound."""

_Assigned = dict[str, dict[bytes, set[int]]]


class UniformAssignor:
    """The assignor `uniform`."""

    name: Final = "uniform"

    def assign(self, group: GroupSpec) -> dict[str, Partitions]:
        """Return the new target of every member."""
        if not group.members:
            return {}
        assigned, free = _kept(group)
        if group.is_homogeneous:
            _share(assigned, free, sum(group.partitions.values()))
        else:
            _Balance(group, assigned).balance(free)
        return {
            member_id: {topic_id: frozenset(numbers) for topic_id, numbers in topics.items() if numbers}
            for member_id, topics in assigned.items()
        }


def _kept(group: GroupSpec) -> tuple[_Assigned, list[tuple[bytes, int]]]:
    """Return the members' partitions of topics that they still read, and the free partitions."""
    free = {(topic_id, number) for topic_id, count in group.partitions.items() for number in range(count)}
    assigned: _Assigned = {}
    for member_id, member in group.members.items():
        kept: dict[bytes, set[int]] = {}
        for topic_id in member.target.keys() & member.topics:
            numbers = {number for number in member.target[topic_id] if (topic_id, number) in free}
            free.difference_update((topic_id, number) for number in numbers)
            kept[topic_id] = numbers
        assigned[member_id] = kept
    return assigned, sorted(free)


def _share(assigned: _Assigned, free: list[tuple[bytes, int]], total: int) -> None:
    """Give equal shares. Members with most partitions get the larger shares, so that fewer partitions move."""
    share, extra = divmod(total, len(assigned))
    loads = {member_id: sum(map(len, topics.values())) for member_id, topics in assigned.items()}
    shares = {}
    for member_id in sorted(assigned, key=loads.__getitem__, reverse=True):
        shares[member_id] = share + (extra > 0)
        extra -= extra > 0
    for member_id, topics in assigned.items():
        for topic_id in sorted(topics):
            for number in sorted(topics[topic_id], reverse=True):
                if loads[member_id] > shares[member_id]:
                    topics[topic_id].discard(number)
                    free.append((topic_id, number))
                    loads[member_id] -= 1
    free.sort(reverse=True)
    for member_id, topics in assigned.items():
        for _ in range(shares[member_id] - loads[member_id]):
            topic_id, number = free.pop()
            topics.setdefault(topic_id, set()).add(number)
    assert not free


class _Balance:
    """Members that read different topics."""

    def __init__(self, group: GroupSpec, assigned: _Assigned) -> None:
        self._assigned = assigned
        self._loads = {member_id: sum(map(len, topics.values())) for member_id, topics in assigned.items()}
        self._readers: dict[bytes, list[str]] = {topic_id: [] for topic_id in group.partitions}
        for member_id, member in group.members.items():
            for topic_id in member.topics:
                self._readers[topic_id].append(member_id)
        self._order = sorted(
            (topic_id for topic_id in group.partitions if self._readers[topic_id]),
            key=lambda topic_id: (
                -group.partitions[topic_id] / len(self._readers[topic_id]),
                len(self._readers[topic_id]),
                topic_id,
            ),
        )

    def balance(self, free: list[tuple[bytes, int]]) -> None:
        """Assign the `free` partitions, then level the loads."""
        by_topic: dict[bytes, list[int]] = {}
        for topic_id, number in free:
            by_topic.setdefault(topic_id, []).append(number)
        for topic_id in self._order:
            for number in by_topic.get(topic_id, ()):
                self._give(topic_id, number, min(self._readers[topic_id], key=self._loads.__getitem__))
        for _ in range(MAX_ROUNDS):
            moved = [self._level(topic_id) for topic_id in self._order]
            if not any(moved):
                return

    def _level(self, topic_id: bytes) -> bool:
        """Level the readers of a topic; return whether a partition moved."""
        readers = self._readers[topic_id]
        moved = False
        while True:
            givers = [each for each in readers if self._assigned[each].get(topic_id)]
            if not givers:
                return moved
            most = max(givers, key=self._loads.__getitem__)
            least = min(readers, key=self._loads.__getitem__)
            if self._loads[most] - self._loads[least] <= 1:
                return moved
            number = max(self._assigned[most][topic_id])
            self._assigned[most][topic_id].discard(number)
            self._loads[most] -= 1
            self._give(topic_id, number, least)
            moved = True

    def _give(self, topic_id: bytes, number: int, member_id: str) -> None:
        self._assigned[member_id].setdefault(topic_id, set()).add(number)
        self._loads[member_id] += 1
