"""Assignors by which a group's leader shares out partitions, under Kafka's names; the eager ones are in this file.

Members are ordered: static ones by instance id, then dynamic ones by member id. So a restart of static members changes
no assignment. `range` and `roundrobin` assign as Kafka's do for members without racks, so the result does not depend
on the client library that leads.
Source: Kafka's RangeAssignor, RoundRobinAssignor, AbstractPartitionAssignor.MemberInfo.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Final

from barnabas.clients.config import COOPERATIVE_STICKY
from barnabas.clients.membership.sticky_assignor import assign_cooperative_sticky
from barnabas.clients.membership.subscriber import Assignment, Subscriber, assignment_order
from barnabas.protocol.topic_partition import TopicPartition


def assign_range(members: Sequence[Subscriber], counts: Mapping[str, int]) -> Assignment:
    """Assign consecutive partitions of each topic in equal shares; the first members take one more of a remainder.

    `counts` are the topics' partition counts. A topic without an entry or without partitions is not assigned.
    """
    assignment: Assignment = {member.member_id: [] for member in members}
    ordered = sorted(members, key=assignment_order)
    for topic in sorted(counts):
        subscribers = [member for member in ordered if topic in member.topics]
        if not subscribers:
            continue
        each, extra = divmod(counts[topic], len(subscribers))
        begin = 0
        for index, member in enumerate(subscribers):
            end = begin + each + (index < extra)
            assignment[member.member_id] += [TopicPartition(topic, number) for number in range(begin, end)]
            begin = end
    return assignment


def assign_round_robin(members: Sequence[Subscriber], counts: Mapping[str, int]) -> Assignment:
    """Assign all partitions in order, one to each member in turn, skipping members without the topic."""
    assignment: Assignment = {member.member_id: [] for member in members}
    turns = cycle(sorted(members, key=assignment_order))
    subscribed = {topic for member in members for topic in member.topics}
    for topic in sorted(subscribed & counts.keys()):
        for number in range(counts[topic]):
            member = next(each for each in turns if topic in each.topics)
            assignment[member.member_id].append(TopicPartition(topic, number))
    return assignment


ASSIGNORS: Final[Mapping[str, Callable[[Sequence[Subscriber], Mapping[str, int]], Assignment]]] = {
    "range": assign_range,
    "roundrobin": assign_round_robin,
    COOPERATIVE_STICKY: assign_cooperative_sticky,
}
