"""simple: the assignor of share groups. A partition may go to several members.

A topic's partitions (with the same subscription of all members: the partitions of all topics) are shared so that each
has the same number of members, at least one, and each member about the same number of partitions. What a member has is
kept as far as this allows. A partition without initialized state is given to nobody who does not have it.

The shares of the members: with P partitions and M members each partition has `sharing` = ceil(M / P) members, and
member i gets ceil(s * (i + 1)) - ceil(s * i) partitions, s = sharing * P / M. Kafka numbers the members, and visits the
partitions, in the order of Java's hash tables. Here members go by id and partitions by topic id and number, so that the
same group gets the same assignment; with more than one member the numbers are Kafka's, the choice may differ.
Source: Kafka's SimpleAssignor, SimpleHomogeneousAssignmentBuilder, SimpleHeterogeneousAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Final, NamedTuple

from barnabas.protocol.groups.consumer_group_values import Partitions

NAME: Final = "simple"
"""Its name in group.share.assignors."""

_Partition = tuple[bytes, int]


class ShareMemberSpec(NamedTuple):
    """A member: the existing topics that it reads, and its present target."""

    topics: frozenset[bytes]
    target: Partitions


def assign(
    members: Mapping[str, ShareMemberSpec], assignable: Partitions, *, same_topics: bool
) -> dict[str, Partitions]:
    """Return the new target of every member; empty if nobody reads an existing topic.

    `assignable`: the existing partitions with initialized state. `same_topics`: whether all members name the same
    topics, whether they exist or not.
    """
    ids = sorted(members)
    topics = sorted(frozenset().union(*(members[each].topics for each in ids)))
    if not topics:
        return {}
    targets = {each: {topic: set(numbers) for topic, numbers in members[each].target.items()} for each in ids}
    if same_topics:
        for target in targets.values():
            for topic in [each for each in target if each not in topics]:
                del target[topic]
        _Share(ids, topics, assignable, targets).out()
    else:
        for topic in topics:
            readers = [each for each in ids if topic in members[each].topics]
            _Share(readers, [topic], assignable, targets, holders=ids).out()
    return {each: {topic: frozenset(numbers) for topic, numbers in targets[each].items()} for each in ids}


class _Share:
    """The distribution of the partitions of some topics over the members that read them."""

    def __init__(
        self,
        readers: Sequence[str],
        topics: Sequence[bytes],
        assignable: Partitions,
        targets: dict[str, dict[bytes, set[int]]],
        *,
        holders: Sequence[str] | None = None,
    ) -> None:
        """`targets` are changed. `holders`: those that may have a partition now; None: the readers."""
        self._targets = targets
        self._holders = readers if holders is None else holders
        self._partitions = [(topic, number) for topic in topics for number in sorted(assignable.get(topic, ()))]
        count, size = len(self._partitions), len(readers)
        self._sharing = -(-size // count) if count else 0
        share = self._sharing * count / size
        self._wanted = {each: ceil(share * (at + 1)) - ceil(share * at) for at, each in enumerate(readers)}
        self._has: dict[str, list[_Partition]] = {
            each: [(topic, number) for topic in topics for number in sorted(targets[each].get(topic, ()))]
            for each in self._holders
        }
        self._owners: dict[_Partition, list[str]] = {}
        for member_id, has in self._has.items():
            for partition in has:
                self._owners.setdefault(partition, []).append(member_id)

    def out(self) -> None:
        """Take what a member or a partition has too much of, then give what is missing."""
        for member_id in self._holders:
            for partition in self._has[member_id][: max(0, len(self._has[member_id]) - self._wanted.get(member_id, 0))]:
                self._take(partition, member_id)
        for partition, owners in sorted(self._owners.items()):
            for member_id in owners[: max(0, len(owners) - self._sharing)]:
                self._take(partition, member_id)
        self._give()

    def _give(self) -> None:
        unfilled = [each for each, wanted in self._wanted.items() if len(self._has[each]) < wanted]
        for partition in self._partitions:
            self._owners.setdefault(partition, [])
        at, has_given = 0, False
        for partition in sorted(self._owners):
            owners = self._owners[partition]
            while unfilled and len(owners) < self._sharing:
                if at == len(unfilled):
                    if not has_given:
                        break
                    at, has_given = 0, False
                member_id = unfilled[at]
                at += 1
                if member_id in owners:
                    continue
                owners.append(member_id)
                self._has[member_id].append(partition)
                self._targets[member_id].setdefault(partition[0], set()).add(partition[1])
                has_given = True
                if len(self._has[member_id]) >= self._wanted[member_id]:
                    at -= 1
                    del unfilled[at]

    def _take(self, partition: _Partition, member_id: str) -> None:
        self._has[member_id].remove(partition)
        self._owners[partition].remove(member_id)
        self._targets[member_id][partition[0]].discard(partition[1])
