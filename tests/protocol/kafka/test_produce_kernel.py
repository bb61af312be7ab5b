"""The compiled parser of Produce takes a request as the Python codec does or not at all, and answers in its bytes."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.framing import FrameError
from barnabas.protocol.kafka import dialect
from barnabas.protocol.messages.data.produce import (
    ProducePartitionResult,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResult,
)
from tests.support.kafka.kafka_wire import produce_request, request_frame
from tests.support.kafka.produce_traffic import ProduceTraffic
from tests.support.storage.records import plain

kernel = pytest.importorskip("barnabas.protocol.kafka.kernels._produce")

VERSIONS = range(3, 14)
IDS = {"a": b"a" * 16, "tö.pic": b"b" * 16}


def decoded(frame: bytearray) -> tuple[Any, ProduceRequest] | None:
    """Return the header and the request by the Python codec, None where it refuses the frame."""
    try:
        header = dialect.read_request(memoryview(frame))
        if header.api != 0 or not dialect.is_supported(header):
            return None
        return header, dialect.decode_body(header)
    except (FrameError, BrokerError):
        return None


def ensure_same(frame: bytearray) -> bool:
    """Check the kernel's reading and response of a frame against the codec's. Returns whether it is plain."""
    parsed = kernel.parsed(frame)
    if parsed is None:
        assert kernel.response_of(frame, []) is None
        return False
    version, correlation_id, client_id, transactional_id, acks, _, topics = parsed
    python = decoded(frame)
    assert python is not None
    header, request = python
    assert (version, correlation_id) == (header.version, header.correlation_id)
    assert client_id == (None if header.client_id is None else header.client_id.encode())
    assert transactional_id == (None if request.transactional_id is None else request.transactional_id.encode())
    assert acks == request.acks
    assert topics == [
        (topic.name.encode() or topic.topic_id, [(each.partition, bytes(each.batch)) for each in topic.partitions])
        for topic in request.topics
    ]
    chance = random.Random(correlation_id)
    results = []
    answered = []
    for topic in request.topics:
        of_topic = []
        for each in topic.partitions:
            base, time_ms, start = found = [chance.randrange(-1, 2**63) for _ in range(3)]
            results.append(found)
            of_topic.append(ProducePartitionResult(each.partition, ErrorCode.NONE, base, time_ms, start))
        answered.append(ProduceTopicResult(name=topic.name, topic_id=topic.topic_id, partitions=of_topic))
    expected, _ = dialect.encode_response(header, ProduceResponse(topics=answered))
    assert kernel.response_of(frame, results) == expected
    return True


@pytest.mark.parametrize("seed", range(3))
def test_random_requests_are_read_and_answered_as_by_the_codec(seed: int) -> None:
    frames = [bytearray(sent.frame(IDS)[4:]) for sent in ProduceTraffic(seed, [*IDS, "c"], 3).requests(700)]
    plain_count = sum([ensure_same(frame) for frame in frames if _is_readable(frame)])
    assert 300 < plain_count < len(frames) - 50


def _is_readable(frame: bytearray) -> bool:
    """Return whether the strings of a plain frame are UTF-8, which the kernel's caller checks."""
    parsed = kernel.parsed(frame)
    return parsed is None or decoded(frame) is not None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plain_request_that_is_cut_or_continued_is_not_plain(version: int) -> None:
    frame = bytearray(request_frame(produce_request(version, "t", plain(1), UUID(int=7)), 5)[4:])
    assert ensure_same(frame)
    for size in range(len(frame)):
        assert kernel.parsed(frame[:size]) is None
    assert kernel.parsed(frame + b"\0") is None


@pytest.mark.parametrize("version", VERSIONS)
def test_every_changed_byte_is_read_as_by_the_codec_or_not_at_all(version: int) -> None:
    original = request_frame(produce_request(version, "t", plain(1), UUID(int=7)), 5)[4:]
    chance = random.Random(version)
    for place in range(len(original)):
        for value in (0, 1, 0x7F, 0x80, 0xFF, original[place] ^ (1 << chance.randrange(8))):
            frame = bytearray(original)
            frame[place] = value
            if _is_readable(frame):
                ensure_same(frame)


@pytest.mark.parametrize(("version", "is_plain"), [(6, False), (7, True)])
def test_zstd_is_plain_from_version_7_on(version: int, is_plain: bool) -> None:
    batch = plain(1)
    batch[22] |= 4
    frame = bytearray(request_frame(produce_request(version, "t", batch), 5)[4:])
    assert (kernel.parsed(frame) is not None) == is_plain


def test_a_transactional_batch_is_noticed() -> None:
    batch = plain(1)
    found = []
    for attributes in (0, 0x10):
        batch[22] = attributes
        frame = bytearray(request_frame(produce_request(9, "t", batch), 5)[4:])
        found.append(kernel.parsed(frame)[5])
    assert found == [False, True]
