"""Committed offsets over Kafka's protocol, against a real daemon: they survive clean stops and crashes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from barnabas.broker.coordinator_log.topic import partition_of
from barnabas.broker.handlers.groups.offset_fetch import OffsetFetchHandler
from barnabas.broker.probes import ApiProbe
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.groups.keys import GroupMetadataKey, OffsetCommitKey, decode_key
from barnabas.protocol.groups.values import OffsetCommitValue
from barnabas.protocol.messages.groups.offset_fetch import OffsetFetchGroup, OffsetFetchRequest, OffsetFetchTopic
from barnabas.protocol.records.batch import iter_batches
from barnabas.protocol.records.builder import RecordBatchBuilder
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.topic_name import OFFSETS_TOPIC
from barnabas.protocol.uuids import ZERO_UUID
from tests.support.daemon import Daemon, start_daemon
from tests.support.groups.committed import commit, create_topic, fetch, until_loaded
from tests.support.kafka.kafka_wire import KafkaWire, metadata_request, produce_request, request_frame, schema
from tests.support.turns import answer_of

COMMIT_VERSIONS = range(2, 11)
FETCH_VERSIONS = range(1, 11)


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_an_offset_committed_by_a_simple_consumer_is_fetched(kafka: KafkaWire, version: int) -> None:
    topic_id = create_topic(kafka, f"commit-{version}", 2)
    assert commit(kafka, "g", f"commit-{version}", {0: 3, 1: 4}, version=version, topic_id=topic_id, metadata="m") == [
        0,
        0,
    ]
    assert fetch(kafka, "g", f"commit-{version}", (0, 1)) == {0: (3, 0, "m"), 1: (4, 0, "m")}


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_every_version_fetches_what_is_committed_and_what_is_not(kafka: KafkaWire, version: int) -> None:
    topic_id = create_topic(kafka, f"fetch-{version}")
    commit(kafka, "g", f"fetch-{version}", {0: 3})
    found = fetch(kafka, "g", f"fetch-{version}", (0, 7), version=version, topic_id=topic_id)
    assert found == {0: (3, 0, ""), 7: (-1, 0, "")}


@pytest.mark.parametrize("version", [2, 7, 9])
def test_all_offsets_of_a_group_are_fetched_by_null(kafka: KafkaWire, version: int) -> None:
    for name in (f"all-{version}-a", f"all-{version}-b"):
        create_topic(kafka, name)
        commit(kafka, f"all-{version}", name, {0: 9})
    found = fetch(kafka, f"all-{version}", None, version=version)
    assert found == {(f"all-{version}-a", 0): (9, 0, ""), (f"all-{version}-b", 0): (9, 0, "")}


def test_an_unknown_group_has_no_offsets_and_no_error(kafka: KafkaWire) -> None:
    assert fetch(kafka, "never-seen", "whatever") == {0: (-1, 0, "")}
    assert fetch(kafka, "never-seen", None) == {}


def test_an_unknown_topic_or_partition_fails_alone(kafka: KafkaWire) -> None:
    topic_id = create_topic(kafka, "known")
    assert commit(kafka, "g", "known", {0: 1, 9: 1}) == [0, 3]
    assert commit(kafka, "g", "unknown", {0: 1}) == [3]
    assert commit(kafka, "g", "", {0: 1}, version=10, topic_id=UUID(int=77)) == [100]
    assert fetch(kafka, "g", "", (0,), version=10, topic_id=UUID(int=77)) == {0: (-1, 100, "")}
    assert fetch(kafka, "g", "", (0,), version=10, topic_id=topic_id) == {0: (1, 0, "")}


def test_metadata_that_is_too_long_is_refused_for_its_partition(kafka: KafkaWire) -> None:
    create_topic(kafka, "wordy")
    assert commit(kafka, "wordy", "wordy", {0: 1}, metadata="x" * 4096) == [0]
    assert commit(kafka, "wordy", "wordy", {0: 2}, metadata="x" * 4097) == [12]
    assert commit(kafka, "wordy", "wordy", {0: 3}, metadata="\U0001f600" * 2048) == [0]
    assert commit(kafka, "wordy", "wordy", {0: 4}, metadata="\U0001f600" * 2049) == [12]
    assert fetch(kafka, "wordy", "wordy")[0][0] == 3


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_metadata_that_is_too_long_for_the_strings_of_a_version_is_an_error_of_its_partition(version: int) -> None:
    committed = {
        ("t", number): OffsetCommitValue(5, 7, metadata, 0) for number, metadata in enumerate(("x" * 32_768, "short"))
    }
    offsets: Any = SimpleNamespace(committed=SimpleNamespace(of=lambda group_id: committed))
    log: Any = SimpleNamespace(ensure_loaded=lambda group_id: None)
    registry: Any = SimpleNamespace(get=lambda group_id: None)
    store: Any = SimpleNamespace(image=SimpleNamespace(names={bytes(16): "t"}))
    session: Any = SimpleNamespace(access=None)
    handler = OffsetFetchHandler(offsets, registry, log, store, ApiProbe())
    topics = [OffsetFetchTopic(name="" if version >= 10 else "t", partitions=[0, 1])]
    request = OffsetFetchRequest.of_groups([OffsetFetchGroup(group_id="g", topics=topics)])
    request.version = version
    answer: Any = answer_of(handler(session, request))
    ((long, short),) = [topic.partitions for topic in answer.results[0].topics]
    assert (short.offset, short.error) == (5, ErrorCode.NONE)
    assert (long.offset, long.error) == (
        (5, ErrorCode.NONE) if version >= 6 else (-1, ErrorCode.OFFSET_METADATA_TOO_LARGE)
    )


@pytest.mark.parametrize(("version", "code"), [(8, 22), (9, 69)])
def test_a_member_of_an_unknown_group_gets_the_error_of_its_version(kafka: KafkaWire, version: int, code: int) -> None:
    create_topic(kafka, f"member-{version}")
    topic = f"member-{version}"
    assert commit(kafka, topic, topic, {0: 1}, version=version, generation=3, member="m") == [code]
    assert commit(kafka, topic, topic, {0: 1}, version=version) == [0]
    assert commit(kafka, topic, topic, {0: 2}, version=version, generation=3, member="m") == [25]
    assert fetch(kafka, topic, topic)[0][0] == 1


def test_the_coordinator_of_a_group_or_transactional_id_is_this_broker(kafka: KafkaWire, daemon: Daemon) -> None:
    for version in range(4):
        answer = kafka.call("find_coordinator", version, key="g")
        assert (answer.error_code, answer.port) == (0, daemon.port), version
    for version in range(4, 7):
        answer = kafka.call("find_coordinator", version, key_type=0, coordinator_keys=("a", "b"))
        assert [(each.key, each.error_code, each.port) for each in answer.coordinators] == [
            ("a", 0, daemon.port),
            ("b", 0, daemon.port),
        ]
        answer = kafka.call("find_coordinator", version, key_type=1, coordinator_keys=("t",))
        assert [(each.key, each.error_code, each.port) for each in answer.coordinators] == [("t", 0, daemon.port)]
    answer = kafka.call("find_coordinator", 1, key="t", key_type=1)
    assert (answer.error_code, answer.port) == (0, daemon.port)
    assert kafka.call("find_coordinator", 6, key_type=2, coordinator_keys=("s",)).coordinators[0].error_code == 42


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed(kafka: KafkaWire, version: int) -> None:
    create_topic(kafka, f"listed-{version}")
    commit(kafka, f"listed-{version}", f"listed-{version}", {0: 1})
    groups = {each.group_id: each for each in kafka.call("list_groups", version).groups}
    listed = groups[f"listed-{version}"]
    assert listed.protocol_type == ""
    if version >= 4:
        assert listed.group_state == "Empty"
        assert {each.group_state for each in kafka.call("list_groups", version, states_filter=("empty",)).groups} == {
            "Empty"
        }
        assert kafka.call("list_groups", version, states_filter=("Stable",)).groups == ()
    if version >= 5:
        assert listed.group_type == "classic"
        assert kafka.call("list_groups", version, types_filter=("consumer",)).groups == ()


@pytest.mark.parametrize("version", range(3))
def test_a_deleted_group_is_unknown_and_its_offsets_are_gone(kafka: KafkaWire, version: int) -> None:
    create_topic(kafka, f"deleted-{version}")
    commit(kafka, f"deleted-{version}", f"deleted-{version}", {0: 1})
    answer = kafka.call("delete_groups", version, groups_names=(f"deleted-{version}", "never-seen"))
    assert [each.error_code for each in answer.results] == [0, 69]
    assert fetch(kafka, f"deleted-{version}", f"deleted-{version}") == {0: (-1, 0, "")}
    again = kafka.call("delete_groups", version, groups_names=(f"deleted-{version}",))
    assert [each.error_code for each in again.results] == [69]


def test_offsets_are_deleted_by_partition(kafka: KafkaWire) -> None:
    create_topic(kafka, "partly", 2)
    commit(kafka, "partly", "partly", {0: 1, 1: 2})
    kio = schema("offset_delete", 0, "request")

    def delete(group: str, *numbers: int) -> Any:
        topic = kio.OffsetDeleteRequestTopic(
            name="partly", partitions=tuple(kio.OffsetDeleteRequestPartition(partition_index=each) for each in numbers)
        )
        return kafka.call("offset_delete", 0, group_id=group, topics=(topic,))

    answer = delete("partly", 1, 9)
    assert answer.error_code == 0
    assert [each.error_code for each in answer.topics[0].partitions] == [0, 3]
    assert fetch(kafka, "partly", "partly", (0, 1)) == {0: (1, 0, ""), 1: (-1, 0, "")}
    assert delete("never-seen", 0).error_code == 69
    assert delete("", 0).error_code == 24


def test_a_group_may_have_an_empty_name_or_a_very_long_one(kafka: KafkaWire) -> None:
    create_topic(kafka, "names")
    for group in ("", "x" * 30_000, "gr\u00fcppe \U0001f600"):
        assert commit(kafka, group, "names", {0: 7}) == [0]
        assert fetch(kafka, group, "names") == {0: (7, 0, "")}
    assert commit(kafka, "y" * 40_000, "names", {0: 7}) == [42]


def test_offsets_of_a_deleted_topic_are_deleted(kafka: KafkaWire) -> None:
    create_topic(kafka, "short-lived")
    create_topic(kafka, "long-lived")
    commit(kafka, "both", "short-lived", {0: 5})
    commit(kafka, "both", "long-lived", {0: 6})
    kio = schema("delete_topics", 6, "request")
    state = kio.DeleteTopicState(name="short-lived", topic_id=None)
    kafka.call("delete_topics", 6, topics=(state,), timeout=timedelta(seconds=30))
    assert fetch(kafka, "both", None) == {("long-lived", 0): (6, 0, "")}
    create_topic(kafka, "short-lived")
    assert fetch(kafka, "both", "short-lived") == {0: (-1, 0, "")}


def test_the_topic_is_internal_compacted_and_closed_to_producers(kafka: KafkaWire, daemon: Daemon) -> None:
    create_topic(kafka, "first-use")
    commit(kafka, "g", "first-use", {0: 1})
    metadata = kafka.call(
        "metadata",
        9,
        topics=(schema("metadata", 9, "request").MetadataRequestTopic(name=OFFSETS_TOPIC),),
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    (topic,) = metadata.topics
    assert (topic.is_internal, len(topic.partitions)) == (True, 50)
    kio = schema("describe_configs", 4, "request")
    resource = kio.DescribeConfigsResource(resource_type=2, resource_name=OFFSETS_TOPIC, configuration_keys=None)
    (described,) = kafka.call("describe_configs", 4, resources=(resource,)).results
    configs = {each.name: each.value for each in described.configs}
    assert configs["cleanup.policy"] == "compact"
    assert configs["compression.type"] == "producer"
    assert configs["segment.bytes"] == "104857600"


def stored(directory: Path, group: str, partitions: int) -> list[Any]:
    """Return the records in the group's partition on disk."""
    log_dir = directory / "data" / f"{OFFSETS_TOPIC}-{partition_of(group, partitions)}"
    found = []
    for path in sorted(log_dir.glob("*.log")):
        for batch in iter_batches(path.read_bytes()):
            found.append([(record.key, record.value) for record in read_records(batch)])
    return found


def test_a_commit_is_one_batch_and_a_deletion_is_tombstones(tmp_path: Path) -> None:
    with (
        start_daemon(tmp_path, "offsets.topic.num.partitions=3") as daemon,
        KafkaWire(daemon.host, daemon.port) as kafka,
    ):
        topic_id = create_topic(kafka, "t", 2)
        commit(kafka, "g", "t", {0: 3, 1: 4}, metadata="m")
        kafka.call("delete_groups", 2, groups_names=("g",))
    first, second = stored(tmp_path, "g", 3)
    assert [decode_key(key) for key, _ in first] == [OffsetCommitKey("g", "t", 0), OffsetCommitKey("g", "t", 1)]
    values = [OffsetCommitValue.from_bytes(value) for _, value in first]
    assert [(each.offset, each.leader_epoch, each.metadata, each.topic_id) for each in values] == [
        (3, 5, "m", topic_id.bytes),
        (4, 5, "m", topic_id.bytes),
    ]
    assert [(decode_key(key), value) for key, value in second] == [
        (OffsetCommitKey("g", "t", 0), None),
        (OffsetCommitKey("g", "t", 1), None),
        (GroupMetadataKey("g"), None),
    ]


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_offsets_are_there_after_the_broker_ended(tmp_path: Path, end: str) -> None:
    with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        create_topic(kafka, "t")
        for offset in range(100):
            assert commit(kafka, f"g{offset % 7}", "t", {0: offset}) == [0]
        commit(kafka, "gone", "t", {0: 1})
        kafka.call("delete_groups", 2, groups_names=("gone",))
        getattr(daemon, end)()
    with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        until_loaded(kafka)
        for group in range(7):
            newest = max(offset for offset in range(100) if offset % 7 == group)
            assert fetch(kafka, f"g{group}", "t") == {0: (newest, 0, "")}
        assert fetch(kafka, "gone", "t") == {0: (-1, 0, "")}
        assert {each.group_id for each in kafka.call("list_groups", 5).groups} == {f"g{number}" for number in range(7)}


def test_committed_offsets_never_go_back_when_the_broker_is_killed_amid_commits(tmp_path: Path) -> None:
    acknowledged = 0
    for round_number in range(4):
        with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
            if round_number == 0:
                create_topic(kafka, "t")
            else:
                until_loaded(kafka)
                (offset, error, _) = fetch(kafka, "g", "t")[0]
                assert error == 0
                assert acknowledged <= offset <= acknowledged + 1
                acknowledged = offset
            first = acknowledged
            killer = threading.Thread(target=daemon.kill)
            with contextlib.suppress(OSError, EOFError):  # the broker is killed during a commit
                while True:
                    assert commit(kafka, "g", "t", {0: acknowledged + 1}) == [0]
                    acknowledged += 1
                    if acknowledged == first + 50:
                        killer.start()
            killer.join()


def test_a_commit_with_a_retention_of_its_own_expires_and_its_group_with_it(tmp_path: Path) -> None:
    settings = ("offsets.retention.check.interval.ms=10", "offsets.topic.num.partitions=1")
    with start_daemon(tmp_path, *settings) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        create_topic(kafka, "t")
        assert commit(kafka, "stays", "t", {0: 1}) == [0]
        assert commit(kafka, "expires", "t", {0: 1}, version=4, retention_ms=1) == [0]
        while "expires" in {each.group_id for each in kafka.call("list_groups", 5).groups}:
            pass  # every iteration waits for a response; the broker's check runs at its own interval
        assert fetch(kafka, "expires", "t") == {0: (-1, 0, "")}
        assert fetch(kafka, "stays", "t") == {0: (1, 0, "")}


def produce_raw(kafka: KafkaWire, client_id: str, partition: int, key: bytes, value: bytes) -> int:
    """Produce to the offsets topic, and return the error code."""
    builder = RecordBatchBuilder(max_bytes=1 << 20)
    builder.append(1_700_000_000_000, key, value)
    request = produce_request(9, OFFSETS_TOPIC, builder.build(), partition=partition)
    kafka.correlation_id += 1
    kafka.socket.sendall(request_frame(request, kafka.correlation_id, client_id))
    code: int = kafka.receive("produce", 9).responses[0].partition_responses[0].error_code
    return code


def test_only_kafkas_administrator_may_produce_to_the_offsets_topic(kafka: KafkaWire) -> None:
    create_topic(kafka, "produced")
    assert commit(kafka, "g", "produced", {0: 1}) == [0]
    key = OffsetCommitKey("produced", "produced", 0).to_bytes()
    value = OffsetCommitValue(1).to_bytes()
    partition = partition_of("g", 50)  # the commit needed its log; logs of other partitions may not exist yet
    assert produce_raw(kafka, "somebody", partition, key, value) == 17
    assert produce_raw(kafka, "__admin_client", partition, key, value) == 0


def test_a_partition_that_cannot_be_loaded_refuses_its_groups_and_no_others(tmp_path: Path) -> None:
    broken = partition_of("broken", 50)
    assert broken != partition_of("sound", 50)
    with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        create_topic(kafka, "t")
        for group in ("broken", "sound"):
            assert commit(kafka, group, "t", {0: 1}) == [0]
        key = OffsetCommitKey("broken", "t", 0).to_bytes()
        assert produce_raw(kafka, "__admin_client", broken, key, b"\x00\x63 of the future") == 0
        daemon.stop()
    with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        until_loaded(kafka)
        assert fetch(kafka, "sound", "t") == {0: (1, 0, "")}
        assert commit(kafka, "sound", "t", {0: 2}) == [0]
        assert fetch(kafka, "broken", "t") == {0: (-1, 15, "")}
        assert commit(kafka, "broken", "t", {0: 2}) == [15]
        listed = kafka.call("list_groups", 5)
        assert (listed.error_code, [group.group_id for group in listed.groups]) == (0, ["sound"])
        assert "OffsetCommitValue has version 99" in daemon.log


def test_offsets_that_outlived_their_topic_are_deleted_when_they_are_loaded(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        create_topic(kafka, "t", 3)
        assert commit(kafka, "g", "t", {0: 1}) == [0]
        for number, topic_id in ((1, b"an older topic t"), (2, ZERO_UUID)):
            key, value = OffsetCommitKey("g", "t", number), OffsetCommitValue(9, topic_id=topic_id)
            raw = key.to_bytes(), value.to_bytes()
            assert produce_raw(kafka, "__admin_client", partition_of("g", 50), *raw) == 0
        daemon.kill()
    with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        until_loaded(kafka)
        assert fetch(kafka, "g", "t", (0, 1, 2)) == {0: (1, 0, ""), 1: (-1, 0, ""), 2: (9, 0, "")}
        assert "offsets of deleted topics are deleted, groups=1" in daemon.log


def test_groups_whose_log_is_offline_are_refused_and_not_taken_for_new(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    settings = (f"log.dirs={first},{second}", "offsets.topic.num.partitions=2")
    groups = ("g1", "g2", "g3", "g4")
    with start_daemon(tmp_path, *settings) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        create_topic(kafka, "t")
        for group in groups:
            assert commit(kafka, group, "t", {0: 1}) == [0]
        daemon.stop()
    (lost,) = (number for number in range(2) if (second / f"{OFFSETS_TOPIC}-{number}").is_dir())
    second.rename(tmp_path / "gone")
    second.write_text("a file is no directory")
    with start_daemon(tmp_path, *settings) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        until_loaded(kafka)
        for group in groups:
            found = fetch(kafka, group, "t")
            assert found == {0: (-1, 15, "") if partition_of(group, 2) == lost else (1, 0, "")}
    assert {partition_of(group, 2) for group in groups} == {0, 1}


def test_a_groups_partition_follows_from_the_count_of_a_topic_that_a_client_created(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        create_topic(kafka, OFFSETS_TOPIC, 3)
        create_topic(kafka, "t")
        assert [commit(kafka, f"g{number}", "t", {0: 1}) for number in range(6)] == [[0]] * 6
        assert len(stored(tmp_path, "g1", 3)) >= 1


def test_deleting_the_offsets_topic_forgets_all_groups_and_the_next_commit_creates_it_again(tmp_path: Path) -> None:
    with (
        start_daemon(tmp_path, "offsets.topic.num.partitions=2") as daemon,
        KafkaWire(daemon.host, daemon.port) as kafka,
    ):
        create_topic(kafka, "t")
        commit(kafka, "g", "t", {0: 1})
        kio = schema("delete_topics", 6, "request")
        state = kio.DeleteTopicState(name=OFFSETS_TOPIC, topic_id=None)
        kafka.call("delete_topics", 6, topics=(state,), timeout=timedelta(seconds=30))
        assert fetch(kafka, "g", "t") == {0: (-1, 0, "")}
        assert commit(kafka, "g", "t", {0: 2}) == [0]
        assert fetch(kafka, "g", "t") == {0: (2, 0, "")}


def test_partitions_whose_logs_are_being_created_have_their_leader(tmp_path: Path) -> None:
    with (
        start_daemon(tmp_path, "offsets.topic.num.partitions=400") as daemon,
        KafkaWire(daemon.host, daemon.port) as kafka,
    ):
        create_topic(kafka, "orders")
        assert commit(kafka, "g", "orders", {0: 1}) == [0]
        kafka.send(metadata_request(12, OFFSETS_TOPIC))
        (found,) = kafka.receive("metadata", 12).topics
        existing = len(list((tmp_path / "data").glob(f"{OFFSETS_TOPIC}-*")))
        assert existing < 400, "all logs existed, so this run proved nothing"
        assert {(each.error_code, each.leader_id) for each in found.partitions} == {(0, 1)}
