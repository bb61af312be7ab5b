"""Kafka's `cooperative-sticky`: members keep their partitions as far as that is even, and none ever has two owners.

Every member's subscription contains the partitions that it still has (its claims), with their generation. A partition
that is to move is not assigned while its old owner claims it. The old owner sees that it lost the partition, gives it
up and joins again, and the next generation assigns it to the new owner. All other partitions are read on meanwhile.

Even means that no member has two partitions more than another one that could take one of them. If two members claim a
partition, the newer generation counts; within one generation neither does, since one of the two must be wrong. The
choice of partitions that move may differ from Kafka's; the guarantees to members, and the bytes, do not.
Source: Kafka's CooperativeStickyAssignor, AbstractStickyAssignor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.clients.membership.subscriber import Assignment, Subscriber, assignment_order
from barnabas.protocol.topic_partition import TopicPartition


def assign_cooperative_sticky(members: Sequence[Subscriber], counts: Mapping[str, int]) -> Assignment:
    """Assign evenly and stickily, leaving out partitions that another member has to give up first.

    `counts` are the topics' partition counts.
    """
    assignment = _balanced(members, counts)
    claims: dict[TopicPartition, set[str]] = {}
    for member in members:
        for partition in member.owned:
            claims.setdefault(partition, set()).add(member.member_id)
    return {
        member_id: [each for each in partitions if each not in claims or member_id in claims[each]]
        for member_id, partitions in assignment.items()
    }


def _balanced(members: Sequence[Subscriber], counts: Mapping[str, int]) -> Assignment:
    ordered = sorted(members, key=assignment_order)
    assignment: Assignment = {member.member_id: [] for member in ordered}
    subscribers = {
        topic: [member.member_id for member in ordered if topic in member.topics] for topic in sorted(counts)
    }
    owners = _owners(members)
    homeless = []
    for topic, member_ids in subscribers.items():
        for number in range(counts[topic] if member_ids else 0):
            partition = TopicPartition(topic, number)
            owner = owners.get(partition)
            if owner is not None and owner in member_ids:
                assignment[owner].append(partition)
            else:
                homeless.append(partition)
    for partition in sorted(homeless, key=lambda each: len(subscribers[each.topic])):  # fewest subscribers first
        assignment[_least_loaded(assignment, subscribers[partition.topic])].append(partition)
    while _level(assignment, subscribers):
        pass
    return {member_id: sorted(partitions) for member_id, partitions in assignment.items()}


def _owners(members: Sequence[Subscriber]) -> dict[TopicPartition, str]:
    """The member whose claim counts, by partition."""
    best: dict[TopicPartition, tuple[int, str | None]] = {}
    for member in members:
        for partition in member.owned:
            generation, _ = best.get(partition, (None, None))
            if generation is None or member.generation > generation:
                best[partition] = member.generation, member.member_id
            elif member.generation == generation:
                best[partition] = generation, None
    return {partition: owner for partition, (_, owner) in best.items() if owner is not None}


def _level(assignment: Assignment, subscribers: Mapping[str, Sequence[str]]) -> bool:
    """Move partitions from members that have at least two more than another subscriber. Returns whether any moved.

    Repeating this ends, because each move lowers the sum of the squares of the members' partition counts.
    """
    moved = False
    for member_id in sorted(assignment, key=lambda each: len(assignment[each]), reverse=True):
        partitions = assignment[member_id]
        settled: set[str] = (
            set()
        )  # topics without a taker: the other subscribers only gain while this member gives away
        for index in range(len(partitions) - 1, -1, -1):
            topic = partitions[index].topic
            if topic in settled:
                continue
            taker = _least_loaded(assignment, subscribers[topic])
            if len(assignment[taker]) + 1 < len(partitions):
                assignment[taker].append(partitions.pop(index))
                moved = True
            else:
                settled.add(topic)
    return moved


def _least_loaded(assignment: Assignment, member_ids: Sequence[str]) -> str:
    return min(member_ids, key=lambda each: len(assignment[each]))
