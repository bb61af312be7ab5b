"""Produce, Fetch and the related APIs of Kafka's protocol, in every version, against a real daemon."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.authorized_operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from barnabas.protocol.records import Codec, RecordBatchBuilder
from tests.broker.conftest import Batch
from tests.support.daemon import Daemon
from tests.support.kafka.kafka_wire import (
    KafkaWire,
    fetch_request,
    metadata_request,
    produce_request,
    request_frame,
    schema,
)
from tests.support.storage.records import reseal
from tests.support.wire import WireClient

PRODUCE_VERSIONS = range(3, 14)
FETCH_VERSIONS = range(4, 19)
UNKNOWN_ID = UUID(int=12345)
ATTRIBUTES, TRANSACTIONAL = 22, 0x10


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_every_version_of_produce_appends_the_bytes_that_a_fetch_answers(
    kafka: KafkaWire, wire: WireClient, batch: Batch, version: int
) -> None:
    topic = f"produced.{version}"
    kafka.topic_id(topic)
    sent = batch(b"one", b"two")
    first, second = kafka.produce(version, topic, sent), kafka.produce(version, topic, batch(b"three"))
    assert [(each.error_code, each.base_offset) for each in (first, second)] == [(0, 0), (0, 2)]
    assert wire.fetch(topic, 0).data[16 : len(sent)] == sent[16:]


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_every_version_of_fetch_answers_the_same_bytes(
    kafka: KafkaWire, wire: WireClient, batch: Batch, version: int
) -> None:
    topic = f"fetched.{version}"
    wire.create_topic(topic)
    for count in (1, 3, 2):
        wire.produce(topic, batch(*[b"x" * 50] * count))
    expected = wire.fetch(topic, 1)
    answer = kafka.fetch(version, topic, 1)
    assert (answer.error_code, answer.high_watermark, answer.last_stable_offset) == (0, 6, 6)
    assert answer.records == expected.data
    assert kafka.fetch(version, topic, 6).records == b""
    assert kafka.fetch(version, topic, 7).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("version", [4, 11, 16])
@pytest.mark.parametrize("size", [100, 3_000, 20_000, 300_000])
def test_records_of_many_partitions_lie_between_the_fields_of_a_large_answer(
    kafka: KafkaWire, wire: WireClient, batch: Batch, version: int, size: int
) -> None:
    topic = f"many.{version}.{size}"
    wire.create_topic(topic, partitions=7)
    expected = {}
    for number in range(7):
        if number != 3:  # the middle partition stays empty
            wire.produce(topic, batch(random.Random(number).randbytes(size)), number)
            expected[number] = wire.fetch(topic, 0, number).data
    kio = schema("fetch", version, "request")
    topic_id = kafka.topic_id(topic) if version >= 13 else None
    whole = fetch_request(version, topic, 0, topic_id, max_bytes=50 << 20)
    entries = tuple(
        kio.FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=10 << 20) for number in range(7)
    )
    key = {"topic_id": topic_id} if version >= 13 else {"topic": topic}
    kafka.send(replace(whole, topics=(kio.FetchTopic(**key, partitions=entries),)))
    kafka.send(metadata_request(4, topic))  # the next response must follow the complete fetch response
    kafka.correlation_id -= 1
    (found,) = kafka.receive("fetch", version).responses
    kafka.correlation_id += 1
    assert {each.partition_index: each.records for each in found.partitions} == {**expected, 3: b""}
    assert len(kafka.receive("metadata", 4).topics[0].partitions) == 7


def test_a_fetch_that_waits_is_answered_by_an_append_and_what_is_behind_it_after_it(
    daemon: Daemon, kafka: KafkaWire, batch: Batch
) -> None:
    kafka.topic_id("waiting")
    kafka.send(fetch_request(11, "waiting", 0, max_wait_ms=20_000))
    kafka.send(metadata_request(4, "waiting"))
    with KafkaWire(daemon.host, daemon.port) as other:
        assert other.produce(7, "waiting", batch(b"before")).error_code == 0
    kafka.correlation_id -= 1
    answer = kafka.receive("fetch", 11)
    assert answer.responses[0].partitions[0].high_watermark == 1
    kafka.correlation_id += 1
    assert kafka.receive("metadata", 4).topics[0].error_code == 0


def test_a_fetch_that_waits_in_vain_is_answered_with_nothing(kafka: KafkaWire) -> None:
    kafka.topic_id("in.vain")
    answer = kafka.fetch(11, "in.vain", 0, max_wait_ms=30)
    assert (answer.error_code, answer.records) == (0, b"")


def test_a_first_batch_that_is_larger_than_all_limits_comes_whole(kafka: KafkaWire, batch: Batch) -> None:
    kafka.topic_id("larger")
    kafka.produce(7, "larger", batch(b"x" * 5000))
    assert len(kafka.fetch(11, "larger", 0, max_bytes=10).records) > 5000


@pytest.mark.parametrize(("version", "code"), [(6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (7, ErrorCode.NONE)])
def test_zstd_is_taken_from_version_7_on(kafka: KafkaWire, version: int, code: ErrorCode) -> None:
    builder = RecordBatchBuilder(Codec.ZSTD, max_bytes=1 << 20)
    assert builder.append(1_700_000_000_000, b"k", b"v" * 100, ())
    kafka.topic_id("zstd")
    assert kafka.produce(version, "zstd", builder.build()).error_code == code


def test_acks_that_are_none_are_refused_and_acks_0_has_no_answer(kafka: KafkaWire, batch: Batch) -> None:
    kafka.topic_id("acks")
    assert kafka.produce(7, "acks", batch(), acks=2).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    kafka.send(produce_request(7, "acks", batch(), acks=0))
    assert kafka.list_offset(1, "acks", -1).offset == 1
    assert kafka.produce(7, "acks", batch(), acks=-1).base_offset == 1


def test_an_error_with_acks_0_closes_the_connection(daemon: Daemon, kafka: KafkaWire, batch: Batch) -> None:
    kafka.send(produce_request(7, "nowhere", batch(), acks=0))
    assert kafka.is_closed_by_broker()
    assert "produce with acks=0 to nowhere-0 failed" in daemon.log


def test_a_transactional_batch_needs_a_transactional_id_but_not_the_reverse(kafka: KafkaWire, batch: Batch) -> None:
    kafka.topic_id("transactions")
    kafka.send(replace(produce_request(9, "transactions", batch()), transactional_id="txn"))
    (result,) = kafka.receive("produce", 9).responses[0].partition_responses
    assert result.error_code == ErrorCode.NONE
    transactional = batch()
    transactional[ATTRIBUTES] |= TRANSACTIONAL
    kafka.send(produce_request(9, "transactions", reseal(transactional)))
    (result,) = kafka.receive("produce", 9).responses[0].partition_responses
    assert result.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert "without a transactional id" in result.error_message


def test_every_version_initializes_a_transactional_id(kafka: KafkaWire) -> None:
    answers = [
        kafka.call("init_producer_id", version, transactional_id="txn", transaction_timeout=timedelta(seconds=1))
        for version in range(6)
    ]
    assert [(each.error_code, each.producer_epoch) for each in answers] == [(0, epoch) for epoch in range(6)]
    assert len({each.producer_id for each in answers}) == 1


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_transaction_timeout_outside_of_the_limits_is_refused(
    daemon: Daemon, kafka: KafkaWire, timeout_ms: int
) -> None:
    timeout = timedelta(milliseconds=timeout_ms)
    answer = kafka.call("init_producer_id", 4, transactional_id="late", transaction_timeout=timeout)
    assert answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert f"transactional.id=late: INVALID_TRANSACTION_TIMEOUT: transaction.timeout.ms={timeout_ms}" in daemon.log


def test_producer_ids_are_handed_out_once(kafka: KafkaWire) -> None:
    ids = set()
    for version in range(6):
        answer = kafka.call(
            "init_producer_id", version, transactional_id=None, transaction_timeout=timedelta(seconds=1)
        )
        assert (answer.error_code, answer.producer_epoch) == (0, 0)
        ids.add(answer.producer_id)
    assert len(ids) == 6


@pytest.mark.parametrize("version", [7, 8, 12, 13])
def test_records_that_are_none_are_refused_for_good(kafka: KafkaWire, version: int) -> None:
    kafka.topic_id("none")
    answers = [kafka.produce(version, "none", empty) for empty in (None, b"")]
    assert [each.error_code for each in answers] == [ErrorCode.INVALID_RECORD] * 2


def test_an_unknown_topic_id_is_refused_where_a_version_names_topics_by_it(kafka: KafkaWire, batch: Batch) -> None:
    kafka.send(produce_request(13, "", batch(), UNKNOWN_ID))
    (topic,) = kafka.receive("produce", 13).responses
    assert (topic.topic_id, topic.partition_responses[0].error_code) == (UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID)
    for version in range(13, 19):
        kafka.send(fetch_request(version, "", 0, UNKNOWN_ID, max_wait_ms=10_000))
        (topic,) = kafka.receive("fetch", version).responses
        assert (topic.topic_id, topic.partitions[0].error_code) == (UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID)
    assert kafka.produce(9, "no.such.topic", batch()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert kafka.fetch(12, "no.such.topic", 0).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", [9, 12, 16])
def test_another_leader_epoch_than_the_current_one_is_refused(
    daemon: Daemon, kafka: KafkaWire, batch: Batch, version: int
) -> None:
    topic = f"epochs.{version}"
    kafka.topic_id(topic)
    kafka.produce(7, topic, batch())
    kafka.send(metadata_request(7, topic))
    current = kafka.receive("metadata", 7).topics[0].partitions[0].leader_epoch
    assert kafka.fetch(version, topic, 0, leader_epoch=current).error_code == ErrorCode.NONE
    newer = kafka.fetch(version, topic, 0, leader_epoch=current + 1)
    assert newer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    believed = (-1, current, current + 1, -2)
    offsets = [kafka.list_offset(4, topic, -1, leader_epoch=each).error_code for each in believed]
    assert offsets == [0, 0, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH]
    assert kafka.fetch(version, topic, 0, leader_epoch=-2).error_code == ErrorCode.NONE


def test_a_fenced_leader_epoch_is_answered_with_the_current_leader(
    daemon: Daemon, kafka: KafkaWire, batch: Batch
) -> None:
    topic_id = kafka.topic_id("fenced")
    kafka.produce(7, "fenced", batch())
    daemon.restart(clean=False)  # the leader epoch rises after a crash
    with KafkaWire(daemon.host, daemon.port) as again:
        again.send(metadata_request(7, "fenced"))
        current = again.receive("metadata", 7).topics[0].partitions[0].leader_epoch
        assert current > 0
        again.send(fetch_request(16, "fenced", 0, topic_id, leader_epoch=current - 1))
        (found,) = again.receive("fetch", 16).responses[0].partitions
        assert found.error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == (1, current)
        again.produce(7, "fenced", batch())
        for version in range(2, 5):
            kio = schema("offset_for_leader_epoch", version, "request")
            entries = tuple(
                kio.OffsetForLeaderPartition(partition=0, current_leader_epoch=believed, leader_epoch=asked)
                for believed, asked in (
                    (-1, current - 1),
                    (current, current),
                    (current - 1, 0),
                    (-1, current + 1),
                    (-2, 0),
                )
            )
            topics = (kio.OffsetForLeaderTopic(topic="fenced", partitions=entries),)
            fields = {"replica_id": -1} if version >= 3 else {}
            (topic,) = again.call("offset_for_leader_epoch", version, topics=topics, **fields).topics
            assert [(each.error_code, each.leader_epoch, each.end_offset) for each in topic.partitions] == [
                (0, current - 1, 1),
                (0, current, 2),
                (ErrorCode.FENCED_LEADER_EPOCH, -1, -1),
                (0, -1, -1),
                (ErrorCode.FENCED_LEADER_EPOCH, -1, -1),
            ]


@pytest.mark.parametrize("version", [4, 11, 14, 15, 18])
def test_a_follower_is_told_that_it_has_no_replica(kafka: KafkaWire, batch: Batch, version: int) -> None:
    topic = f"followed.{version}"
    topic_id = kafka.topic_id(topic)
    kafka.produce(8, topic, batch())
    for leader_epoch in (-1, 0) if version >= 9 else (-1,):
        kafka.send(fetch_request(version, topic, 0, topic_id, replica_id=7, leader_epoch=leader_epoch, max_wait_ms=500))
        (answer,) = kafka.receive("fetch", version).responses[0].partitions
        expected = ErrorCode.NOT_LEADER_OR_FOLLOWER if leader_epoch < 0 else ErrorCode.UNKNOWN_LEADER_EPOCH
        assert (answer.error_code, answer.records) == (expected, b"")


def test_list_offsets_refuses_a_partition_that_is_named_twice(kafka: KafkaWire, batch: Batch) -> None:
    kafka.topic_id("twice")
    kafka.produce(8, "twice", batch())
    kio = schema("list_offsets", 5, "request")
    entries = tuple(kio.ListOffsetsPartition(partition_index=0, timestamp=timestamp) for timestamp in (-1, 5))
    topics = (kio.ListOffsetsTopic(name="twice", partitions=entries),)
    answer = kafka.call("list_offsets", 5, replica_id=-1, isolation_level=0, topics=topics)
    assert {each.error_code for each in answer.topics[0].partitions} == {ErrorCode.INVALID_REQUEST}


def test_list_offsets_of_every_version_and_every_special_timestamp(kafka: KafkaWire, batch: Batch) -> None:
    kafka.topic_id("offsets")
    for stamp in (1_700_000_000_500, 1_700_000_000_900, 1_700_000_000_100):
        kafka.produce(7, "offsets", batch(b"v", timestamp=stamp))
    unsupported = (ErrorCode.UNSUPPORTED_VERSION, -1, -1)
    known = {-3: (7, (0, 1, 1_700_000_000_900)), -4: (8, (0, 0, -1)), -5: (9, (0, -1, -1)), -6: (11, (0, -1, -1))}
    for version in range(1, 12):
        found = {}
        for timestamp in (-1, -2, -3, -4, -5, -6, -7, 1_700_000_000_600, 1_700_000_001_000):
            answer = kafka.list_offset(version, "offsets", timestamp)
            found[timestamp] = (answer.error_code, answer.offset, answer.timestamp)
        assert found == {
            -1: (0, 3, -1),
            -2: (0, 0, -1),
            **{each: answer if version >= low else unsupported for each, (low, answer) in known.items()},
            -7: unsupported,
            1_700_000_000_600: (0, 1, 1_700_000_000_900),
            1_700_000_001_000: (0, -1, -1),
        }


@pytest.mark.parametrize("version", range(14))
def test_every_version_of_metadata_finds_the_broker_and_creates_what_is_missing(
    daemon: Daemon, kafka: KafkaWire, version: int
) -> None:
    topic = f"metadata.{version}"
    kafka.send(metadata_request(version, topic, "not/legal"))
    answer = kafka.receive("metadata", version)
    assert [(each.node_id, each.host, each.port) for each in answer.brokers] == [(1, daemon.host, daemon.port)]
    made, illegal = answer.topics
    assert (made.error_code, illegal.error_code) == (0, ErrorCode.INVALID_TOPIC_EXCEPTION)
    assert [(each.leader_id, each.replica_nodes, each.isr_nodes) for each in made.partitions] == [(1, (1,), (1,))]
    if version >= 1:
        assert answer.controller_id == 1
    if version >= 5:
        assert [each.offline_replicas for each in made.partitions] == [()]
    if version >= 10:
        assert made.topic_id is not None
    if version >= 4:
        request = metadata_request(version, f"{topic}.other")
        kafka.send(replace(request, allow_auto_topic_creation=False))
        (missing,) = kafka.receive("metadata", version).topics
        assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_metadata_by_topic_id_and_with_what_a_client_may_do(kafka: KafkaWire) -> None:
    topic_id = kafka.topic_id("by.id")
    kio = schema("metadata", 12, "request")
    topics = tuple(kio.MetadataRequestTopic(topic_id=each, name=None) for each in (topic_id, UNKNOWN_ID))
    found, unknown = kafka.call("metadata", 12, topics=topics, include_topic_authorized_operations=True).topics
    assert (found.name, found.error_code, found.topic_authorized_operations) == ("by.id", 0, TOPIC_OPERATIONS)
    assert (unknown.name, unknown.error_code, unknown.topic_id) == (None, ErrorCode.UNKNOWN_TOPIC_ID, UNKNOWN_ID)
    answer = kafka.call(
        "metadata",
        8,
        topics=(),
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=False,
    )
    assert answer.cluster_authorized_operations == CLUSTER_OPERATIONS


def test_requests_in_one_packet_are_answered_in_their_order(kafka: KafkaWire, batch: Batch) -> None:
    kafka.topic_id("packet")
    frames = b"".join(
        request_frame(produce_request(7, "packet", batch(b"%d" % number)), number) for number in range(20)
    )
    kafka.socket.sendall(frames)
    for number in range(20):
        assert int.from_bytes(kafka.receive_frame()[:4], "big") == number
    assert kafka.list_offset(1, "packet", -1).offset == 20


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_the_records_that_were_why_a_batch_is_refused_are_named_from_version_8_on(
    kafka: KafkaWire, wire: WireClient, codec: Codec
) -> None:
    topic = f"named.{codec.name}"
    wire.create_topic(topic, cleanup_policy="compact", message_timestamp_before_max_ms="1000000000000")
    for stamps, keys, code, bad in (
        ((1, 1_700_000_000_000, 2), (b"k", b"k", b"k"), ErrorCode.INVALID_TIMESTAMP, [0, 2]),
        ((1_700_000_000_000,) * 4, (b"k", None, b"k", None), ErrorCode.INVALID_RECORD, [1, 3]),
    ):
        builder = RecordBatchBuilder(codec, max_bytes=1 << 20)
        for stamp, key in zip(stamps, keys, strict=True):
            assert builder.append(stamp, key, b"value", ())
        data = builder.build()
        for version in range(3, 14):
            answer = kafka.produce(version, topic, data)
            assert answer.error_code == code
            if version >= 8:
                assert [each.batch_index for each in answer.record_errors] == bad
                assert all(each.batch_index_error_message for each in answer.record_errors)
                assert topic in answer.error_message
    assert wire.end_offset(topic) == 0
