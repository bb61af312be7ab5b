"""Produce requests that repeat: what is matched means what the decoder says, and is answered in the encoder's bytes."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.storage.log.append import AppendResult
from barnabas.protocol.errors import BrokerError, DecodeError, ErrorCode
from barnabas.protocol.framing import FrameError
from barnabas.protocol.kafka import dialect
from barnabas.protocol.kafka.data.repeated_produce import LAYOUTS_MAX, SHAPES_MAX, RepeatedProduce
from barnabas.protocol.messages.data.produce import (
    ProducePartitionResult,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResult,
)
from tests.support.kafka.kafka_wire import produce_request, request_frame, schema

VERSIONS = range(3, 14)
SOME_VERSIONS = (3, 8, 9, 13)
"""One of each way to write a request."""
TOPIC_ID = UUID(int=77)
RECORDS = random.Random(1).randbytes(150)


def frame_of(
    version: int,
    records: bytes = RECORDS,
    *,
    topic: str = "töpic",
    client_id: str | None = "clïent",
    correlation_id: int = 1,
    partition: int = 3,
    acks: int = 1,
    transactional_id: str | None = None,
) -> memoryview:
    request = produce_request(version, topic, records, TOPIC_ID, partition=partition, acks=acks)
    request = replace(request, transactional_id=transactional_id)
    return memoryview(bytearray(request_frame(request, correlation_id, client_id)[4:]))


def learnt(frame: memoryview, known: RepeatedProduce | None = None) -> RepeatedProduce:
    known = RepeatedProduce() if known is None else known
    header = dialect.read_request(frame)
    assert known.learn(header, frame, dialect.decode_body(header))
    return known


def flags(request: ProduceRequest) -> tuple[bool, bool]:
    return request.takes_zstd, request.adds_partitions


def said(known: RepeatedProduce, frame: memoryview) -> tuple[Any, ...] | None:
    """What a matched request says, in full; None for one that is not matched."""
    repeated = known.match(frame)
    if repeated is None:
        return None
    shape, correlation_id, records = repeated
    topic = shape.request.topics[0]
    return (
        shape.header(correlation_id),
        shape.client_id,
        (shape.request.acks, shape.request.timeout_ms, shape.request.transactional_id, *flags(shape.request)),
        (topic.name, topic.topic_id, topic.partitions[0].partition),
        bytes(records),
    )


def decoded(frame: memoryview) -> tuple[Any, ...]:
    """The same by the decoder. Raises what it raises."""
    header = dialect.read_request(frame)
    request = dialect.decode_body(header)
    (topic,) = request.topics
    (entry,) = topic.partitions
    return (
        header.without_frame(),
        header.client_id,
        (request.acks, request.timeout_ms, request.transactional_id, *flags(request)),
        (topic.name, topic.topic_id, entry.partition),
        bytes(entry.records),
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [1, 100, 126, 127, 128, 16_382, 16_383, 16_384, 70_000])
@pytest.mark.parametrize("client_id", ["producer", "", None])
def test_a_request_with_other_records_and_another_correlation_id_is_matched(
    version: int, size: int, client_id: str | None
) -> None:
    known = learnt(frame_of(version, client_id=client_id))
    frame = frame_of(version, bytes(range(256)) * (size // 256) + bytes(size % 256), client_id=client_id)
    frame[4:8] = b"\x12\x34\x56\x78"
    assert said(known, frame) == decoded(frame)
    matched = known.match(frame)
    assert matched is not None
    assert matched[2].obj is frame.obj  # a view, to be stamped in place


@pytest.mark.parametrize("version", VERSIONS)
def test_a_transactional_request_is_matched_by_requests_of_its_transactional_id_only(version: int) -> None:
    known = learnt(frame_of(version, transactional_id="tüx"))
    frame = frame_of(version, b"other records", transactional_id="tüx")
    assert said(known, frame) == decoded(frame)
    shape, _, _ = known.match(frame) or pytest.fail("not matched")
    assert (shape.request.transactional_id, shape.request.adds_partitions) == ("tüx", version >= 12)
    assert said(known, frame_of(version, transactional_id="tux")) is None
    assert said(known, frame_of(version)) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_whatever_else_differs_is_not_matched(version: int) -> None:
    known = learnt(frame_of(version))
    others = [
        frame_of(version, client_id="another"),
        frame_of(version, partition=4),
        frame_of(version, acks=-1),
        frame_of(version, acks=0),
        frame_of(4 if version == 3 else version - 1),
        frame_of(version, b""),
    ]
    if version < 13:
        others += [frame_of(version, topic="tüpic"), frame_of(version, topic="longer topic")]
    assert [said(known, frame) for frame in others] == [None] * len(others)


@pytest.mark.parametrize("version", SOME_VERSIONS)
@given(data=st.data())
def test_hostile_bytes_are_matched_only_where_the_decoder_says_the_same(version: int, data: st.DataObject) -> None:
    known = learnt(frame_of(version, partition=3), learnt(frame_of(version, partition=4)))
    frame = bytearray(frame_of(version, data.draw(st.binary(min_size=1, max_size=200)), partition=3))
    around = len(frame_of(version, b"")) + 2
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, around) | st.integers(1, 6).map(lambda behind: -behind))
        if -len(frame) <= at < len(frame):
            frame[at] = data.draw(st.sampled_from([0, 1, 2, 3, 4, 0x7F, 0x80, 0xFF]))
    kept = data.draw(st.just(len(frame)) | st.integers(1, len(frame)))
    view = memoryview(frame[:kept] + data.draw(st.just(b"") | st.binary(max_size=4)))
    found = said(known, view)
    if found is not None:
        assert found == decoded(view)


@pytest.mark.parametrize("version", SOME_VERSIONS)
@given(data=st.data())
def test_what_is_learnt_from_hostile_bytes_is_what_the_decoder_says_too(version: int, data: st.DataObject) -> None:
    frame = bytearray(frame_of(version, data.draw(st.binary(min_size=1, max_size=20))))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(4, len(frame) - 1))
        frame[at] = data.draw(st.sampled_from([0, 1, 2, 3, 4, 0x7F, 0x80, 0xFF]))
    frame += data.draw(st.just(b"") | st.binary(max_size=6))
    view = memoryview(frame)
    try:
        header = dialect.read_request(view)
        if header.api != 0 or header.route is None:
            return
        request = dialect.decode_body(header)
    except (FrameError, BrokerError, DecodeError):
        return
    known = RepeatedProduce()
    assert known.learn(header, view, request)
    found = said(known, view)
    if found is not None:
        assert found == decoded(view)


def test_requests_that_are_not_plain_are_not_learnt() -> None:
    kio = schema("produce", 7, "request")
    plain = produce_request(7, "topic", RECORDS)
    (topic,) = plain.topic_data
    (entry,) = topic.partition_data
    both = (entry, kio.PartitionProduceData(index=1, records=RECORDS))
    requests = [
        replace(plain, acks=0),
        replace(plain, topic_data=(topic, topic)),
        replace(plain, topic_data=(replace(topic, partition_data=both),)),
        replace(plain, topic_data=(replace(topic, partition_data=(replace(entry, records=None),)),)),
    ]
    for request in requests:
        frame = memoryview(request_frame(request, 1)[4:])
        assert said(learnt(frame), frame) is None
    behind = memoryview(bytes(frame_of(7)) + b"?")  # which the decoder passes over
    assert decoded(behind) == decoded(frame_of(7))
    assert said(learnt(behind), behind) is None
    long_name = frame_of(7, topic="t" * 2_000)
    assert said(learnt(long_name), long_name) is None


def test_a_size_in_more_bytes_than_it_needs_and_tagged_fields_are_left_to_the_decoder() -> None:
    frame = bytes(frame_of(9, b"12345"))
    at = frame.rindex(b"\x0612345")
    longer = memoryview(frame[:at] + b"\x86\x00" + frame[at + 1 :])
    tagged = memoryview(frame[:-1] + b"\x01\x00\x01?")
    assert decoded(longer) == decoded(tagged) == decoded(memoryview(frame))
    for unusual in (longer, tagged):
        assert said(learnt(unusual), unusual) is None
    assert said(learnt(memoryview(frame)), tagged) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_has_the_bytes_that_the_encoder_writes(version: int) -> None:
    frame = frame_of(version, correlation_id=-5)
    repeated = learnt(frame).match(frame)
    assert repeated is not None
    shape, correlation_id, _ = repeated
    header = dialect.read_request(frame)
    topic = shape.request.topics[0]
    for numbers in [(0, -1, 0), (2**63 - 1, 1_700_000_000_000, 12), (-1, -1, -1)]:
        result = ProducePartitionResult(3, ErrorCode.NONE, None, *numbers)
        response = ProduceResponse([ProduceTopicResult(topic.name, [result], topic.topic_id)])
        stored = AppendResult(numbers[0], 0, numbers[1], numbers[2], 1, 1, flush_due=False)
        found = shape.encode_response(correlation_id, stored)
        assert found == dialect.encode_response(header, response)
        assert found == shape.encode_response(correlation_id, response)


def test_a_connection_whose_requests_are_all_different_stops_caching() -> None:
    def learns(known: RepeatedProduce, frame: memoryview) -> bool:
        header = dialect.read_request(frame)
        return known.learn(header, frame, dialect.decode_body(header))

    known = RepeatedProduce()
    assert all(learns(known, frame_of(7, partition=number)) for number in range(SHAPES_MAX))
    assert said(known, frame_of(7, partition=200)) is not None
    assert not learns(known, frame_of(7, partition=SHAPES_MAX))
    known = RepeatedProduce()
    assert all(learns(known, frame_of(7, topic="t" * size)) for size in range(1, LAYOUTS_MAX + 1))
    assert said(known, frame_of(7, topic="tt")) is not None
    assert not learns(known, frame_of(7, topic="t" * (LAYOUTS_MAX + 1)))
