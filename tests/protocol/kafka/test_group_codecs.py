"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup and DescribeGroups in Kafka's protocol, every version both ways."""

from __future__ import annotations

from datetime import timedelta

import pytest

from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.groups.consumer_protocol import subscribed_topics
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.describe_groups import DescribedGroup, DescribedMember, DescribeGroupsResponse
from barnabas.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.groups.join_group import (
    GroupProtocol,
    JoinedMember,
    JoinGroupRequest,
    JoinGroupResponse,
)
from barnabas.protocol.messages.groups.leave_group import LeaveGroupResponse, LeavingMember, LeftMember
from barnabas.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.protocol.kafka.codecs import decoded, encoded, refused, row, subset, versions_of

JOIN, SYNC, HEARTBEAT = ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT
LEAVE, DESCRIBE = ApiKey.LEAVE_GROUP, ApiKey.DESCRIBE_GROUPS


@pytest.mark.parametrize(("api", "version"), versions_of(JOIN))
def test_a_join_both_ways(api: ApiKey, version: int) -> None:
    request = decoded(
        api,
        version,
        group_id="g",
        session_timeout=timedelta(milliseconds=7001),
        rebalance_timeout=timedelta(milliseconds=9002),
        member_id="m",
        group_instance_id="i",
        protocol_type="consumer",
        protocols=(row(api, version, "JoinGroupRequestProtocol", name="range", metadata=b"\x00\x01"),),
        reason="because",
    )
    assert request == JoinGroupRequest(
        group_id="g",
        session_timeout_ms=7001,
        rebalance_timeout_ms=9002 if version >= 1 else 7001,
        member_id="m",
        group_instance_id="i" if version >= 5 else None,
        protocol_type="consumer",
        protocols=[GroupProtocol("range", b"\x00\x01")],
        reason="because" if version >= 8 else None,
        requires_known_member_id=version >= 4,
        can_skip_assignment=version >= 9,
    )
    member = JoinedMember("m", "i", b"\x00\x01")
    answer = encoded(api, version, JoinGroupResponse(ErrorCode.NONE, "m", 3, "consumer", "range", "m", True, [member]))
    expected = {
        "error_code": 0,
        "generation_id": 3,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "leader": "m",
        "skip_assignment": True,
        "member_id": "m",
    }
    assert answer == answer | subset(expected, answer)
    (found,) = answer["members"]
    assert found == subset({"member_id": "m", "group_instance_id": "i", "metadata": b"\x00\x01"}, found)
    refusal = refused(api, version, request, ErrorCode.INVALID_GROUP_ID, "no")
    assert (refusal["error_code"], refusal["member_id"], refusal["generation_id"]) == (24, "m", -1)
    assert refusal["protocol_name"] == (None if version >= 7 else "")


@pytest.mark.parametrize(("api", "version"), versions_of(SYNC))
def test_a_sync_both_ways(api: ApiKey, version: int) -> None:
    request = decoded(
        api,
        version,
        group_id="g",
        generation_id=3,
        member_id="m",
        group_instance_id="i",
        protocol_type="consumer",
        protocol_name="range",
        assignments=(row(api, version, "SyncGroupRequestAssignment", member_id="m", assignment=b"\x05"),),
    )
    named = version >= 5
    assert request == SyncGroupRequest(
        "g",
        3,
        "m",
        "i" if version >= 3 else None,
        "consumer" if named else None,
        "range" if named else None,
        {"m": b"\x05"},
    )
    answer = encoded(api, version, SyncGroupResponse(ErrorCode.NONE, "consumer", "range", b"\x05"))
    expected = {"error_code": 0, "protocol_type": "consumer", "protocol_name": "range", "assignment": b"\x05"}
    assert answer == answer | subset(expected, answer)
    refusal = refused(api, version, request, ErrorCode.UNKNOWN_MEMBER_ID, "no")
    assert (refusal["error_code"], refusal["assignment"]) == (25, b"")


@pytest.mark.parametrize(("api", "version"), versions_of(HEARTBEAT))
def test_a_heartbeat_both_ways(api: ApiKey, version: int) -> None:
    request = decoded(api, version, group_id="g", generation_id=3, member_id="m", group_instance_id="i")
    instance = "i" if version >= 3 else None
    assert request == HeartbeatRequest(group_id="g", generation=3, member_id="m", group_instance_id=instance)
    assert encoded(api, version, HeartbeatResponse(error=ErrorCode.REBALANCE_IN_PROGRESS))["error_code"] == 27
    assert refused(api, version, request, ErrorCode.UNKNOWN_MEMBER_ID, "no")["error_code"] == 25


@pytest.mark.parametrize(("api", "version"), versions_of(LEAVE))
def test_a_leave_both_ways(api: ApiKey, version: int) -> None:
    several = version >= 3
    values = (
        {
            "members": tuple(
                row(api, version, "MemberIdentity", member_id=each, group_instance_id="i", reason="because")
                for each in ("m", "n")
            )
        }
        if several
        else {"member_id": "m"}
    )
    request = decoded(api, version, group_id="g", **values)
    reason = "because" if version >= 5 else None
    expected = [LeavingMember("m", "i", reason), LeavingMember("n", "i", reason)] if several else [LeavingMember("m")]
    assert (request.group_id, request.members) == ("g", expected)
    response = LeaveGroupResponse(members=[LeftMember("m", "i", ErrorCode.UNKNOWN_MEMBER_ID)])
    answer = encoded(api, version, response)
    if several:
        assert answer["error_code"] == 0
        assert answer["members"] == [{"member_id": "m", "group_instance_id": "i", "error_code": 25}]
    else:
        assert answer["error_code"] == 25
    assert refused(api, version, request, ErrorCode.INVALID_GROUP_ID, "no")["error_code"] == 24


@pytest.mark.parametrize(("api", "version"), versions_of(DESCRIBE))
def test_a_description_both_ways(api: ApiKey, version: int) -> None:
    request = decoded(api, version, groups=("g", "h"), include_authorized_operations=True)
    assert (list(request.groups), request.unknown_is_error) == (["g", "h"], version >= 6)
    assert request.include_authorized_operations == (version >= 3)
    member = DescribedMember("m", "i", "client", "/127.0.0.1", b"\x01", b"\x02")
    group = DescribedGroup("g", "Stable", "consumer", "range", [member], authorized_operations=7)
    (found,) = encoded(api, version, DescribeGroupsResponse([group]))["groups"]
    (described,) = found.pop("members")
    expected = {
        "error_code": 0,
        "error_message": None,
        "group_id": "g",
        "group_state": "Stable",
        "protocol_type": "consumer",
        "protocol_data": "range",
        "authorized_operations": 7,
    }
    assert found == subset(expected, found)
    assert described == subset(
        {
            "member_id": "m",
            "group_instance_id": "i",
            "client_id": "client",
            "client_host": "/127.0.0.1",
            "member_metadata": b"\x01",
            "member_assignment": b"\x02",
        },
        described,
    )
    refusal = refused(api, version, request, ErrorCode.COORDINATOR_NOT_AVAILABLE, "no")
    assert [(each["group_id"], each["error_code"]) for each in refusal["groups"]] == [("g", 15), ("h", 15)]


def test_the_topics_of_a_subscription_are_read_whatever_follows_them() -> None:
    assert subscribed_topics(b"\x00\x03\x00\x00\x00\x02\x00\x01a\x00\x02bc\xff\xff\xff\xff") == {"a", "bc"}
    for broken in (
        b"",
        b"\x00",
        b"\xff\xff\x00\x00\x00\x00",
        b"\x00\x00\x7f\xff\xff\xff",
        b"\x00\x00\x00\x00\x00\x01\x00",
    ):
        with pytest.raises(DecodeError):
            subscribed_topics(broken)
