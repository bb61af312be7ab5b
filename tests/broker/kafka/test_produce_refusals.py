"""Refused and repeated batches are answered as by Apache Kafka: found by tests/interop/differential."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records import Codec
from barnabas.protocol.records.record import Record
from tests.broker.conftest import Batch
from tests.support.daemon import Daemon
from tests.support.kafka.kafka_wire import KafkaWire, produce_request, schema
from tests.support.kafka.two_brokers import delete_records
from tests.support.kafka.wire_producer import WireProducer
from tests.support.storage.legacy import message
from tests.support.storage.records import build, plain, reseal
from tests.support.wire import WireClient

MAGIC, ATTRIBUTES, TIMESTAMP_TYPE, BASE_SEQUENCE = 16, 22, 0x08, 53
NOW_MS = 1_700_000_000_000


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


@pytest.mark.parametrize("size", [14, 17, 48])
def test_a_message_that_is_too_short_for_version_2_is_refused_for_its_version(kafka: KafkaWire, size: int) -> None:
    kafka.topic_id("short")
    old = bytearray(message(0, b"", magic=0).ljust(12 + size, b"\0"))
    struct.pack_into(">i", old, 8, size)
    assert kafka.produce(9, "short", old).error_code == ErrorCode.INVALID_RECORD
    assert old[MAGIC] == 0
    old[MAGIC] = 2
    assert kafka.produce(9, "short", old).error_code == ErrorCode.CORRUPT_MESSAGE
    assert kafka.produce(9, "short", old[:-1]).error_code == ErrorCode.INVALID_RECORD


def test_the_refusal_of_records_has_the_log_start_offset_and_that_of_a_frame_has_not(
    kafka: KafkaWire, batch: Batch
) -> None:
    kafka.topic_id("starts")
    kafka.produce(9, "starts", plain(5))
    delete_records(kafka, "starts", 0, 3)
    for refused, code, start in (
        (plain(1, producer_id=7, producer_epoch=0, base_sequence=-1), ErrorCode.INVALID_RECORD, 3),
        (batch(b"late", timestamp=2**62), ErrorCode.INVALID_TIMESTAMP, 3),
        (plain(1)[:-1], ErrorCode.INVALID_RECORD, -1),
        (bytearray(message(0, b"old")), ErrorCode.INVALID_RECORD, -1),
        (plain(1)[:-1] + b"?", ErrorCode.CORRUPT_MESSAGE, -1),
    ):
        answer = kafka.produce(9, "starts", refused)
        assert (answer.error_code, answer.log_start_offset) == (code, start)


def test_the_refusal_of_a_transaction_s_first_sequence_has_the_log_start_offset(kafka: KafkaWire) -> None:
    kafka.topic_id("overtaken")
    kafka.produce(9, "overtaken", plain(5))
    delete_records(kafka, "overtaken", 0, 3)
    producer = WireProducer(kafka, "overtaking")
    assert producer.init() == 0
    later = bytearray(producer.batch(("overtaken", 0), b"a"))
    struct.pack_into(">i", later, BASE_SEQUENCE, 1)
    reseal(later)
    kio = schema("produce", 12, "request")
    data = kio.PartitionProduceData(index=0, records=bytes(later))
    (topic,) = kafka.call(
        "produce",
        12,
        transactional_id="overtaking",
        acks=-1,
        timeout=timedelta(seconds=30),
        topic_data=(kio.TopicProduceData(name="overtaken", partition_data=(data,)),),
    ).responses
    (answer,) = topic.partition_responses
    assert (answer.error_code, answer.log_start_offset) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 3)


def test_an_unknown_partition_is_told_before_what_else_is_wrong(kafka: KafkaWire) -> None:
    kafka.topic_id("known")
    for version, data, acks in ((9, plain(1), 2), (6, plain(1, Codec.ZSTD), 1)):
        kafka.send(produce_request(version, "known", data, partition=5, acks=acks))
        (found,) = kafka.receive("produce", version).responses
        assert found.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_zstd_in_an_old_version_is_not_told_of_an_old_message(kafka: KafkaWire) -> None:
    kafka.topic_id("zstd")
    old = bytearray(message(0, b"0123456789"))
    old[ATTRIBUTES] = 4
    assert kafka.produce(6, "zstd", old).error_code == ErrorCode.INVALID_RECORD


def test_a_repeated_batch_is_answered_with_its_largest_timestamp(kafka: KafkaWire) -> None:
    kafka.topic_id("again")
    sent = plain(3, producer_id=7, producer_epoch=0, base_sequence=0)
    first, second = (kafka.produce(9, "again", sent) for _ in range(2))
    assert first.log_append_time is None
    assert (second.base_offset, second.log_append_time.timestamp() * 1000) == (0, NOW_MS + 2)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_a_record_without_a_key_and_one_of_a_wrong_time_are_both_named(
    kafka: KafkaWire, wire: WireClient, codec: Codec
) -> None:
    topic = f"faults.{codec.name}"
    wire.create_topic(topic, cleanup_policy="compact", message_timestamp_before_max_ms="1000000000000")
    records = [
        Record(0, NOW_MS, None, b"", ()),
        Record(1, 5, b"k", b"", ()),
        Record(2, 5, None, b"", ()),
        Record(3, NOW_MS, b"k", b"", ()),
    ]
    answer = kafka.produce(9, topic, build(records, codec))
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [each.batch_index for each in answer.record_errors] == [0, 1, 2]


def test_each_record_of_a_batch_with_log_append_time_is_named(kafka: KafkaWire, wire: WireClient) -> None:
    wire.create_topic("stamped", message_timestamp_type="LogAppendTime")
    sent = plain(2)
    sent[ATTRIBUTES] |= TIMESTAMP_TYPE
    answer = kafka.produce(9, "stamped", reseal(sent))
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [each.batch_index for each in answer.record_errors] == [0, 1]


def test_a_fetch_without_a_leader_epoch_may_write_any_negative_number(kafka: KafkaWire) -> None:
    kafka.topic_id("epochs")
    kafka.produce(9, "epochs", plain(1))
    assert kafka.fetch(11, "epochs", 0, leader_epoch=-2).error_code == 0


def test_unknown_topic_ids_come_before_unknown_partitions_in_the_answer_to_a_fetch(kafka: KafkaWire) -> None:
    kio = schema("fetch", 15, "request")

    def topic(topic_id: UUID, *partitions: int) -> Any:
        parts = (kio.FetchPartition(partition=n, fetch_offset=0, partition_max_bytes=9) for n in partitions)
        return kio.FetchTopic(topic_id=topic_id, partitions=tuple(parts))

    known, unknown = kafka.topic_id("ordered"), UUID(int=5)
    answer = kafka.call(
        "fetch",
        15,
        max_wait=timedelta(0),
        min_bytes=0,
        topics=(topic(known, 0, 7), topic(unknown, 0)),
        forgotten_topics_data=(),
        rack_id="",
    )
    found = [(each.topic_id, part.partition_index) for each in answer.responses for part in each.partitions]
    assert found == [(known, 0), (unknown, 0), (known, 7)]
