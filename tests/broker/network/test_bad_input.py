"""Bad input gets the right error code or a closed connection, one log line, no write; other clients notice nothing."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator

import pytest

from barnabas.protocol.crc32c import crc32c
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic
from barnabas.protocol.messages.topics.metadata import MetadataRequest
from tests.broker.conftest import Batch
from tests.support.daemon import Daemon
from tests.support.wire import WireClient, produce_request


@pytest.fixture
def neighbour(daemon: Daemon) -> Iterator[WireClient]:
    """Another client, which must not be affected."""
    with WireClient(daemon.host, daemon.port) as client:
        client.call(MetadataRequest.of_names([]))
        yield client


def log_lines_with(daemon: Daemon, text: str) -> list[str]:
    return [line for line in daemon.log.splitlines() if text in line]


def recrc(batch: bytearray) -> bytearray:
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[21:]))
    return batch


@pytest.mark.parametrize(
    ("name", "sent", "sentence"),
    [
        ("too long", struct.pack(">i", 104857601), "frame size 104857601 is above socket.request.max.bytes=104857600"),
        ("negative", struct.pack(">i", -5), "frame size -5 is not positive"),
        ("empty", struct.pack(">i", 0), "frame size 0 is not positive"),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "the bytes look like an HTTP request"),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "the bytes look like TLS; does the client use SSL"),
        ("another magic", struct.pack(">iI", 4, 0x42000000), "a request of 4 bytes is too short for a header"),
        ("client id beyond the frame", struct.pack(">ihhih", 10, 18, 0, 1, 200), "longer than its frame"),
    ],
)
def test_broken_framing_closes_its_connection_with_one_log_line(
    daemon: Daemon, wire: WireClient, neighbour: WireClient, name: str, sent: bytes, sentence: str
) -> None:
    before = len(log_lines_with(daemon, sentence))
    wire.socket.sendall(sent)
    assert wire.is_closed_by_broker()
    assert len(log_lines_with(daemon, sentence)) == before + 1
    neighbour.call(MetadataRequest.of_names([]))


def test_a_frame_that_ends_half_way_writes_nothing(
    daemon: Daemon, wire: WireClient, neighbour: WireClient, batch: Batch
) -> None:
    neighbour.create_topic("half")
    frame = wire.frame(produce_request("half", batch(b"x" * 1000)))
    wire.socket.sendall(frame[:-1])
    wire.socket.shutdown(socket.SHUT_WR)
    assert wire.is_closed_by_broker()
    assert neighbour.end_offset("half") == 0


def test_a_frame_may_come_byte_by_byte(wire: WireClient) -> None:
    for byte in wire.frame(MetadataRequest.of_names([])):
        wire.socket.sendall(bytes([byte]))
    assert wire.receive().brokers


def _wrong_crc(batch: bytearray) -> bytearray:
    batch[-1] ^= 1
    return batch


def _wrong_magic(batch: bytearray) -> bytearray:
    batch[16] = 9
    return batch


def _old_magic(batch: bytearray) -> bytearray:
    batch[16] = 1
    return batch


def _negative_count(batch: bytearray) -> bytearray:
    struct.pack_into(">i", batch, 57, -1)
    return recrc(batch)


def _huge_count(batch: bytearray) -> bytearray:
    struct.pack_into(">i", batch, 57, 0x7FFFFFFF)
    struct.pack_into(">i", batch, 23, 0x7FFFFFFE)
    return recrc(batch)


def _length_beyond(batch: bytearray) -> bytearray:
    struct.pack_into(">i", batch, 8, len(batch))
    return batch


def _negative_length(batch: bytearray) -> bytearray:
    struct.pack_into(">i", batch, 8, -1)
    return batch


def _control(batch: bytearray) -> bytearray:
    struct.pack_into(">h", batch, 21, 0x20)
    return recrc(batch)


def _delete_horizon(batch: bytearray) -> bytearray:
    struct.pack_into(">h", batch, 21, 0x40)
    return recrc(batch)


def _unknown_codec(batch: bytearray) -> bytearray:
    struct.pack_into(">h", batch, 21, 7)
    return recrc(batch)


def _garbage_compressed(batch: bytearray) -> bytearray:
    struct.pack_into(">h", batch, 21, 4)
    return recrc(batch)


def _record_size_lies(batch: bytearray) -> bytearray:
    batch[61] += 2
    return recrc(batch)


def _two_batches(batch: bytearray) -> bytearray:
    return batch + batch


def _cut(batch: bytearray) -> bytearray:
    return batch[:40]


def _nothing(batch: bytearray) -> bytearray:
    return bytearray()


@pytest.mark.parametrize(
    ("spoil", "codes"),
    [
        (_wrong_crc, {ErrorCode.CORRUPT_MESSAGE}),
        (_wrong_magic, {ErrorCode.CORRUPT_MESSAGE}),
        (_old_magic, {ErrorCode.INVALID_RECORD}),
        (_negative_count, {ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE}),
        (_huge_count, {ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE}),
        (_length_beyond, {ErrorCode.INVALID_RECORD}),
        (_negative_length, {ErrorCode.CORRUPT_MESSAGE}),
        (_control, {ErrorCode.INVALID_RECORD}),
        (_delete_horizon, {ErrorCode.INVALID_RECORD}),
        (_unknown_codec, {ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE}),
        (_garbage_compressed, {ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD}),
        (_record_size_lies, {ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE}),
        (_two_batches, {ErrorCode.INVALID_RECORD}),
        (_cut, {ErrorCode.INVALID_RECORD}),
        (_nothing, {ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE}),
    ],
)
def test_a_bad_batch_is_refused_and_nothing_is_written(
    wire: WireClient, batch: Batch, spoil: Callable[[bytearray], bytearray], codes: set[ErrorCode]
) -> None:
    topic = f"bad.{spoil.__name__.strip('_')}"
    wire.create_topic(topic)
    assert wire.produce(topic, batch(b"good")).error == 0
    refused = wire.produce(topic, spoil(batch(b"bad", b"worse")))
    assert refused.error in codes, refused
    assert refused.base_offset == -1
    assert refused.message
    assert wire.end_offset(topic) == 1
    assert wire.produce(topic, batch(b"good again")).base_offset == 1


def test_one_bad_partition_does_not_fail_the_others(wire: WireClient, batch: Batch) -> None:
    wire.create_topic("mixed", partitions=2)
    good, bad = batch(b"good"), _wrong_crc(batch(b"bad"))
    request = ProduceRequest(
        acks=1,
        timeout_ms=1000,
        topics=[
            ProduceTopic(
                name="mixed",
                partitions=[ProducePartition(0, memoryview(bad)), ProducePartition(1, memoryview(good))],
            ),
            ProduceTopic(name="nowhere", partitions=[ProducePartition(0, memoryview(good))]),
        ],
    )
    mixed, nowhere = wire.call(request).topics
    assert [result.error for result in mixed.partitions] == [ErrorCode.CORRUPT_MESSAGE, ErrorCode.NONE]
    assert nowhere.partitions[0].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_size_of_records_beyond_the_frame_closes_the_connection_and_writes_nothing(
    daemon: Daemon, wire: WireClient, neighbour: WireClient, batch: Batch
) -> None:
    neighbour.create_topic("lies")
    frame = bytearray(wire.frame(produce_request("lies", batch(b"x" * 100)))[:-1])
    struct.pack_into(">i", frame, 0, len(frame) - 4)
    wire.socket.sendall(frame)
    assert wire.is_closed_by_broker()
    assert len(log_lines_with(daemon, "produce v12 does not decode")) == 1
    assert neighbour.end_offset("lies") == 0


def test_acks_that_mean_nothing_are_refused(wire: WireClient, batch: Batch) -> None:
    wire.create_topic("acks")
    assert wire.produce("acks", batch(), acks=2).error == ErrorCode.INVALID_REQUIRED_ACKS
    assert wire.end_offset("acks") == 0


def test_acks_0_is_not_answered_and_its_error_closes_the_connection(
    daemon: Daemon, wire: WireClient, neighbour: WireClient, batch: Batch
) -> None:
    neighbour.create_topic("fireandforget")
    wire.send(produce_request("fireandforget", batch(), acks=0))
    assert wire.call(MetadataRequest.of_names([])).topics == []
    assert neighbour.end_offset("fireandforget") == 1
    wire.send(produce_request("nowhere", batch(), acks=0))
    assert wire.is_closed_by_broker()
    assert len(log_lines_with(daemon, "produce with acks=0 to nowhere-0 failed")) == 1


def test_min_insync_replicas_above_one_refuses_acks_all_only(wire: WireClient, batch: Batch) -> None:
    wire.create_topic("insync", min_insync_replicas="2")
    assert wire.produce("insync", batch(), acks=-1).error == ErrorCode.NOT_ENOUGH_REPLICAS
    assert wire.produce("insync", batch(), acks=1).error == ErrorCode.NONE


def test_offsets_outside_the_log_and_unknown_partitions_have_their_codes(wire: WireClient, batch: Batch) -> None:
    wire.create_topic("ranges")
    wire.produce("ranges", batch(b"a", b"b"))
    assert wire.fetch("ranges", 2).error == ErrorCode.NONE
    assert wire.fetch("ranges", 3, max_wait_ms=5000).error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert wire.fetch("ranges", -1).error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert wire.fetch("ranges", 0, partition=1).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert wire.fetch("nowhere", 0).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    request = ListOffsetsRequest(
        isolation=0,
        topics=[ListOffsetsTopic(name="ranges", partitions=[ListOffsetsPartition(partition=0, timestamp=-9)])],
    )
    listed = wire.call(request).topics[0].partitions[0]
    assert listed.error == ErrorCode.UNSUPPORTED_VERSION


def test_a_batch_above_max_message_bytes_and_a_null_key_on_a_compacted_topic_are_refused(
    wire: WireClient, batch: Batch
) -> None:
    wire.create_topic("small", max_message_bytes="500")
    assert wire.produce("small", batch(b"x" * 600)).error == ErrorCode.MESSAGE_TOO_LARGE
    wire.create_topic("compacted", cleanup_policy="compact")
    refused = wire.produce("compacted", batch(b"v", key=None))
    assert refused.error == ErrorCode.INVALID_RECORD
    wire.create_topic("tiny", segment_bytes="1024", max_message_bytes="100000")
    assert wire.produce("tiny", batch(b"x" * 5000)).error == ErrorCode.RECORD_LIST_TOO_LARGE
    assert [wire.end_offset(topic) for topic in ("small", "compacted", "tiny")] == [0, 0, 0]
