"""The compiled parser of native Produce takes a request as the codec does or not at all, and answers in its bytes."""

from __future__ import annotations

import random
from typing import Any

import msgpack
import pytest

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.framing import FrameError
from barnabas.protocol.messages.data.produce import (
    ProducePartitionResult,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResult,
)
from barnabas.protocol.native import dialect
from tests.support.kafka.produce_traffic import ProduceTraffic, Sent, SentTopic
from tests.support.native.native_frames import ANSWERED_SPOILS, NativeSent, mutated, native_frame
from tests.support.storage.records import plain

kernel = pytest.importorskip("barnabas.protocol.native.kernels._produce")

EDGES = [0, 1, -1, 127, 128, -32, -33, 255, 256, -128, -129, 65535, 65536, -32768, -32769]
EDGES += [2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32 - 1, 2**32, 2**63 - 1, -(2**63)]


def decoded(frame: bytearray) -> tuple[Any, ProduceRequest] | None:
    """Return the header and the request by the codec, None where it refuses the frame."""
    try:
        header = dialect.read_request(memoryview(frame))
        if header.api != 0 or not dialect.is_supported(header):
            return None
        return header, dialect.decode_body(header)
    except (FrameError, BrokerError):
        return None


def ensure_same(frame: bytearray, chance: random.Random) -> bool:
    """Check the kernel's reading and response of a frame against the codec's. Returns whether it is plain."""
    parsed = kernel.parsed(frame)
    if parsed is None:
        assert kernel.response_of(frame, []) is None
        return False
    correlation_id, client_id, transactional_id, acks, _, topics = parsed
    strings = [client_id or b"", transactional_id or b"", *[name for name, _ in topics]]
    if any(each != each.decode(errors="ignore").encode() for each in strings):
        return False  # the kernel's caller checks that strings are UTF-8
    python = decoded(frame)
    assert python is not None
    header, request = python
    assert correlation_id == header.correlation_id
    assert client_id == (None if header.client_id is None else header.client_id.encode())
    assert transactional_id == (None if request.transactional_id is None else request.transactional_id.encode())
    assert acks == request.acks
    assert topics == [
        (topic.name.encode(), [(each.partition, bytes(each.batch)) for each in topic.partitions])
        for topic in request.topics
    ]
    results = []
    answered = []
    for topic in request.topics:
        of_topic = []
        for each in topic.partitions:
            base, time_ms, start = found = [chance.choice(EDGES) for _ in range(3)]
            results.append(found)
            of_topic.append(ProducePartitionResult(each.partition, ErrorCode.NONE, base, time_ms, start))
        answered.append(ProduceTopicResult(name=topic.name, partitions=of_topic))
    expected, _ = dialect.encode_response(header, ProduceResponse(topics=answered))
    assert kernel.response_of(frame, results) == expected
    throttle_ms = chance.choice([1, 127, 128, 70_000, 2**31 - 1])
    assert kernel.response_of(frame, results, throttle_ms) == dialect.with_throttle(header, expected, throttle_ms)
    return True


def requests(seed: int, spoils: tuple[str | None, ...]) -> list[bytearray]:
    chance = random.Random(seed)
    frames = []
    for sent in ProduceTraffic(seed, ["a", "tö.pic", "c" * 31, "d" * 32, "e" * 300], 3).requests(600):
        frames.append(bytearray(NativeSent(sent, chance.randrange(1 << 30), chance.choice(spoils)).frame()[4:]))
    return frames


@pytest.mark.parametrize("seed", range(3))
def test_random_requests_are_read_and_answered_as_by_the_codec(seed: int) -> None:
    chance = random.Random(seed)
    frames = requests(seed, (*[None] * 30, *ANSWERED_SPOILS))
    plain_count = sum([ensure_same(frame, chance) for frame in frames])
    assert 400 < plain_count < len(frames) - 50


@pytest.mark.parametrize("seed", range(3))
def test_mutated_requests_are_read_as_by_the_codec_or_not_at_all(seed: int) -> None:
    chance = random.Random(seed)
    for frame in requests(seed, (None,)):
        ensure_same(bytearray(mutated(bytes(len(frame).to_bytes(4, "big") + frame), chance)[4:]), chance)


def sent(*numbers: int, topics: int = 1) -> Sent:
    batch = bytes(plain(1))
    return Sent(9, 5, "me", [SentTopic(f"t{index}", [(each, batch) for each in numbers]) for index in range(topics)])


def test_a_plain_request_that_is_cut_or_continued_is_not_plain() -> None:
    frame = bytearray(NativeSent(sent(0, 1), 1).frame()[4:])
    assert ensure_same(frame, random.Random(1))
    for size in range(len(frame)):
        assert kernel.parsed(frame[:size]) is None
    assert kernel.parsed(frame + b"\0") is None


def test_every_changed_byte_is_read_as_by_the_codec_or_not_at_all() -> None:
    chance = random.Random(1)
    original = NativeSent(sent(0, 1), 2).frame()[4:]
    for place in range(len(original)):
        for value in {0, 1, 0x7F, 0x80, 0x90, 0xC0, 0xFF, *[original[place] ^ (1 << bit) for bit in range(8)]}:
            frame = bytearray(original)
            frame[place] = value
            ensure_same(frame, chance)


@pytest.mark.parametrize(("numbers", "topics"), [(15, 1), (16, 1), (300, 1), (2, 15), (2, 16), (1, 300)])
def test_sizes_of_arrays(numbers: int, topics: int) -> None:
    frame = bytearray(NativeSent(sent(*range(numbers), topics=topics), 3).frame()[4:])
    assert ensure_same(frame, random.Random(1))


@pytest.mark.parametrize(
    ("header", "is_plain"),
    [
        ([0, 0, 5, None, {"acks": 1, "topics": [["t", [[0, 69]]]]}], True),
        ([0, 0, 5, None, {"acks": 1, "topics": [["t", [[0, 69]]]], "timeout_ms": None}], False),
        ([0, 0, 5, None, {"acks": 1, "topics": [["t", [[0, 69]]]], "transactional_id": None}], True),
        ([0, 0, 5, None, {"acks": True, "topics": [["t", [[0, 69]]]]}], False),
        ([0, 0, 5, None, {"acks": 1, "topics": [[b"t", [[0, 69]]]]}], False),
        ([0, 0, 5, None, {"acks": 1, "topics": [["t", []]]}], False),
        ([0, 0, 5, None, {"acks": 1, "topics": []}], False),
        ([0, 0, 5, "c" * 8191, {"acks": 1, "topics": [["t", [[0, 69]]]]}], True),
        ([0, 0, 5, "c" * 8192, {"acks": 1, "topics": [["t", [[0, 69]]]]}], False),
        ([0, 1, 5, None, {"acks": 1, "topics": [["t", [[0, 69]]]]}], False),
        ([0, 0, 1 << 31, None, {"acks": 1, "topics": [["t", [[0, 69]]]]}], False),
    ],
)
def test_headers(header: list[Any], is_plain: bool) -> None:
    batch = bytes(plain(1))
    packed = msgpack.packb(header).replace(b"\x00\x45", b"\x00" + bytes([len(batch)]))
    frame = bytearray(native_frame(packed, batch)[4:])
    assert (kernel.parsed(frame) is not None) == is_plain
    ensure_same(frame, random.Random(1))


def test_a_repeated_key_is_not_plain() -> None:
    batch = bytes(plain(1))
    header = b"\x95\x00\x00\x05\xc0\x83\xa4acks\x01\xa6topics\x91\x92\xa1t\x91\x92\x00" + bytes([len(batch)])
    once = bytearray(native_frame(header.replace(b"\x83", b"\x82"), batch)[4:])
    twice = bytearray(native_frame(header + b"\xa4acks\x00", batch)[4:])
    assert kernel.parsed(once) is not None
    assert decoded(twice) is not None
    assert kernel.parsed(twice) is None


def test_a_transactional_batch_is_noticed() -> None:
    batch = plain(1)
    found = []
    for attributes in (0, 0x10):
        batch[22] = attributes
        request = Sent(9, 5, "me", [SentTopic("t", [(0, bytes(batch))])])
        found.append(kernel.parsed(bytearray(NativeSent(request, 1).frame()[4:]))[4])
    assert found == [False, True]
