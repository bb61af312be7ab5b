"""A heartbeat of a member of a consumer group: it joins, stays, gives partitions up, gets others, and leaves.

Order of the checks: the request by itself (INVALID_REQUEST, UNSUPPORTED_ASSIGNOR); the group (GROUP_ID_NOT_FOUND,
GROUP_MAX_SIZE_REACHED); the member (UNKNOWN_MEMBER_ID, UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID); its epoch
(FENCED_MEMBER_EPOCH if it is neither the member's nor, after a lost response, the previous one); its expression
(INVALID_REGULAR_EXPRESSION). Source: Kafka's GroupMetadataManager (consumerGroupHeartbeat, consumerGroupLeave),
GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

from barnabas.broker.groups.consumer.member import ConsumerGroupMember
from barnabas.broker.groups.consumer.records import current_record, member_record, replacement_records
from barnabas.broker.groups.consumer.regexes import update_regexes
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.consumer_group_heartbeat import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    UNCHANGED_TIMEOUT,
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from barnabas.protocol.messages.groups.explain_group import GroupEventKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.broker.groups.client import JoiningClient
    from barnabas.broker.groups.consumer.change import GroupChange
    from barnabas.broker.groups.consumer.reconcile import Owned


def validate_heartbeat(request: ConsumerGroupHeartbeatRequest, assignors: Sequence[str]) -> None:
    """Check the request by itself. Raises BrokerError INVALID_REQUEST or UNSUPPORTED_ASSIGNOR."""
    epoch = request.member_epoch
    needs_id = request.requires_member_id or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH
    _refuse_if(needs_id and not request.member_id, "the member id is empty")
    _refuse_if(not request.group_id, "the group id is empty")
    _refuse_if(request.instance_id == "", "the instance id is empty")
    _refuse_if(request.rack_id == "", "the rack id is empty")
    if epoch == JOIN_EPOCH:
        _refuse_if(request.rebalance_timeout_ms == UNCHANGED_TIMEOUT, "a join needs a rebalance timeout")
        _refuse_if(request.topics is None or bool(request.topics), "a join needs an empty list of partitions")
        _refuse_if(request.topic_names is None and request.topic_regex is None, "a join needs topics or an expression")
    elif epoch == LEAVE_STATIC_EPOCH:
        _refuse_if(request.instance_id is None, "only a static member may leave for a while")
    else:
        _refuse_if(epoch < LEAVE_STATIC_EPOCH, f"there is no member epoch {epoch}")
    if request.assignor is not None and request.assignor not in assignors:
        raise BrokerError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"there is no server assignor {request.assignor!r}, only {', '.join(assignors)}",
        )


def heartbeat(
    change: GroupChange, request: ConsumerGroupHeartbeatRequest, client: JoiningClient
) -> ConsumerGroupHeartbeatResponse:
    """Return the response, valid once the records of `change` are written. Raises BrokerError."""
    settings = change.settings
    change.access = client.access
    member_id = request.member_id or str(uuid4())
    ensure_room(change, member_id, settings.max_size)
    member = _member_of(change, request, member_id)
    updated = replace(
        member,
        instance_id=request.instance_id or member.instance_id,
        rack_id=request.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms
        if request.rebalance_timeout_ms == UNCHANGED_TIMEOUT
        else request.rebalance_timeout_ms,
        assignor=request.assignor or member.assignor,
        topic_names=member.topic_names if request.topic_names is None else frozenset(request.topic_names),
        topic_regex=member.topic_regex if request.topic_regex is None else request.topic_regex,
        client_id=client.client_id,
        client_host=client.host,
        classic=None,
    )
    updated = follow(change, member, updated, request.owned)
    is_full = (
        request.rebalance_timeout_ms != UNCHANGED_TIMEOUT
        and (request.topic_names is not None or request.topic_regex is not None)
        and request.topics is not None
    )
    answer = ConsumerGroupHeartbeatResponse(
        member_id=updated.member_id,
        member_epoch=updated.member_epoch,
        heartbeat_interval_ms=settings.heartbeat_interval_ms,
    )
    if request.member_epoch == JOIN_EPOCH or is_full or updated.assigned != member.assigned:
        topics = [
            TopicPartitions(topic_id=topic_id, partitions=tuple(sorted(epochs)))
            for topic_id, epochs in updated.assigned.items()
        ]
        answer.assignment = Assignment(topics=topics)
    return answer


def follow(
    change: GroupChange,
    member: ConsumerGroupMember,
    updated: ConsumerGroupMember,
    owned: Owned | None,
) -> ConsumerGroupMember:
    """Add the records that follow from a member's metadata: epoch, targets, and its current assignment."""
    group = change.group
    members = {**group.members, updated.member_id: updated}
    replaced = group.static_member(updated.instance_id)
    if replaced is not None and replaced.member_id != updated.member_id:
        members.pop(replaced.member_id, None)
    names_changed = False
    if updated != member:
        change.records.append(member_record(group.group_id, updated))
        names_changed = updated.topic_names != member.topic_names
    regexes_changed = update_regexes(change, members, member, updated)
    is_new = member.member_id not in group.members and replaced is None
    changed = names_changed or regexes_changed or is_new
    if is_new:
        change.report(GroupEventKind.JOINED, updated)
    elif replaced is not None and replaced.member_id != updated.member_id:
        change.report(GroupEventKind.JOINED_AGAIN, updated)
    if changed or not group.is_checked:
        change.bump_epoch(members.values(), bump=changed)
    target = change.target(members, updated)
    return change.reconcile(updated, target, owned, subscription_changed=changed)


def leaving(change: GroupChange, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupMember | None:
    """Return the member to remove; None if it leaves for a while, which `change` records. Raises BrokerError."""
    group = change.group
    if request.instance_id is None:
        return group.member(request.member_id)
    member = static_member(change, request.instance_id, request.member_id)
    if request.member_epoch != LEAVE_STATIC_EPOCH:
        return member
    away = replace(
        member,
        member_epoch=LEAVE_STATIC_EPOCH,
        pending_revocation={},
        assigned={topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.assigned.items()},
    )
    change.records.append(current_record(group.group_id, away))
    return None


def ensure_room(change: GroupChange, member_id: str, max_size: int) -> None:
    """Raise BrokerError GROUP_MAX_SIZE_REACHED for a new member of a full group."""
    if len(change.group.members) >= max_size and member_id not in change.group.members:
        raise BrokerError(ErrorCode.GROUP_MAX_SIZE_REACHED, f"the group has {max_size} members, no more may come")


def replace_static(change: GroupChange, current: ConsumerGroupMember, member_id: str) -> ConsumerGroupMember:
    """Return the static member under its new id, with the assignment of the old one."""
    new = replace(current, member_id=member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=JOIN_EPOCH)
    change.records += replacement_records(
        change.group.group_id, current.member_id, new, change.group.target.get(current.member_id, {})
    )
    return new


def static_member(change: GroupChange, instance_id: str, member_id: str) -> ConsumerGroupMember:
    """Return the member of an instance. Raises BrokerError UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    member = change.group.static_member(instance_id)
    if member is None:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"there is no instance {instance_id!r}")
    if member.member_id != member_id:
        raise BrokerError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"instance {instance_id!r} is member {member.member_id!r} now, not {member_id!r}",
        )
    return member


def _member_of(change: GroupChange, request: ConsumerGroupHeartbeatRequest, member_id: str) -> ConsumerGroupMember:
    group = change.group
    joins = request.member_epoch == JOIN_EPOCH
    if request.instance_id is None:
        member = group.members.get(member_id, ConsumerGroupMember(member_id)) if joins else group.member(member_id)
        _validate_epoch(member, request)
        return member
    if not joins:
        member = static_member(change, request.instance_id, member_id)
        _validate_epoch(member, request)
        return member
    current = group.static_member(request.instance_id)
    if current is None:
        return group.members.get(member_id, ConsumerGroupMember(member_id))
    if current.classic is None and current.member_epoch != LEAVE_STATIC_EPOCH:
        raise BrokerError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"instance {request.instance_id!r} belongs to member {current.member_id!r}, which has not left",
        )
    return replace_static(change, current, member_id)


def _validate_epoch(member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest) -> None:
    epoch = request.member_epoch
    if epoch in (JOIN_EPOCH, member.member_epoch):
        return
    if epoch < member.member_epoch and epoch == member.previous_member_epoch and _has_at_most(member, request):
        return  # the response with the new epoch was lost
    raise BrokerError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"member {member.member_id!r} is in epoch {member.member_epoch}, not {epoch}; it must give up its partitions "
        "and join again",
    )


def _has_at_most(member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest) -> bool:
    return request.topics is not None and all(
        number in member.assigned.get(each.topic_id, {}) for each in request.topics for number in each.partitions
    )


def _refuse_if(wrong: bool, message: str) -> None:
    if wrong:
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)
