"""A heartbeat of a member of a share group: it joins, stays, gets partitions, and leaves.

Order of the checks: the request by itself (INVALID_REQUEST); the group (GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED);
the member (UNKNOWN_MEMBER_ID); its epoch (FENCED_MEMBER_EPOCH if it is neither the member's nor, after a lost response,
the previous one). Source: Kafka's GroupMetadataManager (shareGroupHeartbeat, shareGroupLeave),
GroupCoordinatorService.throwIfShareGroupHeartbeatRequestIsInvalid.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from barnabas.broker.groups.share.member import ShareGroupMember
from barnabas.broker.groups.share.records import member_record
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.consumer_group_heartbeat import Assignment, TopicPartitions
from barnabas.protocol.messages.groups.explain_group import GroupEventKind
from barnabas.protocol.messages.groups.share_group_heartbeat import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.groups.client import JoiningClient
    from barnabas.broker.groups.share.change import ShareGroupChange
    from barnabas.broker.groups.share.group import ShareGroup
    from barnabas.broker.metadata.image import MetadataImage

SOON_MS: Final = 200
"""Heartbeat interval of a member whose partitions are being initialized: it would have to wait for its first ones."""


def validate_heartbeat(request: ShareGroupHeartbeatRequest) -> None:
    """Check the request by itself. Raises BrokerError INVALID_REQUEST."""
    _refuse_if(not request.member_id, "MemberId can't be empty.")
    _refuse_if(not request.group_id, "GroupId can't be empty.")
    _refuse_if(request.rack_id == "", "RackId can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        _refuse_if(not request.topic_names, "SubscribedTopicNames must be set in first request.")
    else:
        _refuse_if(request.member_epoch < LEAVE_EPOCH, "MemberEpoch is invalid.")


def heartbeat(
    change: ShareGroupChange, request: ShareGroupHeartbeatRequest, client: JoiningClient
) -> ShareGroupHeartbeatResponse:
    """Return the response, valid once the records of `change` are written. Raises BrokerError."""
    group, settings = change.group, change.settings
    if len(group.members) >= settings.max_size and request.member_id not in group.members:
        raise BrokerError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The share group has reached its maximum capacity of {settings.max_size} members.",
        )
    member = _member_of(group, request)
    updated = replace(
        member,
        rack_id=request.rack_id or member.rack_id,
        topic_names=member.topic_names if request.topic_names is None else frozenset(request.topic_names),
        client_id=client.client_id,
        client_host=client.host,
    )
    changed = updated.topic_names != member.topic_names
    if updated != member:
        change.records.append(member_record(group.group_id, updated))
    if request.member_id not in group.members:
        change.report(GroupEventKind.JOINED, updated)
    members = {**group.members, updated.member_id: updated}
    names = frozenset().union(*{each.topic_names for each in members.values()})
    is_new_state = group.assignment_epoch >= group.epoch and _has_unassigned(group, change.image)
    if changed or is_new_state or not group.is_checked:
        why = "partitions were initialized" if is_new_state and not changed else ""
        changed = change.bump_epoch(names, bump=changed or is_new_state, why=why)
    target = change.target(members, updated)
    updated = change.reconcile(updated, target, subscription_changed=changed)
    postponed_ms = group.postponed_ms  # once: it ends between two looks, and the member would wait for a whole interval
    if not postponed_ms:
        change.initialize(names)
    waits = bool(change.initializes) or any(topic.name in names for topic in group.states.initializing.values())
    interval_ms = settings.heartbeat_interval_ms
    soon_ms = max(SOON_MS, postponed_ms)
    waits = waits or postponed_ms > 0
    answer = ShareGroupHeartbeatResponse(
        member_id=updated.member_id,
        member_epoch=updated.member_epoch,
        heartbeat_interval_ms=min(interval_ms, soon_ms) if waits else interval_ms,
    )
    if request.member_epoch == JOIN_EPOCH or request.topic_names is not None or updated.assigned != member.assigned:
        topics = [
            TopicPartitions(topic_id=topic_id, partitions=tuple(sorted(numbers)))
            for topic_id, numbers in updated.assigned.items()
        ]
        answer.assignment = Assignment(topics=topics)
    return answer


def _has_unassigned(group: ShareGroup, image: MetadataImage) -> bool:
    """Return whether a topic that a member reads has other initialized partitions than the target assignments give."""
    names = group.topic_names
    if not names or not group.states.initialized:
        return False
    given: dict[bytes, set[int]] = {}
    for target in group.target.values():
        for topic_id, numbers in target.items():
            given.setdefault(topic_id, set()).update(numbers)
    return any(
        topic.name in names and topic_id in image.names and topic.partitions != given.get(topic_id, set())
        for topic_id, topic in group.states.initialized.items()
    )


def _member_of(group: ShareGroup, request: ShareGroupHeartbeatRequest) -> ShareGroupMember:
    epoch, member_id = request.member_epoch, request.member_id
    if epoch == JOIN_EPOCH:
        return group.members.get(member_id) or ShareGroupMember(member_id)
    member = group.member(member_id)
    if epoch > member.member_epoch:
        raise BrokerError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a greater member epoch ({epoch}) than the one known by the group coordinator"
            f" ({member.member_epoch}). The member must abandon all its partitions and rejoin.",
        )
    if epoch < member.member_epoch and epoch != member.previous_member_epoch:
        raise BrokerError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a smaller member epoch ({epoch}) than the one known by the group coordinator"
            f" ({member.member_epoch}), and it does not match the previous member epoch"
            f" ({member.previous_member_epoch}). The member must abandon all its partitions and rejoin.",
        )
    return member


def _refuse_if(wrong: bool, message: str) -> None:
    if wrong:
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)
