"""Offsets in transactions over Kafka's protocol, against a real daemon: pending, committed, dropped, after a kill."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.coordinator_log.topic import partition_of
from barnabas.protocol.groups.keys import OffsetCommitKey, decode_key
from barnabas.protocol.groups.values import OffsetCommitValue
from barnabas.protocol.records.batch import iter_batches
from barnabas.protocol.records.end_marker import decode_end_marker
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.topic_name import OFFSETS_TOPIC
from barnabas.protocol.uuids import ZERO_UUID
from tests.support.daemon import Daemon, start_daemon
from tests.support.groups.committed import commit, create_topic, fetch, until_loaded
from tests.support.kafka.kafka_wire import KafkaWire, schema
from tests.support.kafka.wire_producer import LEVELS, WireProducer

UNSTABLE = 88
METADATA_TOO_LARGE = 12
FEW_PARTITIONS = ("offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1")
STABLE_VERSIONS = range(7, 11)


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


def producer_of(kafka: KafkaWire, transactional_id: str, *, level: int = 2) -> WireProducer:
    """Return an initialized producer."""
    producer = WireProducer(kafka, transactional_id, level=level)
    assert producer.init() == 0
    return producer


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("is_commit", "expected"), [(True, 5), (False, 1)])
def test_an_offset_is_pending_until_the_transaction_ends(
    kafka: KafkaWire, level: int, is_commit: bool, expected: int
) -> None:
    name = f"pending-{level}-{is_commit}"
    topic_id = create_topic(kafka, name, 2)
    assert commit(kafka, name, name, {0: 1, 1: 1}) == [0, 0]
    producer = producer_of(kafka, name, level=level)
    assert producer.commit_offsets(name, name, {0: 5}, "m") == 0
    for version in STABLE_VERSIONS:
        found = fetch(kafka, name, name, (0, 1), version=version, topic_id=topic_id, require_stable=True)
        assert found == {0: (-1, UNSTABLE, ""), 1: (1, 0, "")}
        if version < 10:
            found = fetch(kafka, name, None, version=version, require_stable=True)
            assert found == {(name, 0): (-1, UNSTABLE, ""), (name, 1): (1, 0, "")}
    assert fetch(kafka, name, name)[0] == (1, 0, "")
    assert producer.end(is_commit=is_commit) == 0
    for version in STABLE_VERSIONS:
        found = fetch(kafka, name, name, version=version, topic_id=topic_id, require_stable=True)
        assert found == {0: (expected, 0, "m" if is_commit else "")}


def test_metadata_that_is_too_long_is_refused_and_nothing_is_pending(kafka: KafkaWire) -> None:
    create_topic(kafka, "talkative")
    producer = producer_of(kafka, "talkative")
    assert producer.commit_offsets("talkative", "talkative", {0: 5}, "m" * 4097) == METADATA_TOO_LARGE
    assert fetch(kafka, "talkative", "talkative", require_stable=True) == {0: (-1, 0, "")}
    assert producer.commit_offsets("talkative", "talkative", {0: 5}, "m" * 4096) == 0
    assert fetch(kafka, "talkative", "talkative", require_stable=True) == {0: (-1, UNSTABLE, "")}


def test_a_later_commit_outside_of_the_transaction_counts(kafka: KafkaWire) -> None:
    create_topic(kafka, "later")
    producer = producer_of(kafka, "later")
    assert producer.commit_offsets("later", "later", {0: 5}) == 0
    assert commit(kafka, "later", "later", {0: 9}) == [0]
    assert fetch(kafka, "later", "later", require_stable=True)[0][1] == UNSTABLE
    assert producer.end(is_commit=True) == 0
    assert fetch(kafka, "later", "later", require_stable=True) == {0: (9, 0, "")}


def test_one_transaction_commits_offsets_of_groups_in_several_partitions(kafka: KafkaWire) -> None:
    create_topic(kafka, "several")
    groups = ["several-a", "several-b", "several-c"]
    assert len({partition_of(group, 50) for group in groups}) == 3
    producer = producer_of(kafka, "several")
    for is_commit in (False, True):
        for group in groups:
            assert producer.commit_offsets(group, "several", {0: 7}) == 0
        assert {fetch(kafka, group, "several", require_stable=True)[0][1] for group in groups} == {UNSTABLE}
        assert producer.end(is_commit=is_commit) == 0
        expected = 7 if is_commit else -1
        assert [fetch(kafka, group, "several", require_stable=True) for group in groups] == [{0: (expected, 0, "")}] * 3


def test_a_new_instance_drops_the_offsets_of_the_one_that_it_fences(kafka: KafkaWire) -> None:
    create_topic(kafka, "fenced")
    first = producer_of(kafka, "fenced")
    assert first.commit_offsets("fenced", "fenced", {0: 5}) == 0
    second = producer_of(kafka, "fenced")
    assert fetch(kafka, "fenced", "fenced", require_stable=True) == {0: (-1, 0, "")}
    assert first.commit_offsets("fenced", "fenced", {0: 6}) == 47
    assert fetch(kafka, "fenced", "fenced", require_stable=True) == {0: (-1, 0, "")}
    assert second.commit_offsets("fenced", "fenced", {0: 7}) == 0
    assert second.end(is_commit=True) == 0
    assert fetch(kafka, "fenced", "fenced", require_stable=True) == {0: (7, 0, "")}


# --- answers


def txn_commit(kafka: KafkaWire, producer: WireProducer, version: int, topic: str, **fields: Any) -> dict[int, int]:
    """Commit offset 3 of partitions 0 and 9 in a transaction; return the errors by partition."""
    kio = schema("txn_offset_commit", version, "request")
    metadata = fields.pop("metadata", "")
    partitions = tuple(
        kio.TxnOffsetCommitRequestPartition(partition_index=n, committed_offset=3, committed_metadata=metadata)
        for n in (0, 9)
    )
    request = {
        "transactional_id": producer.transactional_id,
        "group_id": topic,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.epoch,
        **fields,
    }
    topics = (kio.TxnOffsetCommitRequestTopic(name=topic, partitions=partitions),)
    answer = kafka.call("txn_offset_commit", version, topics=topics, **request)
    return {each.partition_index: int(each.error_code) for each in answer.topics[0].partitions}


@pytest.mark.parametrize("version", range(6))
def test_every_version_commits_offsets(kafka: KafkaWire, version: int) -> None:
    name = f"version-{version}"
    create_topic(kafka, name)
    producer = producer_of(kafka, name, level=2 if version >= 5 else 0)
    if version < 5:
        added = kafka.call(
            "add_offsets_to_txn",
            3,
            transactional_id=name,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            group_id=name,
        )
        assert added.error_code == 0
    assert txn_commit(kafka, producer, version, name) == {0: 0, 9: 3}
    assert producer.end(is_commit=True) == 0
    assert fetch(kafka, name, name) == {0: (3, 0, "")}


@pytest.mark.parametrize(("version", "code"), [(0, 48), (3, 48), (4, 120)])
def test_older_clients_have_to_add_the_group_first(kafka: KafkaWire, version: int, code: int) -> None:
    name = f"unadded-{version}"
    create_topic(kafka, name)
    producer = producer_of(kafka, name, level=0)
    assert producer.write(name, 0, b"opens the transaction") == 0
    assert txn_commit(kafka, producer, version, name) == {0: code, 9: 3}
    assert fetch(kafka, name, name, require_stable=True) == {0: (-1, 0, "")}


def test_refusals_of_a_request_name_their_reason(kafka: KafkaWire) -> None:
    create_topic(kafka, "refused")
    producer = producer_of(kafka, "refused")
    assert txn_commit(kafka, producer, 5, "refused", group_id="") == {0: 24, 9: 3}
    assert txn_commit(kafka, producer, 5, "refused", metadata="x" * 4097) == {0: 12, 9: 3}
    assert txn_commit(kafka, producer, 5, "refused", producer_epoch=producer.epoch + 1) == {0: 47, 9: 3}
    assert txn_commit(kafka, producer, 5, "refused", producer_id=producer.producer_id + 1000) == {0: 49, 9: 3}
    assert txn_commit(kafka, producer, 5, "refused", generation_id=3, member_id="m") == {0: 22, 9: 3}
    assert fetch(kafka, "refused", "refused", require_stable=True) == {0: (-1, 0, "")}
    assert commit(kafka, "refused", "refused", {0: 1}) == [0]
    assert txn_commit(kafka, producer, 5, "refused", generation_id=3, member_id="m") == {0: 25, 9: 3}
    assert producer.end(is_commit=True) == 0
    assert fetch(kafka, "refused", "refused", require_stable=True) == {0: (1, 0, "")}


# --- groups


def listed(kafka: KafkaWire) -> set[str]:
    """Return the ids of all groups."""
    return {each.group_id for each in kafka.call("list_groups", 5).groups}


def test_a_group_with_only_pending_offsets_exists_until_they_are_dropped(kafka: KafkaWire) -> None:
    create_topic(kafka, "only-pending")
    producer = producer_of(kafka, "only-pending")
    assert producer.commit_offsets("only-pending", "only-pending", {0: 5}) == 0
    assert "only-pending" in listed(kafka)
    (described,) = kafka.call("describe_groups", 2, groups=("only-pending",)).groups
    assert (described.error_code, described.group_state) == (0, "Empty")
    assert fetch(kafka, "only-pending", None) == fetch(kafka, "only-pending", None, require_stable=True) == {}
    assert producer.end(is_commit=False) == 0
    assert "only-pending" not in listed(kafka)


def test_a_deleted_group_gets_no_offset_from_a_later_commit(kafka: KafkaWire) -> None:
    create_topic(kafka, "deleted-pending")
    producer = producer_of(kafka, "deleted-pending")
    assert producer.commit_offsets("deleted-pending", "deleted-pending", {0: 5}) == 0
    (deleted,) = kafka.call("delete_groups", 2, groups_names=("deleted-pending",)).results
    assert deleted.error_code == 0
    assert "deleted-pending" not in listed(kafka)
    assert producer.end(is_commit=True) == 0
    assert fetch(kafka, "deleted-pending", "deleted-pending", require_stable=True) == {0: (-1, 0, "")}


def test_a_deleted_offset_is_not_committed_by_its_transaction(kafka: KafkaWire) -> None:
    create_topic(kafka, "unpended", 2)
    producer = producer_of(kafka, "unpended")
    assert producer.commit_offsets("unpended", "unpended", {0: 5, 1: 6}) == 0
    kio = schema("offset_delete", 0, "request")
    partition = kio.OffsetDeleteRequestPartition(partition_index=0)
    topics = (kio.OffsetDeleteRequestTopic(name="unpended", partitions=(partition,)),)
    answer = kafka.call("offset_delete", 0, group_id="unpended", topics=topics)
    assert (answer.error_code, answer.topics[0].partitions[0].error_code) == (0, 0)
    assert producer.end(is_commit=True) == 0
    assert fetch(kafka, "unpended", "unpended", (0, 1), require_stable=True) == {0: (-1, 0, ""), 1: (6, 0, "")}


def test_pending_offsets_of_a_deleted_topic_are_dropped(kafka: KafkaWire) -> None:
    create_topic(kafka, "short-pending")
    producer = producer_of(kafka, "short-pending")
    assert producer.commit_offsets("short-pending", "short-pending", {0: 5}) == 0
    kio = schema("delete_topics", 6, "request")
    state = kio.DeleteTopicState(name="short-pending", topic_id=None)
    kafka.call("delete_topics", 6, topics=(state,), timeout=timedelta(seconds=30))
    create_topic(kafka, "short-pending")
    assert fetch(kafka, "short-pending", "short-pending", require_stable=True) == {0: (-1, 0, "")}
    assert producer.end(is_commit=True) == 0
    assert fetch(kafka, "short-pending", "short-pending", require_stable=True) == {0: (-1, 0, "")}


def test_an_expired_offset_stays_while_a_transaction_commits_its_partition(tmp_path: Path) -> None:
    settings = ("offsets.retention.check.interval.ms=10", *FEW_PARTITIONS)
    with start_daemon(tmp_path, *settings) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        create_topic(kafka, "t")
        producer = producer_of(kafka, "x")
        assert producer.commit_offsets("stays", "t", {0: 5}) == 0
        for group in ("stays", "expires"):
            assert commit(kafka, group, "t", {0: 1}, version=4, retention_ms=1) == [0]
        while "expires" in listed(kafka):
            pass  # every iteration waits for a response; the broker's check runs at its own interval
        assert fetch(kafka, "stays", "t") == {0: (1, 0, "")}
        assert producer.end(is_commit=False) == 0
        while "stays" in listed(kafka):
            pass


# --- the log


@pytest.mark.parametrize(("flushes", "is_commit", "expected"), [(True, True, 5), (False, False, 1)])
def test_a_pending_offset_is_pending_after_a_kill_and_its_producer_ends_the_transaction(
    tmp_path: Path, flushes: bool, is_commit: bool, expected: int
) -> None:
    settings = (*FEW_PARTITIONS, f"log.flush.interval.messages={1 if flushes else 2**62}")
    with start_daemon(tmp_path, *settings) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        create_topic(kafka, "t")
        assert commit(kafka, "g", "t", {0: 1}) == [0]
        producer = producer_of(kafka, "x")
        assert producer.write("t", 0, b"output") == 0
        assert producer.commit_offsets("g", "t", {0: 5}) == 0
        daemon.kill()
    with start_daemon(tmp_path, *settings) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        until_loaded(kafka)
        assert fetch(kafka, "g", "t", require_stable=True) == {0: (-1, UNSTABLE, "")}
        assert fetch(kafka, "g", "t") == {0: (1, 0, "")}
        producer.wire = kafka
        assert producer.end(is_commit=is_commit) == 0
        assert fetch(kafka, "g", "t", require_stable=True) == {0: (expected, 0, "")}
        daemon.kill()
    with start_daemon(tmp_path, *settings) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        until_loaded(kafka)
        assert fetch(kafka, "g", "t", require_stable=True) == {0: (expected, 0, "")}


def test_a_commit_is_one_transactional_batch_as_kafkas_coordinator_writes_it(tmp_path: Path) -> None:
    with (
        start_daemon(tmp_path, *FEW_PARTITIONS) as daemon,
        KafkaWire(daemon.host, daemon.port) as kafka,
    ):
        create_topic(kafka, "t", 2)
        producer = producer_of(kafka, "x")
        written = producer.producer_id, producer.epoch
        assert producer.commit_offsets("g", "t", {0: 3, 1: 4}, "m") == 0
        assert producer.end(is_commit=True) == 0
    (path,) = (tmp_path / "data" / f"{OFFSETS_TOPIC}-0").glob("*.log")
    data, marker = iter_batches(path.read_bytes())
    assert (data.producer_id, data.producer_epoch, data.base_sequence) == (*written, 0)
    assert (data.is_transactional, data.is_control) == (True, False)
    records = read_records(data)
    assert [decode_key(each.key or b"") for each in records] == [
        OffsetCommitKey("g", "t", 0),
        OffsetCommitKey("g", "t", 1),
    ]
    values = [OffsetCommitValue.from_bytes(each.value or b"") for each in records]
    assert [(each.offset, each.leader_epoch, each.metadata, each.topic_id) for each in values] == [
        (3, -1, "m", ZERO_UUID),
        (4, -1, "m", ZERO_UUID),
    ]
    (record,) = read_records(marker)
    assert decode_end_marker(record.key, record.value).is_commit
    assert (marker.producer_id, marker.producer_epoch) == (written[0], written[1] + 1)
