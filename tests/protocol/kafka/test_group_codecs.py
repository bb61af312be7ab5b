"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup and DescribeGroups in Kafka's protocol, every version both ways."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import BrokerError, DecodeError, ErrorCode
from barnabas.protocol.groups.consumer_protocol import subscribed_topics
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.describe_groups import DescribedGroup, DescribedMember, DescribeGroupsResponse
from barnabas.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.groups.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    LeftMember,
)
from barnabas.protocol.messages.groups.sync_group import SyncGroupRequest
from tests.protocol.kafka.codecs import decoded, encoded, refused, subset, versions_of

DESCRIBE = ApiKey.DESCRIBE_GROUPS


@pytest.mark.parametrize("version", range(10))
def test_what_a_version_of_a_join_means(version: int) -> None:
    sent = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=7001,
        sent_rebalance_timeout_ms=9002,
        member_id="m",
        protocol_type="consumer",
        protocols=[],
    )
    request = JoinGroupRequest.decode(version, sent.encode(version))
    assert request.rebalance_timeout_ms == (9002 if version >= 1 else 7001)
    assert request.requires_known_member_id == (version >= 4)
    assert request.can_skip_assignment == (version >= 9)
    refusal = request.refused(ErrorCode.INVALID_GROUP_ID, "no")
    assert refusal == JoinGroupResponse(error=ErrorCode.INVALID_GROUP_ID, member_id="m")
    read = JoinGroupResponse.decode(version, refusal.encode(version))
    assert read.protocol == (None if version >= 7 else "")


@pytest.mark.parametrize("version", range(6))
def test_a_sync_names_its_protocol_from_version_5_on(version: int) -> None:
    for protocol_type, protocol in ((None, "range"), ("consumer", None), ("consumer", "range")):
        request = SyncGroupRequest(
            group_id="g", generation=3, member_id="m", protocol_type=protocol_type, protocol=protocol, version=version
        )
        if version >= 5 and not (protocol_type and protocol):
            with pytest.raises(BrokerError) as caught:
                request.check()
            assert caught.value.code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        else:
            request.check()


@pytest.mark.parametrize("version", range(6))
def test_a_leave_is_about_one_member_before_version_3(version: int) -> None:
    members = [LeavingMember(member_id=each) for each in ("m", "n")]
    sent = LeaveGroupRequest(group_id="g", member_id="m", members=members)
    request = LeaveGroupRequest.decode(version, sent.encode(version))
    assert request.leaving == (members if version >= 3 else members[:1])
    left = [LeftMember(member_id="m", group_instance_id="i", error=ErrorCode.UNKNOWN_MEMBER_ID)]
    answer = LeaveGroupResponse.decode(version, LeaveGroupResponse(members=left).encode(version))
    assert answer == (
        LeaveGroupResponse(members=left) if version >= 3 else LeaveGroupResponse(error=ErrorCode.UNKNOWN_MEMBER_ID)
    )
    refusal = request.refused(ErrorCode.INVALID_GROUP_ID, "no")
    assert LeaveGroupResponse.decode(version, refusal.encode(version)).error == ErrorCode.INVALID_GROUP_ID


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
