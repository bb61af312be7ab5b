"""ConsumerGroupHeartbeat and ConsumerGroupDescribe over Kafka's protocol, against a real daemon."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire, schema
from tests.support.metrics import metric

REBALANCE = timedelta(seconds=60)


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    """Return a group id for one test; the daemon is shared."""
    name: str = request.node.name
    return name


def heartbeat(kafka: KafkaWire, group: str, member: str, epoch: int, *, version: int = 1, **fields: Any) -> Any:
    values = {
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout": timedelta(milliseconds=-1),
        "subscribed_topic_names": None,
        "server_assignor": None,
        "topic_partitions": None,
        **({"subscribed_topic_regex": None} if version >= 1 else {}),
        **fields,
    }
    return kafka.call(
        "consumer_group_heartbeat", version, group_id=group, member_id=member, member_epoch=epoch, **values
    )


def join(kafka: KafkaWire, group: str, member: str, *topics: str, version: int = 1, **fields: Any) -> Any:
    return heartbeat(
        kafka,
        group,
        member,
        0,
        version=version,
        rebalance_timeout=REBALANCE,
        subscribed_topic_names=topics,
        topic_partitions=(),
        **fields,
    )


def describe(kafka: KafkaWire, *groups: str, version: int = 1) -> Any:
    answer = kafka.call("consumer_group_describe", version, group_ids=groups, include_authorized_operations=True)
    return answer.groups


def assigned(answer: Any) -> list[list[int]]:
    return [list(each.partitions) for each in answer.assignment.topic_partitions]


def test_a_group_is_formed_listed_described_deleted_and_outlives_a_kill(tmp_path: Path) -> None:
    with start_daemon(tmp_path, "offsets.topic.num.partitions=2") as daemon:
        daemon.create_topic("t", partitions=3)
        with connected(daemon) as kafka:
            told = join(kafka, "g", "m", "t")
            assert (told.error_code, told.member_id, told.member_epoch, assigned(told)) == (0, "m", 2, [[0, 1, 2]])
            assert told.heartbeat_interval == timedelta(seconds=5)
            assert heartbeat(kafka, "g", "m", 2).assignment is None
            assert metric(daemon, "barnabas_groups_stable") == 1
        daemon.restart(clean=False)
        with connected(daemon) as kafka:
            (listed,) = kafka.call("list_groups", 5, states_filter=("stable",), types_filter=("Consumer",)).groups
            assert (listed.group_id, listed.protocol_type, listed.group_type) == ("g", "consumer", "consumer")
            assert heartbeat(kafka, "g", "m", 2).error_code == 0
            (shown,) = describe(kafka, "g")
            assert (shown.group_state, shown.group_epoch, shown.assignment_epoch) == ("Stable", 2, 2)
            assert (shown.assignor_name, shown.authorized_operations > 0) == ("uniform", True)
            (member,) = shown.members
            assert (member.member_id, member.client_id, member.client_host) == ("m", "wire", "/127.0.0.1")
            assert (member.member_epoch, member.subscribed_topic_names, member.member_type) == (2, ("t",), 1)
            (topic,) = member.assignment.topic_partitions
            assert (topic.topic_name, topic.partitions) == ("t", (0, 1, 2))
            assert member.target_assignment.topic_partitions == member.assignment.topic_partitions
            assert delete(kafka, "g") == ErrorCode.NON_EMPTY_GROUP
            assert heartbeat(kafka, "g", "m", -1).member_epoch == -1
            assert delete(kafka, "g") == ErrorCode.NONE
            assert kafka.call("list_groups", 5, states_filter=(), types_filter=()).groups == ()
        daemon.restart(clean=True)
        with connected(daemon) as kafka:
            assert kafka.call("list_groups", 5, states_filter=(), types_filter=()).groups == ()


@contextmanager
def connected(daemon: Daemon) -> Iterator[KafkaWire]:
    """Connect, and retry until the groups are loaded, as clients do."""
    with KafkaWire(daemon.host, daemon.port) as kafka:
        while kafka.call("list_groups", 0).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass
        yield kafka


def delete(kafka: KafkaWire, group: str) -> int:
    (result,) = kafka.call("delete_groups", 2, groups_names=(group,)).results
    code: int = result.error_code
    return code


def test_version_0_may_leave_the_member_id_to_the_broker(kafka: KafkaWire, group: str) -> None:
    told = join(kafka, group, "", version=0)
    assert told.error_code == 0
    assert len(told.member_id) == 36
    refused = join(kafka, group, "", version=1)
    assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_REQUEST, "the member id is empty")


def test_refusals_have_kafkas_code_and_a_message(kafka: KafkaWire, group: str) -> None:
    join(kafka, group, "m")
    for asked, code in (
        (heartbeat(kafka, group, "m", 7), ErrorCode.FENCED_MEMBER_EPOCH),
        (heartbeat(kafka, group, "other", 2), ErrorCode.UNKNOWN_MEMBER_ID),
        (heartbeat(kafka, "nobody's", "m", 2), ErrorCode.GROUP_ID_NOT_FOUND),
        (heartbeat(kafka, "", "m", 2), ErrorCode.INVALID_REQUEST),
        (join(kafka, "g" * 40_000, "m"), ErrorCode.INVALID_GROUP_ID),
        (join(kafka, group, "m" * 40_000), ErrorCode.INVALID_REQUEST),
        (join(kafka, group, "n", server_assignor="mine"), ErrorCode.UNSUPPORTED_ASSIGNOR),
        (join(kafka, group, "n", subscribed_topic_regex="*"), ErrorCode.INVALID_REGULAR_EXPRESSION),
    ):
        assert asked.error_code == code
        assert asked.error_message
    assert heartbeat(kafka, group, "m", 2).error_code == 0


def test_requests_for_groups_of_the_other_protocol_are_refused(kafka: KafkaWire, group: str) -> None:
    join(kafka, group, "m")
    (classic,) = kafka.call("describe_groups", 6, groups=(group,), include_authorized_operations=False).groups
    assert (classic.error_code, classic.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    (older,) = kafka.call("describe_groups", 5, groups=(group,), include_authorized_operations=False).groups
    assert (older.error_code, older.group_state) == (0, "Dead")
    unknown, empty = describe(kafka, "nobody's", "")
    assert (unknown.error_code, empty.error_code) == (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INVALID_GROUP_ID)


def test_offsets_are_committed_and_fetched_in_the_members_epoch(daemon: Daemon, kafka: KafkaWire, group: str) -> None:
    daemon.create_topic("offsets-of-members")
    join(kafka, group, "m", "offsets-of-members")
    kinds = schema("offset_commit", 9, "request")
    partition = kinds.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, committed_leader_epoch=-1, committed_metadata=""
    )
    topic = kinds.OffsetCommitRequestTopic(name="offsets-of-members", partitions=(partition,))
    for epoch, code in ((2, ErrorCode.NONE), (3, ErrorCode.STALE_MEMBER_EPOCH), (-1, ErrorCode.UNKNOWN_MEMBER_ID)):
        answer = kafka.call(
            "offset_commit",
            9,
            group_id=group,
            generation_id_or_member_epoch=epoch,
            member_id="m" if epoch >= 0 else "",
            group_instance_id=None,
            topics=(topic,),
        )
        assert answer.topics[0].partitions[0].error_code == code
    asked = schema("offset_fetch", 9, "request").OffsetFetchRequestGroup
    for member, epoch, refusal in (("m", 2, 0), (None, -1, 0), ("m", 1, ErrorCode.STALE_MEMBER_EPOCH)):
        (found,) = kafka.call(
            "offset_fetch",
            9,
            groups=(asked(group_id=group, member_id=member, member_epoch=epoch, topics=None),),
            require_stable=False,
        ).groups
        assert found.error_code == refusal
        assert bool(found.topics) is (refusal == 0)


def test_a_broker_without_the_protocol_refuses_it_and_does_not_announce_it(tmp_path: Path) -> None:
    with (
        start_daemon(tmp_path, "group.coordinator.rebalance.protocols=classic") as daemon,
        KafkaWire(daemon.host, daemon.port) as kafka,
    ):
        assert join(kafka, "g", "m").error_code == ErrorCode.UNSUPPORTED_VERSION
        (described,) = describe(kafka, "g")
        assert described.error_code == ErrorCode.UNSUPPORTED_VERSION
        answer = kafka.call("api_versions", 4, client_software_name="test", client_software_version="1.0")
        assert "group.version" not in {each.name for each in answer.finalized_features}


def test_heartbeats_are_answered_if_every_record_is_flushed_first(tmp_path: Path) -> None:
    flushed = "log.flush.interval.messages=1"
    with start_daemon(tmp_path, flushed) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        for member in ("a", "b"):
            told = join(kafka, "durable", member, "none")
            assert told.error_code == ErrorCode.NONE
            again = heartbeat(kafka, "durable", member, told.member_epoch)
            assert (again.error_code, again.member_epoch) == (ErrorCode.NONE, told.member_epoch)


@pytest.mark.parametrize("what", ["instance_id", "rack_id", "subscribed_topic_regex", "topic", "member"])
def test_texts_that_apache_kafka_could_not_read_again_are_refused(kafka: KafkaWire, what: str) -> None:
    """Strings in records have at most 32,767 bytes; Kafka could not load a partition with a longer one."""
    long = "n" * 32_768
    fields: dict[str, Any] = {} if what in ("topic", "member") else {what: long}
    topic, member = (long if what == each else each for each in ("topic", "member"))
    told = join(kafka, f"long-{what}", member, topic, **fields)
    assert told.error_code == ErrorCode.INVALID_REQUEST
    assert "longer than" in told.error_message
