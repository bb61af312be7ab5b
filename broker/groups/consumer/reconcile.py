"""How a member gets from its current assignment to its target, one heartbeat at a time.

    it has partitions that are not in its target    it stays in its epoch until it reports that it gave them up
    partitions of its target have other owners      it enters the target's epoch with the free ones, and waits for those
    all of its target is free                       it enters the target's epoch and is stable

An assigned partition carries the epoch of its assignment, which tells a late commit from a valid one.
Source: Kafka's CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from barnabas.broker.groups.consumer.member import ConsumerGroupMember, MemberState
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.consumer_group_values import PartitionEpochs, Partitions

Owned = Mapping[bytes, Sequence[int]]
"""The partitions that a member reports, by topic id."""


class Reconciliation(NamedTuple):
    """The input of one step.

    topics    the existing topics that the member reads
    owners    the present owner of each partition
    owned     the partitions that the member reports; None if it reports nothing
    """

    target_epoch: int
    target: Partitions
    topics: frozenset[bytes]
    owners: Mapping[tuple[bytes, int], str]
    owned: Owned | None


def reconcile(
    member: ConsumerGroupMember, wanted: Reconciliation, *, subscription_changed: bool
) -> ConsumerGroupMember:
    """Return the member after this heartbeat; the same object if nothing changes.

    Raises BrokerError FENCED_MEMBER_EPOCH for a member in a state of a newer Kafka, unless it reports no partitions.
    """
    if member.is_reconciled_to(wanted.target_epoch) and not subscription_changed:
        return member
    if member.state == MemberState.STABLE and member.member_epoch == wanted.target_epoch:
        return _give_up_topics(member, wanted)
    if member.state == MemberState.UNREVOKED_PARTITIONS and _still_has(wanted.owned, member.pending_revocation):
        return _give_up_topics(member, wanted) if subscription_changed else member
    if member.state == MemberState.UNKNOWN:
        if wanted.owned is None or wanted.owned:
            raise BrokerError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"member {member.member_id!r} is in an unknown state; it must join again",
            )
        member = replace(member, member_epoch=wanted.target_epoch)
    return _next(member, wanted)


def _next(member: ConsumerGroupMember, wanted: Reconciliation) -> ConsumerGroupMember:
    assigned: dict[bytes, dict[int, int]] = {}
    revoked: dict[bytes, dict[int, int]] = {}
    pending: dict[bytes, list[int]] = {}
    is_waiting = False
    for topic_id in sorted(wanted.target.keys() | member.assigned.keys()):
        target = wanted.target.get(topic_id, frozenset()) if topic_id in wanted.topics else frozenset()
        has = member.assigned.get(topic_id, {})
        kept = {number: epoch for number, epoch in has.items() if number in target}
        gone = {number: epoch for number, epoch in has.items() if number not in target}
        free = [number for number in sorted(target - kept.keys()) if _is_free(member, wanted, topic_id, number)]
        is_waiting |= len(free) + len(kept) < len(target)
        if kept:
            assigned[topic_id] = kept
        if gone:
            revoked[topic_id] = gone
        if free:
            pending[topic_id] = free
    if revoked and _still_has(wanted.owned, revoked):
        return _in_epoch(member, member.member_epoch, MemberState.UNREVOKED_PARTITIONS, assigned, revoked)
    for topic_id, numbers in pending.items():
        assigned.setdefault(topic_id, {}).update(dict.fromkeys(numbers, wanted.target_epoch))
    state = MemberState.UNRELEASED_PARTITIONS if is_waiting else MemberState.STABLE
    return _in_epoch(member, wanted.target_epoch, state, assigned, {})


def _give_up_topics(member: ConsumerGroupMember, wanted: Reconciliation) -> ConsumerGroupMember:
    """Revoke the topics that the member no longer reads, before there is a new target."""
    gone = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id not in wanted.topics}
    if not gone:
        return member
    assigned = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id in wanted.topics}
    revoked = dict(member.pending_revocation)
    for topic_id, epochs in gone.items():
        revoked[topic_id] = {**revoked.get(topic_id, {}), **epochs}
    if _still_has(wanted.owned, revoked):
        return _in_epoch(member, member.member_epoch, MemberState.UNREVOKED_PARTITIONS, assigned, revoked)
    return _in_epoch(member, member.member_epoch, member.state, assigned, member.pending_revocation)


def _in_epoch(
    member: ConsumerGroupMember,
    epoch: int,
    state: MemberState,
    assigned: PartitionEpochs,
    pending_revocation: PartitionEpochs,
) -> ConsumerGroupMember:
    return replace(
        member,
        member_epoch=epoch,
        previous_member_epoch=member.member_epoch,
        state=state,
        assigned=assigned,
        pending_revocation=pending_revocation,
    )


def _is_free(member: ConsumerGroupMember, wanted: Reconciliation, topic_id: bytes, number: int) -> bool:
    owner = wanted.owners.get((topic_id, number))
    return owner in (None, member.member_id) or number in member.pending_revocation.get(topic_id, {})


def _still_has(owned: Owned | None, revoked: PartitionEpochs) -> bool:
    """Return whether the member still has one of these partitions; without a report it has."""
    if owned is None:
        return True
    return any(number in revoked.get(topic_id, {}) for topic_id, numbers in owned.items() for number in numbers)
