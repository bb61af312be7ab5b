"""join_group (11), heartbeat (12), leave_group (13), sync_group (14), describe_groups (15): the members of a group.

join_group       request   group, member_id, instance_id, session_timeout_ms, rebalance_timeout_ms, protocol_type,
                           protocols [[name, metadata bin]]
                 response  error, member_id, generation, protocol_type, protocol, leader, skip_assignment,
                           members [[member_id, instance_id, metadata bin]] (the leader's answer only)
sync_group       request   group, generation, member_id, instance_id, protocol_type, protocol,
                           assignments [[member_id, assignment bin]] (the leader's request only)
                 response  error, protocol_type, protocol, assignment bin
heartbeat        request   group, generation, member_id, instance_id
                 response  error
leave_group      request   group, members [[member_id, instance_id, reason]]
                 response  error, members [[member_id, instance_id, error]]
describe_groups  request   groups [group]
                 response  groups [[group, error, message, state, protocol_type, protocol,
                           [[member_id, instance_id, client_id, client_host, metadata bin, assignment bin]]]]

Metadata and assignments are the clients' own bytes. Consumers' are in Kafka's format, so that a group may have members
of both dialects (`protocol/groups/consumer_protocol.py`).
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages.groups.describe_groups import (
    DescribedGroup,
    DescribedMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.groups.join_group import (
    GroupProtocol,
    JoinedMember,
    JoinGroupRequest,
    JoinGroupResponse,
)
from barnabas.protocol.messages.groups.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    LeftMember,
)
from barnabas.protocol.messages.groups.sync_group import MemberAssignment, SyncGroupRequest, SyncGroupResponse
from barnabas.protocol.native.fields import (
    INT32,
    array,
    binary,
    boolean,
    error_code,
    field,
    integer,
    long_text,
    optional_text,
    row,
    text,
)


def encode_join(request: JoinGroupRequest) -> dict[str, Any]:
    """The body of a join."""
    return {
        "group": request.group_id,
        "member_id": request.member_id,
        "instance_id": request.group_instance_id,
        "session_timeout_ms": request.session_timeout_ms,
        "rebalance_timeout_ms": request.rebalance_timeout_ms,
        "protocol_type": request.protocol_type,
        "protocols": [[each.name, each.metadata] for each in request.protocols],
    }


def decode_join(body: dict[str, Any]) -> JoinGroupRequest:
    """Raises DecodeError, naming the field."""
    protocols = []
    for entry in array(field(body, "protocols"), "protocols"):
        name, metadata = row(entry, "protocols[]", 2)
        protocols.append(GroupProtocol(name=text(name, "name"), metadata=binary(metadata, "metadata")))
    return JoinGroupRequest(
        group_id=_group(body),
        session_timeout_ms=integer(field(body, "session_timeout_ms"), "session_timeout_ms", INT32),
        sent_rebalance_timeout_ms=integer(field(body, "rebalance_timeout_ms"), "rebalance_timeout_ms", INT32),
        member_id=text(field(body, "member_id", ""), "member_id"),
        group_instance_id=_instance(body),
        protocol_type=text(field(body, "protocol_type"), "protocol_type"),
        protocols=protocols,
    )


def encode_join_response(response: JoinGroupResponse) -> dict[str, Any]:
    """The generation, and for its leader the members."""
    return {
        "error": int(response.error),
        "member_id": response.member_id,
        "generation": response.generation,
        "protocol_type": response.protocol_type,
        "protocol": response.protocol,
        "leader": response.leader,
        "skip_assignment": response.skip_assignment,
        "members": [[each.member_id, each.group_instance_id, each.metadata] for each in response.members],
    }


def decode_join_response(body: dict[str, Any]) -> JoinGroupResponse:
    """Raises DecodeError, naming the field."""
    members = []
    for entry in array(field(body, "members"), "members"):
        member_id, instance_id, metadata = row(entry, "members[]", 3)
        members.append(
            JoinedMember(
                member_id=text(member_id, "member_id"),
                group_instance_id=optional_text(instance_id, "instance_id"),
                metadata=binary(metadata, "metadata"),
            )
        )
    return JoinGroupResponse(
        error=error_code(field(body, "error"), "error"),
        member_id=text(field(body, "member_id"), "member_id"),
        generation=integer(field(body, "generation"), "generation", INT32),
        protocol_type=optional_text(field(body, "protocol_type"), "protocol_type"),
        protocol=optional_text(field(body, "protocol"), "protocol"),
        leader=text(field(body, "leader"), "leader"),
        skip_assignment=boolean(field(body, "skip_assignment"), "skip_assignment"),
        members=members,
    )


def encode_sync(request: SyncGroupRequest) -> dict[str, Any]:
    """The body of a sync."""
    return {
        **_encode_identity(request),
        "protocol_type": request.protocol_type,
        "protocol": request.protocol,
        "assignments": [[each.member_id, each.assignment] for each in request.assignments],
    }


def decode_sync(body: dict[str, Any]) -> SyncGroupRequest:
    """Raises DecodeError, naming the field."""
    assignments = []
    for entry in array(field(body, "assignments", []), "assignments"):
        member_id, assignment = row(entry, "assignments[]", 2)
        assignments.append(
            MemberAssignment(member_id=text(member_id, "member_id"), assignment=binary(assignment, "assignment"))
        )
    return SyncGroupRequest(
        group_id=_group(body),
        generation=integer(field(body, "generation"), "generation", INT32),
        member_id=text(field(body, "member_id"), "member_id"),
        group_instance_id=_instance(body),
        protocol_type=optional_text(field(body, "protocol_type", None), "protocol_type"),
        protocol=optional_text(field(body, "protocol", None), "protocol"),
        assignments=assignments,
        version=4,  # the protocol may be left out
    )


def encode_sync_response(response: SyncGroupResponse) -> dict[str, Any]:
    """The member's assignment."""
    return {
        "error": int(response.error),
        "protocol_type": response.protocol_type,
        "protocol": response.protocol,
        "assignment": response.assignment,
    }


def decode_sync_response(body: dict[str, Any]) -> SyncGroupResponse:
    """Raises DecodeError, naming the field."""
    return SyncGroupResponse(
        error=error_code(field(body, "error"), "error"),
        protocol_type=optional_text(field(body, "protocol_type"), "protocol_type"),
        protocol=optional_text(field(body, "protocol"), "protocol"),
        assignment=binary(field(body, "assignment"), "assignment"),
    )


def encode_heartbeat(request: HeartbeatRequest) -> dict[str, Any]:
    """The body of a heartbeat."""
    return _encode_identity(request)


def decode_heartbeat(body: dict[str, Any]) -> HeartbeatRequest:
    """Raises DecodeError, naming the field."""
    return HeartbeatRequest(
        group_id=_group(body),
        generation=integer(field(body, "generation"), "generation", INT32),
        member_id=text(field(body, "member_id"), "member_id"),
        group_instance_id=_instance(body),
    )


def encode_heartbeat_response(response: HeartbeatResponse) -> dict[str, Any]:
    """Its code."""
    return {"error": int(response.error)}


def decode_heartbeat_response(body: dict[str, Any]) -> HeartbeatResponse:
    """Raises DecodeError, naming the field."""
    return HeartbeatResponse(error=error_code(field(body, "error"), "error"))


def encode_leave(request: LeaveGroupRequest) -> dict[str, Any]:
    """The body of a leave."""
    return {
        "group": request.group_id,
        "members": [[each.member_id, each.group_instance_id, each.reason] for each in request.leaving],
    }


def decode_leave(body: dict[str, Any]) -> LeaveGroupRequest:
    """Raises DecodeError, naming the field."""
    members = []
    for entry in array(field(body, "members"), "members"):
        member_id, instance_id, reason = row(entry, "members[]", 3)
        members.append(
            LeavingMember(
                member_id=text(member_id, "member_id"),
                group_instance_id=optional_text(instance_id, "instance_id"),
                reason=optional_text(reason, "reason"),
            )
        )
    return LeaveGroupRequest(group_id=_group(body), members=members)


def encode_leave_response(response: LeaveGroupResponse) -> dict[str, Any]:
    """A code for each member."""
    return {
        "error": int(response.error),
        "members": [[each.member_id, each.group_instance_id, int(each.error)] for each in response.members],
    }


def decode_leave_response(body: dict[str, Any]) -> LeaveGroupResponse:
    """Raises DecodeError, naming the field."""
    members = []
    for entry in array(field(body, "members"), "members"):
        member_id, instance_id, error = row(entry, "members[]", 3)
        members.append(
            LeftMember(
                member_id=text(member_id, "member_id"),
                group_instance_id=optional_text(instance_id, "instance_id"),
                error=error_code(error, "error"),
            )
        )
    return LeaveGroupResponse(error=error_code(field(body, "error"), "error"), members=members)


def encode_describe(request: DescribeGroupsRequest) -> dict[str, Any]:
    """The groups."""
    return {"groups": list(request.groups)}


def decode_describe(body: dict[str, Any]) -> DescribeGroupsRequest:
    """Raises DecodeError, naming the field."""
    groups = [text(each, "group") for each in array(field(body, "groups"), "groups")]
    return DescribeGroupsRequest(groups=groups)


def encode_describe_response(response: DescribeGroupsResponse) -> dict[str, Any]:
    """A row for each group."""
    return {
        "groups": [
            [
                each.group_id,
                int(each.error),
                each.message,
                each.state,
                each.protocol_type,
                each.protocol,
                [
                    [m.member_id, m.group_instance_id, m.client_id, m.client_host, m.metadata, m.assignment]
                    for m in each.members
                ],
            ]
            for each in response.groups
        ]
    }


def decode_describe_response(body: dict[str, Any]) -> DescribeGroupsResponse:
    """Raises DecodeError, naming the field."""
    groups = []
    for entry in array(field(body, "groups"), "groups"):
        group, error, message, state, protocol_type, protocol, members = row(entry, "groups[]", 7)
        groups.append(
            DescribedGroup(
                group_id=text(group, "group"),
                state=text(state, "state"),
                protocol_type=text(protocol_type, "protocol_type"),
                protocol=text(protocol, "protocol"),
                members=[_described(each) for each in array(members, "members")],
                error=error_code(error, "error"),
                message=long_text(message, "message"),
            )
        )
    return DescribeGroupsResponse(groups=groups)


def _described(entry: Any) -> DescribedMember:
    member_id, instance_id, client_id, client_host, metadata, assignment = row(entry, "members[]", 6)
    return DescribedMember(
        member_id=text(member_id, "member_id"),
        group_instance_id=optional_text(instance_id, "instance_id"),
        client_id=text(client_id, "client_id"),
        client_host=text(client_host, "client_host"),
        metadata=binary(metadata, "metadata"),
        assignment=binary(assignment, "assignment"),
    )


def _group(body: dict[str, Any]) -> str:
    return text(field(body, "group"), "group")


def _instance(body: dict[str, Any]) -> str | None:
    return optional_text(field(body, "instance_id", None), "instance_id")


def _encode_identity(request: SyncGroupRequest | HeartbeatRequest) -> dict[str, Any]:
    return dict(zip(("group", "generation", "member_id", "instance_id"), _identity(request), strict=True))


def _identity(request: SyncGroupRequest | HeartbeatRequest) -> tuple[str, int, str, str | None]:
    return request.group_id, request.generation, request.member_id, request.group_instance_id
