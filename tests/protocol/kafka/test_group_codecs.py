"""What versions of the groups' requests mean, and the shapes of their answers that a version changes."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import BrokerError, DecodeError, ErrorCode
from barnabas.protocol.groups.consumer_protocol import subscribed_topics
from barnabas.protocol.messages.groups.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.groups.find_coordinator import (
    CoordinatorResult,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.protocol.messages.groups.groups import ListedGroup, ListGroupsResponse
from barnabas.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.groups.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    LeftMember,
)
from barnabas.protocol.messages.groups.sync_group import SyncGroupRequest


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


@pytest.mark.parametrize("version", range(7))
def test_a_description_is_refused_for_every_group(version: int) -> None:
    sent = DescribeGroupsRequest(groups=["g", "h"], include_authorized_operations=True)
    request = DescribeGroupsRequest.decode(version, sent.encode(version))
    assert request.unknown_is_error == (version >= 6)
    refusal = request.refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no")
    assert [(each.group_id, each.error, each.message) for each in refusal.groups] == [
        (group, ErrorCode.COORDINATOR_NOT_AVAILABLE, "no") for group in ("g", "h")
    ]


@pytest.mark.parametrize("version", range(7))
def test_a_coordinator_is_asked_for_and_found_in_every_version(version: int) -> None:
    sent = FindCoordinatorRequest.of_key("g", 1 if version >= 1 else 0)
    request = FindCoordinatorRequest.decode(version, sent.encode(version))
    assert (list(request.keys), request.key_type) == (["g"], sent.key_type)
    assert request.takes_share_keys == (version >= 6)
    found = CoordinatorResult(key="g", node_id=7, host="h", port=9)
    refused = request.refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, "wait")
    for answer in (FindCoordinatorResponse(coordinators=[found]), refused):
        read = FindCoordinatorResponse.decode(version, answer.encode(version))
        (only,), (expected,) = read.found, answer.coordinators
        assert only.key == ("g" if version >= 4 else "")
        assert (only.error, only.node_id, only.host, only.port) == (
            expected.error,
            expected.node_id,
            expected.host,
            expected.port,
        )
        assert only.message == (expected.message if version >= 1 else "")


def test_a_listed_group_has_its_type_by_kafkas_name() -> None:
    group = ListedGroup(group_id="g", protocol_type="consumer", state="Stable", type="classic")
    for version, group_type in ((4, ""), (5, "Classic")):
        (read,) = ListGroupsResponse.decode(version, ListGroupsResponse(groups=[group]).encode(version)).groups
        assert read.group_type == group_type


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
