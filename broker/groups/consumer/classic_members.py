"""Members of a consumer group that use the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

A join does what a heartbeat of the consumer protocol does. The generation in its response is the member's epoch. A sync
returns the member's partitions. A heartbeat returns REBALANCE_IN_PROGRESS if the member has to join again. No member
leads, and none waits for the others. Source: Kafka's GroupMetadataManager (classicGroupJoinToConsumerGroup,
classicGroupSyncToConsumerGroup, classicGroupHeartbeatToConsumerGroup, classicGroupLeaveToConsumerGroup).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from barnabas.broker.groups.consumer.group import JOIN
from barnabas.broker.groups.consumer.heartbeat import ensure_room, follow, replace_static, static_member
from barnabas.broker.groups.consumer.member import ConsumerGroupMember, MemberState, without_epochs
from barnabas.broker.groups.consumer.migration import classic_assignment
from barnabas.protocol.errors import BrokerError, DecodeError, ErrorCode
from barnabas.protocol.groups.consumer_group_values import ClassicMemberMetadata, ClassicProtocol
from barnabas.protocol.groups.consumer_protocol import CONSUMER, Subscription, decode_subscription
from barnabas.protocol.messages.groups.join_group import NO_MEMBER_ID, JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.groups.leave_group import LeaveGroupRequest, LeftMember
from barnabas.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.broker.groups.client import JoiningClient
    from barnabas.broker.groups.consumer.change import GroupChange
    from barnabas.broker.groups.consumer.group import ConsumerGroup
    from barnabas.broker.metadata.image import MetadataImage


class ClassicJoin(NamedTuple):
    """`replaced`: the member of the consumer protocol whose place the joining static member takes, if any."""

    response: JoinGroupResponse
    replaced: ConsumerGroupMember | None = None


def join(change: GroupChange, request: JoinGroupRequest, client: JoiningClient) -> ClassicJoin:
    """Return the response, valid once the records of `change` are written. Raises BrokerError."""
    group = change.group
    change.access = client.access
    is_new = request.member_id == NO_MEMBER_ID
    member_id = str(uuid4()) if is_new else request.member_id
    ensure_room(change, member_id, change.context.settings.max_size)
    subscription = _subscription(group, request)
    if is_new and request.requires_known_member_id and request.group_instance_id is None:
        return ClassicJoin(JoinGroupResponse(error=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id))
    replaced = group.static_member(request.group_instance_id)
    if request.group_instance_id is None:
        member = group.members.get(member_id, ConsumerGroupMember(member_id))
    elif not is_new:
        member = static_member(change, request.group_instance_id, member_id)
    elif replaced is None:
        member = ConsumerGroupMember(member_id)
    else:
        member = replace_static(change, replaced, member_id)
    protocols = {protocol.name: protocol.metadata for protocol in reversed(request.protocols)}
    names = list(dict.fromkeys(protocol.name for protocol in request.protocols))
    updated = replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topic_names=frozenset(subscription.topics),
        topic_regex="",
        client_id=client.client_id,
        client_host=client.host,
        classic=ClassicMemberMetadata(
            request.session_timeout_ms, tuple(ClassicProtocol(name, protocols[name]) for name in names)
        ),
    )
    topics = change.image.topics
    owned = {topics[name].topic_id: each for name, each in subscription.owned.items() if name in topics}
    updated = follow(change, member, updated, owned)
    answer = JoinGroupResponse(
        member_id=member_id, generation=updated.member_epoch, protocol_type=CONSUMER, protocol=names[0]
    )
    takes_place = is_new and replaced is not None and replaced.classic is None
    return ClassicJoin(answer, replaced if takes_place else None)


def sync(group: ConsumerGroup, request: SyncGroupRequest, image: MetadataImage) -> SyncGroupResponse:
    """Return the member's partitions. Raises BrokerError."""
    member, classic = classic_member(group, request.member_id, request.group_instance_id)
    _ensure_generation(member, request.generation)
    name, subscription = classic.supported_protocols[0].name, classic.supported_protocols[0].metadata
    if request.protocol_type not in (None, CONSUMER) or request.protocol not in (None, name):
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"the protocol is {CONSUMER} {name}")
    if group.assignment_epoch > member.member_epoch and member.state != MemberState.UNREVOKED_PARTITIONS:
        _ask_to_join(group, member)
        raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS, "there is a new assignment, join again")
    assignment = classic_assignment(without_epochs(member.assigned), subscription, image)
    return SyncGroupResponse(protocol_type=request.protocol_type, protocol=request.protocol, assignment=assignment)


def heartbeat(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
    """Extend the session; return NONE or REBALANCE_IN_PROGRESS. Raises BrokerError."""
    member, classic = classic_member(group, member_id, instance_id)
    _ensure_generation(member, generation)
    group.extend_session(member_id, classic.session_timeout_ms)
    is_behind = member.member_epoch < group.assignment_epoch
    has_more = member.state == MemberState.UNRELEASED_PARTITIONS and not _waits_for_others(group, member)
    if is_behind or member.state == MemberState.UNREVOKED_PARTITIONS or has_more:
        _ask_to_join(group, member)
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def leaving(group: ConsumerGroup, request: LeaveGroupRequest) -> tuple[list[ConsumerGroupMember], list[LeftMember]]:
    """Return the members to remove, and the result for each."""
    gone: dict[str, ConsumerGroupMember] = {}
    results = []
    for each in request.leaving:
        error = ErrorCode.NONE
        try:
            member = (
                group.member(each.member_id)
                if each.group_instance_id is None
                else _by_instance(group, each.member_id, each.group_instance_id)
            )
            gone[member.member_id] = member
        except BrokerError as refused:
            error = refused.code
        results.append(LeftMember(member_id=each.member_id, group_instance_id=each.group_instance_id, error=error))
    return list(gone.values()), results


def classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> tuple[ConsumerGroupMember, ClassicMemberMetadata]:
    """Return a classic member and its metadata. Raises BrokerError UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    member = group.member(member_id) if instance_id is None else _by_instance(group, member_id, instance_id)
    if member.member_id != member_id:
        raise BrokerError(ErrorCode.FENCED_INSTANCE_ID, f"instance {instance_id!r} is {member.member_id!r} now")
    if member.classic is None:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"member {member_id!r} does not use the classic protocol")
    return member, member.classic


def _by_instance(group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerGroupMember:
    member = group.static_member(instance_id)
    if member is None:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"there is no instance {instance_id!r}")
    if member_id not in (NO_MEMBER_ID, member.member_id):
        raise BrokerError(ErrorCode.FENCED_INSTANCE_ID, f"instance {instance_id!r} is {member.member_id!r} now")
    return member


def _subscription(group: ConsumerGroup, request: JoinGroupRequest) -> Subscription:
    """Return the subscription of the preferred assignor. Raises BrokerError INCONSISTENT_GROUP_PROTOCOL."""
    known = [set(each.classic.names) for each in group.members.values() if each.classic is not None]
    if request.protocol_type != CONSUMER or not any(
        all(protocol.name in names for names in known) for protocol in request.protocols
    ):
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "the group's members do not support these assignors")
    try:
        return decode_subscription(request.protocols[0].metadata)
    except DecodeError as error:
        raise BrokerError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"the subscription is not of the consumers' protocol: {error}"
        ) from error


def _ensure_generation(member: ConsumerGroupMember, generation: int) -> None:
    if generation != member.member_epoch:
        raise BrokerError(
            ErrorCode.ILLEGAL_GENERATION,
            f"member {member.member_id!r} is in generation {member.member_epoch}, not {generation}",
        )


def _ask_to_join(group: ConsumerGroup, member: ConsumerGroupMember) -> None:
    """Start the member's time to join again, its rebalance timeout, unless it runs already."""
    key = (JOIN, member.member_id)
    if key not in group.timers:
        group.timers.schedule(key, member.rebalance_timeout_ms)


def _waits_for_others(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Return whether a partition of its target still belongs to another member."""
    return any(
        number not in member.assigned.get(topic_id, {}) and (topic_id, number) in group.owners
        for topic_id, numbers in group.target.get(member.member_id, {}).items()
        for number in numbers
    )
