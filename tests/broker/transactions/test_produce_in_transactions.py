"""Transactional Produce requests through the wire, with the real coordinator."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire, answer_of, request_frame, schema
from tests.support.kafka.wire_producer import WireProducer
from tests.support.transactions.committed_reads import end_offset, fetch_committed
from tests.support.wire import WireClient

ONE_PARTITION = "transaction.state.log.num.partitions=1"
_TIMEOUT = timedelta(seconds=30)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("daemon"), ONE_PARTITION) as running:
        yield running


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


def produced(kafka: KafkaWire, producer: WireProducer, version: int, topic: str, batch: bytes) -> int:
    """Send one batch at a version of Produce, once; return the error."""
    kio = schema("produce", version, "request")
    data = (kio.TopicProduceData(name=topic, partition_data=(kio.PartitionProduceData(index=0, records=batch),)),)
    answer = kafka.call(
        "produce", version, transactional_id=producer.transactional_id, acks=-1, timeout=_TIMEOUT, topic_data=data
    )
    return int(answer.responses[0].partition_responses[0].error_code)


@pytest.mark.parametrize(
    ("version", "level", "expected"),
    [
        (10, 0, ErrorCode.INVALID_TXN_STATE),
        (11, 0, ErrorCode.TRANSACTION_ABORTABLE),
        (12, 2, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_a_produce_after_the_end_of_its_transaction_opens_none(
    wire: WireClient, kafka: KafkaWire, version: int, level: int, expected: ErrorCode
) -> None:
    topic = f"late.{version}"
    wire.create_topic(topic)
    producer = WireProducer(kafka, topic, level=level)
    producer.init()
    assert producer.write(topic, 0, b"in time") == 0
    late = producer.batch((topic, 0), b"late")
    assert producer.end(is_commit=True) == 0
    assert produced(kafka, producer, version, topic, late) == expected
    assert end_offset(kafka, topic, 0, committed=True) == end_offset(kafka, topic, 0, committed=False) == 2


def test_an_older_client_whose_partition_was_not_added_is_refused(wire: WireClient, kafka: KafkaWire) -> None:
    wire.create_topic("added")
    wire.create_topic("forgotten")
    producer = WireProducer(kafka, "older", level=0)
    producer.init()
    assert producer.write("added", 0, b"a") == 0
    batch = producer.batch(("forgotten", 0), b"b")
    assert produced(kafka, producer, 11, "forgotten", batch) == ErrorCode.TRANSACTION_ABORTABLE
    assert produced(kafka, producer, 9, "forgotten", batch) == ErrorCode.INVALID_TXN_STATE
    assert producer.end(is_commit=True) == 0
    assert end_offset(kafka, "forgotten", 0, committed=False) == 0


def test_verification_can_be_switched_off_as_in_kafka(tmp_path: Path) -> None:
    setting = "transaction.partition.verification.enable=false"
    with start_daemon(tmp_path, ONE_PARTITION, setting) as daemon:
        with WireClient(daemon.host, daemon.port) as wire, KafkaWire(daemon.host, daemon.port) as kafka:
            wire.create_topic("unverified")
            producer = WireProducer(kafka, "older", level=0)
            producer.init()
            batch = producer.batch(("unverified", 0), b"b")
            assert produced(kafka, producer, 11, "unverified", batch) == 0
            assert end_offset(kafka, "unverified", 0, committed=True) == 0


def test_pipelined_batches_wait_for_the_flush_of_their_admission_and_keep_their_bytes_and_order(
    tmp_path: Path,
) -> None:
    """The receive buffer is overwritten by the next frames while the first request waits."""
    with start_daemon(tmp_path, ONE_PARTITION, "log.flush.interval.messages=1") as daemon:
        with WireClient(daemon.host, daemon.port) as wire, KafkaWire(daemon.host, daemon.port) as kafka:
            wire.create_topic("flushed", 2)
            producer = WireProducer(kafka, "flushed")
            producer.init()
            expected: list[bytes] = []
            for number in range(3):
                frames, values = [], [b"%d-%d-" % (number, each) + bytes([each]) * 5_000 for each in range(8)]
                for sequence, value in enumerate(values):
                    kio = schema("produce", 12, "request")
                    batch = producer.batch(("flushed", 1), value)
                    producer._sequences["flushed", 1] = sequence + 1
                    partition = kio.PartitionProduceData(index=1, records=batch)
                    topic = kio.TopicProduceData(name="flushed", partition_data=(partition,))
                    request = kio.ProduceRequest(
                        transactional_id="flushed", acks=-1, timeout=_TIMEOUT, topic_data=(topic,)
                    )
                    frames.append(request_frame(request, 1_000 + sequence))
                kafka.socket.sendall(b"".join(frames))
                for _ in values:
                    _, answer = answer_of("produce", 12, kafka.receive_frame())
                    assert answer.responses[0].partition_responses[0].error_code == 0
                is_commit = number != 1
                assert producer.end(is_commit=is_commit) == 0
                expected += values if is_commit else []
            assert [value for _, value in fetch_committed(kafka, "flushed", 1, 0).values] == expected


def test_a_request_writes_what_is_admitted_and_refuses_the_rest(wire: WireClient, kafka: KafkaWire) -> None:
    wire.create_topic("mixed", 2)
    producer = WireProducer(kafka, "mixed")
    producer.init()
    places = {("mixed", 0): (b"a",), ("mixed", 1): (b"b",), ("missing", 0): (b"c",)}
    producer._wait_s = 0.0
    assert producer.write_many(places) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert producer.end(is_commit=True) == 0
    assert [fetch_committed(kafka, "mixed", number, 0).values for number in range(2)] == [[(0, b"a")], [(0, b"b")]]


def test_only_the_broker_writes_its_transaction_log(wire: WireClient, kafka: KafkaWire) -> None:
    producer = WireProducer(kafka, "writer")
    producer.init()
    batch = producer.batch(("__transaction_state", 0), b"x")
    assert producer.send({("__transaction_state", 0): batch}) == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_repeated_batch_in_a_transaction_is_stored_once(wire: WireClient, kafka: KafkaWire) -> None:
    wire.create_topic("repeated")
    producer = WireProducer(kafka, "repeated")
    producer.init()
    batch = producer.batch(("repeated", 0), b"once")
    for _ in range(3):
        assert producer.send({("repeated", 0): batch}) == 0
    assert producer.end(is_commit=True) == 0
    assert fetch_committed(kafka, "repeated", 0, 0).values == [(0, b"once")]
    assert end_offset(kafka, "repeated", 0, committed=False) == 2
