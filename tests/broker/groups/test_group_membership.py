"""Group members over Kafka's protocol, against a real daemon: rejections, and the state that survives a restart."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.support.daemon import Daemon, start_daemon
from tests.support.groups.committed import commit, create_topic, fetch, until_loaded
from tests.support.kafka.kafka_wire import KafkaWire, schema
from tests.support.metrics import metric, wait_for_metric

SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"
SESSION = timedelta(minutes=5)


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    """Return a group id for one test; the daemon is shared."""
    name: str = request.node.name
    return name


def join(
    kafka: KafkaWire,
    group: str,
    member: str = "",
    *,
    instance: str | None = None,
    session: timedelta = SESSION,
    name: str = "range",
    metadata: bytes = SUBSCRIPTION,
) -> Any:
    protocol = schema("join_group", 9, "request").JoinGroupRequestProtocol(name=name, metadata=metadata)
    return kafka.call(
        "join_group",
        9,
        group_id=group,
        session_timeout=session,
        rebalance_timeout=SESSION,
        member_id=member,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=(protocol,),
        reason=None,
    )


def sync(kafka: KafkaWire, group: str, member: str, generation: int, assignment: bytes | None = None) -> Any:
    kind = schema("sync_group", 5, "request").SyncGroupRequestAssignment
    return kafka.call(
        "sync_group",
        5,
        group_id=group,
        generation_id=generation,
        member_id=member,
        group_instance_id=None,
        protocol_type="consumer",
        protocol_name="range",
        assignments=() if assignment is None else (kind(member_id=member, assignment=assignment),),
    )


def heartbeat(kafka: KafkaWire, group: str, member: str, generation: int, instance: str | None = None) -> int:
    answer = kafka.call(
        "heartbeat", 4, group_id=group, generation_id=generation, member_id=member, group_instance_id=instance
    )
    code: int = answer.error_code
    return code


def leave(kafka: KafkaWire, group: str, member: str) -> list[int]:
    identity = schema("leave_group", 5, "request").MemberIdentity(member_id=member, group_instance_id=None, reason=None)
    answer = kafka.call("leave_group", 5, group_id=group, members=(identity,))
    return [answer.error_code, *(each.error_code for each in answer.members)]


def describe(kafka: KafkaWire, *groups: str, version: int = 6) -> Any:
    return kafka.call("describe_groups", version, groups=groups, include_authorized_operations=True).groups


def form(kafka: KafkaWire, group: str) -> str:
    """Form a stable group of one member in generation 1; return the member id."""
    member: str = join(kafka, group).member_id
    joined = join(kafka, group, member)
    assert (joined.error_code, joined.generation_id, joined.leader) == (0, 1, member)
    synced = sync(kafka, group, member, 1, b"mine")
    assert (synced.error_code, synced.assignment) == (0, b"mine")
    return member


def test_a_group_is_formed_described_and_left(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        member = form(kafka, "g")
        (group,) = describe(kafka, "g")
        (described,) = group.members
        assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "consumer", "range")
        assert (described.member_id, described.client_id, described.client_host) == (member, "wire", "/127.0.0.1")
        assert (described.member_metadata, described.member_assignment) == (SUBSCRIPTION, b"mine")
        assert group.authorized_operations > 0
        assert heartbeat(kafka, "g", member, 1) == 0
        assert metric(daemon, "barnabas_groups_stable") == metric(daemon, "barnabas_group_rebalances_total") == 1
        assert leave(kafka, "g", member) == [0, 0]
        (group,) = describe(kafka, "g")
        assert (group.group_state, group.members) == ("Empty", ())
        assert (metric(daemon, "barnabas_groups_stable"), metric(daemon, "barnabas_groups_empty")) == (0, 1)


def test_requests_of_unknown_members_get_kafkas_errors(kafka: KafkaWire, group: str) -> None:
    member = form(kafka, group)
    assert heartbeat(kafka, group, "stranger", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert heartbeat(kafka, group, member, 7) == ErrorCode.ILLEGAL_GENERATION
    assert heartbeat(kafka, "nowhere", member, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert heartbeat(kafka, group, member, 1, "instance") == ErrorCode.UNKNOWN_MEMBER_ID
    assert sync(kafka, group, "stranger", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert sync(kafka, group, member, 2).error_code == ErrorCode.ILLEGAL_GENERATION
    assert leave(kafka, group, "stranger") == [0, ErrorCode.UNKNOWN_MEMBER_ID]
    assert leave(kafka, "nowhere", member) == [0, ErrorCode.UNKNOWN_MEMBER_ID]
    assert join(kafka, group, "stranger").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert join(kafka, group, name="other").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert leave(kafka, group, member) == [0, 0]
    assert heartbeat(kafka, group, member, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_from_outside_the_generation_changes_nothing(kafka: KafkaWire, group: str) -> None:
    create_topic(kafka, group)
    member = form(kafka, group)
    assert commit(kafka, group, group, {0: 5}, member=member, generation=1) == [0]
    assert commit(kafka, group, group, {0: 1}, member="stranger", generation=1) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert commit(kafka, group, group, {0: 1}, member=member, generation=0) == [ErrorCode.ILLEGAL_GENERATION]
    assert commit(kafka, group, group, {0: 1}, member=member, generation=2) == [ErrorCode.ILLEGAL_GENERATION]
    assert commit(kafka, group, group, {0: 1}) == [ErrorCode.UNKNOWN_MEMBER_ID], "the group has members"
    assert fetch(kafka, group, group) == {0: (5, 0, "")}


def test_the_last_member_of_a_deleted_group_is_refused(kafka: KafkaWire, group: str) -> None:
    create_topic(kafka, group)
    member = form(kafka, group)
    assert leave(kafka, group, member) == [0, 0]
    (deleted,) = kafka.call("delete_groups", 2, groups_names=(group,)).results
    assert deleted.error_code == 0
    assert heartbeat(kafka, group, member, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert sync(kafka, group, member, 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert join(kafka, group, member).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert leave(kafka, group, member) == [0, ErrorCode.UNKNOWN_MEMBER_ID]
    assert commit(kafka, group, group, {0: 1}, member=member, generation=1) == [ErrorCode.GROUP_ID_NOT_FOUND]


@pytest.mark.parametrize("group", ["", "g" * 40_000], ids=["empty", "40,000 characters"])
def test_an_impossible_group_id_is_refused_and_the_connection_stays(kafka: KafkaWire, group: str) -> None:
    assert join(kafka, group).error_code == ErrorCode.INVALID_GROUP_ID
    if not group:
        assert heartbeat(kafka, group, "m", 1) == ErrorCode.INVALID_GROUP_ID
        assert sync(kafka, group, "m", 1).error_code == ErrorCode.INVALID_GROUP_ID
        assert leave(kafka, group, "m") == [ErrorCode.INVALID_GROUP_ID]
    form(kafka, f"possible-{len(group)}")


def test_texts_that_do_not_fit_the_groups_record_are_refused(kafka: KafkaWire, group: str) -> None:
    assert join(kafka, group, instance="i" * 40_000).error_code == ErrorCode.INVALID_REQUEST
    assert join(kafka, group, name="p" * 40_000).error_code == ErrorCode.INVALID_REQUEST
    member = join(kafka, group).member_id
    joined = join(kafka, group, member)
    answer = sync(kafka, group, member, joined.generation_id, b"x" * 1_500_000)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR, "it is larger than message.max.bytes"
    assert heartbeat(kafka, group, member, joined.generation_id) == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("seconds", [5.999, 1800.001])
def test_a_session_timeout_out_of_bounds_is_refused(kafka: KafkaWire, group: str, seconds: float) -> None:
    answer = join(kafka, group, session=timedelta(seconds=seconds))
    assert answer.error_code == ErrorCode.INVALID_SESSION_TIMEOUT


def test_an_unknown_group_is_dead_and_in_version_6_an_error(kafka: KafkaWire) -> None:
    (old,) = describe(kafka, "nowhere", version=5)
    assert (old.error_code, old.group_state) == (0, "Dead")
    (new,) = describe(kafka, "nowhere")
    assert (new.error_code, new.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert "nowhere" in new.error_message


def test_a_group_with_members_cannot_be_deleted_and_an_empty_one_can(kafka: KafkaWire, group: str) -> None:
    member = form(kafka, group)

    def delete() -> int:
        (result,) = kafka.call("delete_groups", 2, groups_names=(group,)).results
        code: int = result.error_code
        return code

    assert delete() == ErrorCode.NON_EMPTY_GROUP
    leave(kafka, group, member)
    assert delete() == 0
    assert heartbeat(kafka, group, member, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert describe(kafka, group)[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_member_continues_after_a_restart(tmp_path: Path, how: str) -> None:
    with start_daemon(tmp_path) as daemon:
        with KafkaWire(daemon.host, daemon.port) as kafka:
            member = form(kafka, "g")
            gone = form(kafka, "left")
            leave(kafka, "left", gone)
        if how == "stop":
            assert daemon.stop() == 0
        else:
            daemon.kill()
        daemon.start()
        with KafkaWire(daemon.host, daemon.port) as kafka:
            until_loaded(kafka)
            assert heartbeat(kafka, "g", member, 1) == 0
            assert sync(kafka, "g", member, 1).assignment == b"mine"
            assert heartbeat(kafka, "left", gone, 2) == ErrorCode.UNKNOWN_MEMBER_ID
            assert [each.group_state for each in describe(kafka, "g", "left")] == ["Stable", "Empty"]
            second = join(kafka, "left", join(kafka, "left").member_id)
            assert second.generation_id == 3, "a generation never comes twice"


def test_a_stopping_broker_answers_waiting_members(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        form(kafka, "g")
        with KafkaWire(daemon.host, daemon.port) as second:
            member = join(second, "g").member_id
            with ThreadPoolExecutor() as pool:
                waiting = pool.submit(join, second, "g", member)
                wait_for_metric(daemon, "barnabas_groups_preparing_rebalance", 1)
                assert daemon.stop() == 0
                assert waiting.result(10).error_code == ErrorCode.NOT_COORDINATOR


def test_two_thousand_groups_are_served_and_come_back_after_a_kill(tmp_path: Path) -> None:
    count = 2000
    with start_daemon(tmp_path) as daemon:
        with KafkaWire(daemon.host, daemon.port) as kafka:
            members = [form(kafka, f"g{number}") for number in range(count)]
        daemon.kill()
        daemon.start()
        with KafkaWire(daemon.host, daemon.port) as kafka:
            until_loaded(kafka)
            assert {heartbeat(kafka, f"g{number}", member, 1) for number, member in enumerate(members)} == {0}
            kinds = {describe(kafka, f"g{number}")[0].group_state for number in range(0, count, 100)}
        assert kinds == {"Stable"}
