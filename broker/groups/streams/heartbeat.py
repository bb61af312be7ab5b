"""A heartbeat of a member of a streams group: it joins, stays, gives tasks up, gets others, and leaves.

Order of the checks: the request by itself (INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY); the group (GROUP_ID_NOT_FOUND,
GROUP_MAX_SIZE_REACHED); the member (UNKNOWN_MEMBER_ID); its epoch (FENCED_MEMBER_EPOCH if it is neither the member's
nor, after a lost response, the previous one); the topology (INVALID_REQUEST if it differs from the group's,
STREAMS_INVALID_TOPOLOGY if no topics can fit it); the tasks that it reports (INVALID_REQUEST for one that does not
exist). Source: Kafka's GroupMetadataManager (streamsGroupHeartbeat), GroupCoordinatorService
(throwIfStreamsGroupHeartbeatRequestIsInvalid, throwIfStreamsGroupHeartbeatRequestIsUsingUnsupportedFeatures).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.broker.groups.join_limits import MAX_CHOSEN_ID
from barnabas.broker.groups.streams.member import StreamsGroupMember
from barnabas.broker.groups.streams.reconcile import reconcile
from barnabas.broker.groups.streams.records import current_record, member_record
from barnabas.broker.groups.streams.tasks import NO_TASKS, TaskSet, without_epochs
from barnabas.broker.groups.streams.topics.endpoints import endpoints_of
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.explain_group import GroupEventKind
from barnabas.protocol.messages.groups.streams_group_heartbeat import (
    JOIN_EPOCH,
    LEAVE_STATIC_EPOCH,
    UNCHANGED_TIMEOUT,
    GroupStatus,
    StatusCode,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from barnabas.protocol.messages.groups.streams_topology import by_key, task_ids

if TYPE_CHECKING:
    from barnabas.broker.groups.client import JoiningClient
    from barnabas.broker.groups.streams.change import StreamsChange
    from barnabas.broker.groups.streams.topics.configured import ConfiguredTopology
    from barnabas.protocol.messages.groups.streams_topology import Tasks, Topology


def validate_heartbeat(request: StreamsGroupHeartbeatRequest) -> None:
    """Check the request by itself. Raises BrokerError INVALID_REQUEST or STREAMS_INVALID_TOPOLOGY."""
    _refuse_if(request.instance_id is not None, "Static membership is not yet supported.")
    _refuse_if(request.task_offsets is not None, "TaskOffsets are not supported yet.")
    _refuse_if(request.task_end_offsets is not None, "TaskEndOffsets are not supported yet.")
    _refuse_if(bool(request.warmup_tasks), "WarmupTasks are not supported yet.")
    topology = request.topology
    if topology is not None:
        uses_regex = any(each.source_topic_regex for each in topology.subtopologies)
        _refuse_if(uses_regex, "Regular expressions for source topics are not supported yet.")
    _refuse_if(not request.member_id, "MemberId can't be empty.")
    _refuse_if(len(request.member_id) > MAX_CHOSEN_ID, f"MemberId can't be longer than {MAX_CHOSEN_ID} characters.")
    _refuse_if(not request.group_id, "GroupId can't be empty.")
    _refuse_if(request.rack_id == "", "RackId can't be empty.")
    epoch = request.member_epoch
    if epoch == JOIN_EPOCH:
        _refuse_if(
            request.rebalance_timeout_ms == UNCHANGED_TIMEOUT, "RebalanceTimeoutMs must be provided in first request."
        )
        for name, tasks in (("Active", request.active_tasks), ("Standby", request.standby_tasks)):
            _refuse_if(tasks is None or bool(tasks), f"{name}Tasks must be empty when (re-)joining.")
        _refuse_if(request.warmup_tasks is None, "WarmupTasks must be empty when (re-)joining.")
        if topology is None:
            raise _invalid("Topology must be non-null when (re-)joining.")
        _validate_topology(topology)
    elif epoch == LEAVE_STATIC_EPOCH:
        raise _invalid("InstanceId can't be null.")
    elif epoch < LEAVE_STATIC_EPOCH:
        raise _invalid(f"MemberEpoch is {epoch}, but must be greater than or equal to -2.")
    reported = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    some = any(tasks is not None for tasks in reported)
    _refuse_if(some and None in reported, "If one task-type is non-null, all must be non-null.")
    _refuse_if(epoch != JOIN_EPOCH and topology is not None, "Topology can only be provided when (re-)joining.")


def heartbeat(
    change: StreamsChange, request: StreamsGroupHeartbeatRequest, client: JoiningClient
) -> StreamsGroupHeartbeatResponse:
    """Return the response, valid once the records of `change` are written. Raises BrokerError."""
    group = change.group
    joins = request.member_epoch == JOIN_EPOCH
    member = _member_of(change, request)
    updated = _with_metadata(member, request, client)
    is_new = member.member_id not in group.members
    if updated != member:
        change.records.append(member_record(group.group_id, updated))
        change.report(GroupEventKind.JOINED if is_new else GroupEventKind.JOINED_AGAIN, updated)
    present = group.topology
    change.set_topology(request.topology)
    if present is not None and updated.topology_epoch < present.epoch:
        change.status.append(_stale_topology(updated.topology_epoch, present.epoch))
    configured, metadata_hash = change.configure_topics()
    active, standby, warmup = reported = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if configured.is_ready:
        for tasks in reported:
            _ensure_tasks_exist(configured, tasks or {})
    change.bump_epoch(configured, metadata_hash, bump=updated != member)
    if not group.members and change.settings.initial_delay_ms > 0:
        change.is_delayed = True
    members = {**group.members, updated.member_id: updated}
    epoch, targets = change.target(members, configured)
    owned = None
    if active is not None and standby is not None and warmup is not None:
        owned = TaskSet(active, standby, warmup)
    reconciled = reconcile(group, updated, epoch, targets.get(updated.member_id, NO_TASKS), owned)
    if reconciled != updated:  # a member that waits for others must not write a record with each heartbeat
        change.records.append(current_record(group.group_id, reconciled))
    answer = StreamsGroupHeartbeatResponse(
        member_id=reconciled.member_id,
        member_epoch=reconciled.member_epoch,
        heartbeat_interval_ms=change.settings.heartbeat_interval_ms,
        status=change.status,
        endpoint_epoch=group.endpoint_epoch,
    )
    if joins or reconciled.assigned != member.assigned:
        held = reconciled.assigned
        answer.active_tasks = task_ids(without_epochs(held.active))
        answer.standby_tasks, answer.warmup_tasks = task_ids(held.standby), task_ids(held.warmup)
        if reconciled.user_endpoint is not None:
            answer.endpoint_epoch += 1
    if answer.endpoint_epoch != request.endpoint_epoch:
        others = (each for member_id, each in group.members.items() if member_id != reconciled.member_id)
        answer.endpoints = endpoints_of((*others, reconciled), configured, change.image)
    if configured.status is not None:
        change.status.append(configured.status)
    shutdown_member = group.shutdown_member or (reconciled.member_id if request.shutdown_application else None)
    if shutdown_member is not None:
        change.status.append(_shutdown(shutdown_member))
    return answer


def _member_of(change: StreamsChange, request: StreamsGroupHeartbeatRequest) -> StreamsGroupMember:
    group = change.group
    if request.member_epoch == JOIN_EPOCH:
        if len(group.members) >= change.settings.max_size:
            raise BrokerError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The streams group has reached its maximum capacity of {change.settings.max_size} members.",
            )
        return group.members.get(request.member_id) or StreamsGroupMember(request.member_id)
    member = group.member(request.member_id)
    epoch = request.member_epoch
    if epoch == member.member_epoch:
        return member
    if epoch < member.member_epoch and epoch == member.previous_member_epoch and _has_at_most(member, request):
        return member  # the response with the new epoch was lost
    relation = "greater" if epoch > member.member_epoch else "smaller"
    raise BrokerError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {relation} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.member_epoch}). The member must abandon all its partitions and rejoin.",
    )


def _has_at_most(member: StreamsGroupMember, request: StreamsGroupHeartbeatRequest) -> bool:
    held = member.assigned
    kinds: tuple[tuple[Tasks | None, Mapping[str, Iterable[int]]], ...] = (
        (request.active_tasks, held.active),
        (request.standby_tasks, held.standby),
        (request.warmup_tasks, held.warmup),
    )
    return all(
        tasks is not None and all(numbers <= set(has.get(each, ())) for each, numbers in tasks.items())
        for tasks, has in kinds
    )


def _with_metadata(
    member: StreamsGroupMember, request: StreamsGroupHeartbeatRequest, client: JoiningClient
) -> StreamsGroupMember:
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == UNCHANGED_TIMEOUT else timeout_ms,
        topology_epoch=member.topology_epoch if request.topology is None else request.topology.epoch,
        client_id=client.client_id,
        client_host=client.host,
        process_id=member.process_id if request.process_id is None else request.process_id,
        client_tags=member.client_tags if request.client_tags is None else by_key(request.client_tags),
        user_endpoint=member.user_endpoint if request.user_endpoint is None else request.user_endpoint,
    )


def _validate_topology(topology: Topology) -> None:
    if topology.epoch < 0:
        raise BrokerError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH,
            f"The topology epoch is {topology.epoch}, but must not be negative.",
        )
    for subtopology in topology.subtopologies:
        for topic in subtopology.changelog_topics:
            if topic.partitions != 0:
                raise BrokerError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                    f"{topic.partitions}.",
                )
    ids = [each.subtopology_id for each in topology.subtopologies]
    if len(set(ids)) < len(ids):
        raise BrokerError(ErrorCode.STREAMS_INVALID_TOPOLOGY, "Two subtopologies have the same id.")


def _ensure_tasks_exist(configured: ConfiguredTopology, tasks: Tasks) -> None:
    for subtopology_id, numbers in tasks.items():
        subtopology = configured.subtopologies.get(subtopology_id)
        if subtopology is None:
            raise _invalid(f"Subtopology {subtopology_id} does not exist in the topology.")
        for number in sorted(numbers):
            if not 0 <= number < subtopology.tasks:
                raise _invalid(
                    f"Task {number} for subtopology {subtopology_id} is invalid. Number of tasks for this subtopology: "
                    f"{subtopology.tasks}"
                )


def _stale_topology(member_epoch: int, group_epoch: int) -> GroupStatus:
    return GroupStatus(
        code=StatusCode.STALE_TOPOLOGY,
        detail=f"The member's topology epoch {member_epoch} is behind the group's topology epoch {group_epoch}.",
    )


def _shutdown(member_id: str) -> GroupStatus:
    return GroupStatus(
        code=StatusCode.SHUTDOWN_APPLICATION,
        detail=f"Streams group member {member_id} encountered a fatal error and requested a shutdown for the entire "
        "application.",
    )


def _invalid(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REQUEST, message)


def _refuse_if(wrong: bool, message: str) -> None:
    if wrong:
        raise _invalid(message)
