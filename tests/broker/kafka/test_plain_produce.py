"""Later produce requests of a connection take a shorter path, with the same results as the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.configs import (
    OP_SET,
    TOPIC_RESOURCE,
    AlterConfigOp,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.records import Codec, RecordBatchBuilder
from tests.broker.conftest import Batch
from tests.support.daemon import Daemon
from tests.support.kafka.kafka_wire import KafkaWire, answer_of, framed, produce_request, request_frame
from tests.support.storage.records import reseal
from tests.support.wire import WireClient

VERSIONS = range(3, 14)
ATTRIBUTES = 22
TRANSACTIONAL, CONTROL = 0x10, 0x20


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


def answer(kafka: KafkaWire, frame: bytes) -> bytes:
    kafka.socket.sendall(frame)
    return kafka.receive_frame()


def with_attributes(batch: bytearray, bits: int) -> bytearray:
    batch[ATTRIBUTES] |= bits
    return reseal(batch)


def with_crc(batch: bytearray) -> bytearray:
    batch[-1] ^= 1
    return batch


def zstd() -> bytes:
    builder = RecordBatchBuilder(Codec.ZSTD, max_bytes=1 << 20)
    assert builder.append(1_700_000_000_000, b"k", b"v" * 100, ())
    return bytes(builder.build())


REFUSED: dict[str, Callable[[Batch], bytes | bytearray]] = {
    "a wrong crc": lambda batch: with_crc(batch()),
    "two batches": lambda batch: batch() + batch(),
    "half a batch": lambda batch: batch()[:-3],
    "a header cut short": lambda batch: batch()[:20],
    "one byte": lambda batch: b"x",
    "no byte": lambda batch: b"",
    "a transaction": lambda batch: with_attributes(batch(), TRANSACTIONAL),
    "control records": lambda batch: with_attributes(batch(), CONTROL),
    "too many bytes": lambda batch: batch(b"x" * 5_000),
    "no key on a compacted topic": lambda batch: batch(key=None),
}


@pytest.mark.parametrize("version", [3, 7, 9, 13])
def test_what_is_refused_is_answered_in_the_same_bytes_as_in_a_first_request(
    daemon: Daemon, wire: WireClient, kafka: KafkaWire, batch: Batch, version: int
) -> None:
    topic = f"refused.{version}"
    wire.create_topic(topic, max_message_bytes="3000", cleanup_policy="compact")
    topic_id = kafka.topic_id(topic)
    codes = set()
    for number, (name, make) in enumerate(REFUSED.items()):
        good = request_frame(produce_request(version, topic, batch(), topic_id), number)
        assert [base_offset(version, answer(kafka, good)) for _ in range(2)] == [2 * number, 2 * number + 1]
        frame = request_frame(produce_request(version, topic, make(batch), topic_id), 1_000 + number)
        with KafkaWire(daemon.host, daemon.port) as fresh:
            expected = answer(fresh, frame)
        assert answer(kafka, frame) == expected, name
        codes.add(answer_of("produce", version, expected)[1].responses[0].partition_responses[0].error_code)
    assert codes == {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }


@pytest.mark.parametrize(("version", "code"), [(6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (7, ErrorCode.NONE)])
def test_zstd_after_other_batches_is_still_only_taken_from_version_7_on(
    kafka: KafkaWire, wire: WireClient, batch: Batch, version: int, code: ErrorCode
) -> None:
    wire.create_topic(f"zstd.{version}")
    assert [kafka.produce(version, f"zstd.{version}", sent).error_code for sent in (batch(), batch(), zstd())] == [
        0,
        0,
        code,
    ]


def base_offset(version: int, frame: bytes) -> int:
    partition = answer_of("produce", version, frame)[1].responses[0].partition_responses[0]
    assert partition.error_code == 0, partition
    offset: int = partition.base_offset
    return offset


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_of_many_partitions_in_one_piece_are_answered_in_their_order(
    kafka: KafkaWire, wire: WireClient, batch: Batch, version: int
) -> None:
    topic = f"many.{version}"
    wire.create_topic(topic, partitions=3)
    topic_id = kafka.topic_id(topic)
    numbers = [0, 1, 0, 2, 2, 0, 1, 1, 1, 0]
    frames = [
        request_frame(produce_request(version, topic, batch(b"%d" % index), topic_id, partition=number), index)
        for index, number in enumerate(numbers)
    ]
    kafka.socket.sendall(b"".join(frames))
    for index, number in enumerate(numbers):
        correlation_id, found = answer_of("produce", version, kafka.receive_frame())
        (partition,) = found.responses[0].partition_responses
        assert (correlation_id, partition.index, partition.error_code) == (index, number, 0)
        assert partition.base_offset == numbers[:index].count(number)
    for number in range(3):
        stored = bytes(wire.fetch(topic, 0, number).data)
        positions = [stored.index(b"k\x02%d\x00" % index) for index, each in enumerate(numbers) if each == number]
        assert positions == sorted(positions)


def test_a_topic_that_was_deleted_and_made_again_is_looked_up_each_time(
    kafka: KafkaWire, wire: WireClient, batch: Batch
) -> None:
    wire.create_topic("again")
    assert [kafka.produce(7, "again", batch()).base_offset for _ in range(3)] == [0, 1, 2]
    old_id = kafka.topic_id("again")
    by_id = produce_request(13, "again", batch(), old_id)
    assert [base_offset(13, answer(kafka, request_frame(by_id, 1))) for _ in range(2)] == [3, 4]
    wire.delete_topic("again")
    assert kafka.produce(7, "again", batch()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_by_id(kafka, old_id, batch()) == ErrorCode.UNKNOWN_TOPIC_ID
    wire.create_topic("again")
    assert [kafka.produce(7, "again", batch()).base_offset for _ in range(2)] == [0, 1]
    assert code_by_id(kafka, old_id, batch()) == ErrorCode.UNKNOWN_TOPIC_ID


def code_by_id(kafka: KafkaWire, topic_id: UUID, batch: bytes | bytearray) -> int:
    found = answer(kafka, request_frame(produce_request(13, "", batch, topic_id), 1))
    code: int = answer_of("produce", 13, found)[1].responses[0].partition_responses[0].error_code
    return code


def set_configs(wire: WireClient, topic: str, **configs: str) -> None:
    operations = [
        AlterConfigOp(name=name.replace("_", "."), operation=OP_SET, value=value) for name, value in configs.items()
    ]
    resource = AlterConfigsResource(type=TOPIC_RESOURCE, name=topic, operations=operations)
    assert wire.call(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)).results[0].error == 0


def test_a_change_of_the_topics_configuration_holds_for_the_next_request(
    kafka: KafkaWire, wire: WireClient, batch: Batch
) -> None:
    wire.create_topic("configured")
    assert [kafka.produce(7, "configured", batch(), acks=-1).base_offset for _ in range(2)] == [0, 1]
    set_configs(wire, "configured", min_insync_replicas="2")
    assert kafka.produce(7, "configured", batch(), acks=-1).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    set_configs(wire, "configured", min_insync_replicas="1", flush_messages="1")
    assert [kafka.produce(7, "configured", batch(), acks=-1).base_offset for _ in range(3)] == [2, 3, 4]
    set_configs(wire, "configured", message_timestamp_type="LogAppendTime")
    assert kafka.produce(7, "configured", batch(), acks=-1).log_append_time.year >= 2024


def test_a_repeated_batch_of_an_idempotent_producer_is_stored_once(kafka: KafkaWire, wire: WireClient) -> None:
    def numbered(sequence: int) -> bytes:
        builder = RecordBatchBuilder(
            Codec.NONE, max_bytes=1 << 20, producer_id=5, producer_epoch=0, base_sequence=sequence
        )
        assert builder.append(1_700_000_000_000, b"k", b"v", ())
        return bytes(builder.build())

    wire.create_topic("idempotent")
    offsets = [kafka.produce(7, "idempotent", numbered(sequence)).base_offset for sequence in (0, 1, 1, 2, 1)]
    assert offsets == [0, 1, 1, 2, 1]
    assert kafka.produce(7, "idempotent", numbered(9)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert wire.end_offset("idempotent") == 3


def test_who_a_client_says_it_is_counts_in_each_request(kafka: KafkaWire, batch: Batch) -> None:
    request = produce_request(7, "__consumer_offsets", batch())
    codes = []
    for client_id in ("stranger", "__admin_client", "stranger", "__admin_client", "stranger"):
        found = answer(kafka, request_frame(request, 1, client_id))
        codes.append(answer_of("produce", 7, found)[1].responses[0].partition_responses[0].error_code)
    refused = ErrorCode.INVALID_TOPIC_EXCEPTION
    allowed = codes[1]
    assert allowed != refused
    assert codes == [refused, allowed, refused, allowed, refused]


def test_a_frame_that_is_spoiled_after_good_ones_closes_only_its_connection(
    daemon: Daemon, kafka: KafkaWire, batch: Batch
) -> None:
    kafka.topic_id("spoiled")
    frame = request_frame(produce_request(9, "spoiled", batch()), 1)
    assert [base_offset(9, answer(kafka, frame)) for _ in range(2)] == [0, 1]
    kafka.socket.sendall(framed(frame[4:-1] + b"\x01"))  # a tagged field is announced but missing
    assert kafka.is_closed_by_broker()
    with KafkaWire(daemon.host, daemon.port) as other:
        assert base_offset(9, answer(other, frame)) == 2
