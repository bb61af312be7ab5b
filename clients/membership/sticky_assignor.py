"""Kafka's `cooperative-sticky`: who has partitions keeps them where that is even, and none ever has two owners.

Every member says in its subscription what it still has (its claims) and from which generation. A partition that is to
move is given to nobody as long as another member claims it: that one sees that it is not assigned to it any more, gives
it up and joins again, and the next generation gives it to its new owner. Members go on reading all others meanwhile.

Even means that no member could take a partition from another one that has two more than it. A partition that two
claim is the newer generation's; of one generation it is nobody's, since one of the two must be wrong. Which partitions
move may differ from what Kafka's assignor chooses; what a member may rely on, and the bytes, do not.
Source: Kafka's CooperativeStickyAssignor, AbstractStickyAssignor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.clients.membership.subscriber import Assignment, Subscriber, assignment_order
from barnabas.protocol.topic_partition import TopicPartition


def assign_cooperative_sticky(members: Sequence[Subscriber], counts: Mapping[str, int]) -> Assignment:
    """Even and sticky, without the partitions that another member has to give up first. `counts` as for the others."""
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
    for partition in sorted(homeless, key=lambda each: len(subscribers[each.topic])):  # the choosy ones first
        assignment[_least_loaded(assignment, subscribers[partition.topic])].append(partition)
    while _level(assignment, subscribers):
        pass
    return {member_id: sorted(partitions) for member_id, partitions in assignment.items()}


def _owners(members: Sequence[Subscriber]) -> dict[TopicPartition, str]:
    """Whose claim counts."""
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
    """Move partitions from who has at least two more than another subscriber of theirs; whether any was moved.

    Ends, because each move lowers the sum of the squares of what members have.
    """
    moved = False
    for member_id in sorted(assignment, key=lambda each: len(assignment[each]), reverse=True):
        partitions = assignment[member_id]
        settled: set[str] = set()  # of these topics nobody has less, and others only get more while this one gives away
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
