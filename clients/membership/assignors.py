"""How a group's leader shares out partitions: Kafka's assignors by their names, of which the eager ones are here.

Members with an instance id come first, by it; the others by their member ids. So a restart of static members changes
nothing. The results of `range` and `roundrobin` are those of Kafka's assignors for members without racks, whichever
library leads the group. Source: Kafka's RangeAssignor, RoundRobinAssignor, AbstractPartitionAssignor.MemberInfo.
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
    """Of each topic consecutive partitions, as many to each member; the first ones take one more of what is left.

    `counts` are the topics' partitions; a topic without an entry, or without partitions, is nobody's.
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
    """All partitions in order, one to each member in turn; who has not subscribed to the topic is passed over."""
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
