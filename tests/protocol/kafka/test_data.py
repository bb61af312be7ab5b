"""Produce and Fetch of Kafka's protocol, every version, against kio's own reading and writing of the same messages."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.framing import FrameError
from barnabas.protocol.kafka.data import fetch
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    FetchTopicResult,
)
from barnabas.protocol.messages.data.produce import ProduceRequest
from tests.support.kafka.kafka_wire import message_type, read, schema, written
from tests.support.kafka.routes import ROUTES

PRODUCE_VERSIONS = range(3, 14)
FETCH_VERSIONS = range(4, 19)
TOPIC_ID = bytes(range(16))
BATCHES = [b"first batch", b"", b"x" * 300, b"last"]


@dataclass
class Slice:
    """What the broker has for the bytes of a file."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)


def topic_key(version: int, ids_from: int, field: str) -> dict[str, Any]:
    return {"topic_id": UUID(bytes=TOPIC_ID)} if version >= ids_from else {field: "töpic"}


def produce_body(version: int, **fields: Any) -> bytes:
    kio = schema("produce", version, "request")
    topics = tuple(
        kio.TopicProduceData(
            **topic_key(version, 13, "name"),
            partition_data=tuple(
                kio.PartitionProduceData(index=index, records=records) for index, records in enumerate(part)
            ),
        )
        for part in (BATCHES[:2], BATCHES[2:])
    )
    values = {"transactional_id": None, "acks": -1, "timeout": timedelta(seconds=30), "topic_data": topics, **fields}
    return written(kio.ProduceRequest(**values))


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_produce_is_decoded_with_its_records_as_writable_views_of_the_frame(version: int) -> None:
    frame = bytearray(produce_body(version))
    request = ProduceRequest.decode(version, memoryview(frame))
    assert (request.acks, request.timeout_ms, request.transactional_id) == (-1, 30_000, None)
    assert request.takes_zstd == (version >= 7)
    assert request.adds_partitions == (version >= 12)
    assert {(topic.name, topic.topic_id) for topic in request.topics} == {
        ("", TOPIC_ID) if version >= 13 else ("töpic", bytes(16))
    }
    partitions = [partition for topic in request.topics for partition in topic.partitions]
    assert [(each.partition, bytes(each.batch)) for each in partitions] == [
        (0, BATCHES[0]), (1, BATCHES[1]), (0, BATCHES[2]), (1, BATCHES[3])
    ]  # fmt: skip
    partitions[0].batch[:5] = b"FIRST"
    assert b"FIRST batch" in frame


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_produce_with_null_records_and_a_transactional_id_is_decoded(version: int) -> None:
    kio = schema("produce", version, "request")
    data = kio.TopicProduceData(
        **topic_key(version, 13, "name"), partition_data=(kio.PartitionProduceData(index=7, records=None),)
    )
    body = produce_body(version, transactional_id="txn", acks=0, topic_data=(data,))
    request = ProduceRequest.decode(version, memoryview(bytearray(body)))
    assert (request.acks, request.transactional_id) == (0, "txn")
    assert [bytes(each.batch) for topic in request.topics for each in topic.partitions] == [b""]


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_produce_refused_as_a_whole_has_the_code_for_every_partition(version: int) -> None:
    request = ProduceRequest.decode(version, memoryview(bytearray(produce_body(version))))
    data = request.refused(ErrorCode.UNKNOWN_SERVER_ERROR, "a bug").encode(version)
    answer = read(message_type("produce", version, "response"), data)
    errors = [each.error_code for topic in answer.responses for each in topic.partition_responses]
    assert errors == [ErrorCode.UNKNOWN_SERVER_ERROR] * 4


def test_a_produce_without_acks_that_fails_as_a_whole_has_no_answer() -> None:
    request = ProduceRequest.decode(9, memoryview(bytearray(produce_body(9, acks=0))))
    with pytest.raises(FrameError, match="acks=0"):
        request.refused(ErrorCode.UNKNOWN_SERVER_ERROR, "a bug")


def fetch_body(version: int, **fields: Any) -> bytes:
    kio = schema("fetch", version, "request")
    epoch = {"current_leader_epoch": 6} if version >= 9 else {}
    topics = (
        kio.FetchTopic(
            **topic_key(version, 13, "topic"),
            partitions=(
                kio.FetchPartition(partition=3, fetch_offset=1 << 40, partition_max_bytes=1 << 20, **epoch),
                kio.FetchPartition(partition=4, fetch_offset=0, partition_max_bytes=-5, **epoch),
            ),
        ),
    )
    values = {
        "max_wait": timedelta(milliseconds=500),
        "min_bytes": 1,
        "max_bytes": 50 << 20,
        "isolation_level": 1,
        "topics": topics,
    }
    if version < 15:
        values["replica_id"] = -1
    if version >= 7:
        forgotten = kio.ForgottenTopic(**topic_key(version, 13, "topic"), partitions=(1, 2))
        values |= {"session_id": 77, "session_epoch": 3, "forgotten_topics_data": (forgotten,)}
    if version >= 11:
        values["rack_id"] = "rack"
    return written(kio.FetchRequest(**{**values, **fields}))


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_fetch_is_decoded(version: int) -> None:
    request = fetch.decode_request(version, memoryview(bytearray(fetch_body(version))))
    epoch = 6 if version >= 9 else -1
    name, topic_id = ("", TOPIC_ID) if version >= 13 else ("töpic", None)
    partitions = [FetchPartition(3, 1 << 40, 1 << 20, epoch), FetchPartition(4, 0, 0, epoch)]
    session = (77, 3) if version >= 7 else (0, -1)
    forgotten = [(topic_id or name, 1), (topic_id or name, 2)] if version >= 7 else ()
    topics = [FetchTopic(name, partitions, topic_id)]
    assert request == FetchRequest(500, 1, 50 << 20, 1, topics, *session, -1, forgotten, version >= 13)


@pytest.mark.parametrize("version", [each for each in FETCH_VERSIONS if each >= 15])
def test_the_node_of_a_follower_is_read_after_the_forgotten_topics(version: int) -> None:
    kio = schema("fetch", version, "request")
    body = fetch_body(version, replica_state=kio.ReplicaState(replica_id=7))
    request = fetch.decode_request(version, memoryview(bytearray(body)))
    assert (request.replica_id, len(request.forgotten)) == (7, 2)


def test_a_fetch_with_negative_limits_requests_zero_bytes_without_waiting() -> None:
    body = fetch_body(11, max_wait=timedelta(milliseconds=-1), min_bytes=-1, max_bytes=-1)
    request = fetch.decode_request(11, memoryview(bytearray(body)))
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (0, 0, 0)


def test_an_unknown_isolation_level_is_left_to_the_handler() -> None:
    assert fetch.decode_request(11, memoryview(bytearray(fetch_body(11, isolation_level=2)))).isolation == 2


def joined(body: Any) -> bytes:
    pieces = [body.head, *(part if isinstance(part, bytes) else part.data for part in body.parts)]
    data = b"".join(pieces)
    assert len(data) == body.size
    return data


FETCHED = [
    FetchPartitionResult(0, ErrorCode.NONE, 100, 90, 10, [], Slice(b"a batch" * 50)),
    FetchPartitionResult(1, ErrorCode.OFFSET_OUT_OF_RANGE, 5, 5, 5),
    FetchPartitionResult(2, ErrorCode.NONE, 7, 7, 0, [AbortedTransaction(9, 3), AbortedTransaction(8, 4)], Slice(b"b")),
    FetchPartitionResult(3, ErrorCode.FENCED_LEADER_EPOCH, current_leader=(1, 12)),
]


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3], [0, 2], []])
def test_an_answer_to_a_fetch_is_read_back(version: int, order: list[int]) -> None:
    results = [FETCHED[each] for each in order]
    topics = [FetchTopicResult("töpic", results, TOPIC_ID)] * 2
    body = fetch.encode_response(version, FetchResponse(topics, session_id=1 << 30))
    answer = read(message_type("fetch", version, "response"), joined(body))
    assert answer.throttle_time == timedelta(0)
    if version >= 7:
        assert (answer.error_code, answer.session_id) == (ErrorCode.NONE, 1 << 30)
    assert len(answer.responses) == 2
    for topic in answer.responses:
        assert (topic.topic_id.bytes if version >= 13 else topic.topic) == (TOPIC_ID if version >= 13 else "töpic")
        for expected, found in zip(results, topic.partitions, strict=True):
            assert (found.partition_index, found.error_code) == (expected.partition, expected.error)
            start = expected.log_start_offset
            known = (expected.high_watermark, expected.last_stable_offset, start if version >= 5 else -1)
            told = (found.high_watermark, found.last_stable_offset, getattr(found, "log_start_offset", -1))
            assert told == ((-1, -1, -1) if expected.error else known)
            if version >= 11:
                assert found.preferred_read_replica == -1
            aborted = found.aborted_transactions or ()
            assert [(each.producer_id, each.first_offset) for each in aborted] == [
                (each.producer_id, each.first_offset) for each in expected.aborted
            ]
            assert found.records == (b"" if expected.records is None else expected.records.data)  # type: ignore[attr-defined]
            if version >= 12:
                leader = expected.current_leader if version >= 16 else None
                assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == (leader or (-1, -1))


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_fetch_refused_as_a_whole_has_the_code_where_its_version_reads_it(version: int) -> None:
    request = fetch.decode_request(version, memoryview(bytearray(fetch_body(version))))
    body = fetch.encode_error(version, request, ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "none")
    answer = read(message_type("fetch", version, "response"), joined(body))
    if version >= 7:
        assert (answer.error_code, answer.session_id) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 77)
    errors = [each.error_code for topic in answer.responses for each in topic.partitions]
    assert errors == ([] if version >= 13 else [ErrorCode.FETCH_SESSION_ID_NOT_FOUND] * 2)


@pytest.mark.parametrize("version", [each for each in FETCH_VERSIONS if each >= 7])
def test_a_session_error_is_answered_without_partitions(version: int) -> None:
    refusal = FetchResponse([], error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    answer = read(message_type("fetch", version, "response"), joined(fetch.encode_response(version, refusal)))
    assert (answer.error_code, answer.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)
    assert answer.responses == ()


BODIES = [(ApiKey.PRODUCE, version, produce_body(version)) for version in PRODUCE_VERSIONS] + [
    (ApiKey.FETCH, version, fetch_body(version)) for version in FETCH_VERSIONS
]


@pytest.mark.parametrize(("key", "version", "body"), BODIES)
def test_a_body_that_is_cut_short_is_a_decode_error_or_complete(key: ApiKey, version: int, body: bytes) -> None:
    for size in range(len(body)):
        try:
            ROUTES[key, version].decode(version, memoryview(bytearray(body[:size])))
        except DecodeError:
            continue
        assert key is ApiKey.FETCH, f"{size} of {len(body)} bytes"  # what follows a fetch's topics is not read


@pytest.mark.parametrize(("key", "version", "body"), BODIES)
def test_damaged_bodies_raise_decode_errors_and_nothing_else(key: ApiKey, version: int, body: bytes) -> None:
    rng = random.Random(f"{key.label} {version}")
    for turn in range(300):
        data = bytearray(body)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        try:
            ROUTES[key, version].decode(version, memoryview(data))
        except DecodeError:
            continue
        except Exception as error:
            error.add_note(f"turn {turn}: {bytes(data)!r}")
            raise


LENGTHS = [
    (ApiKey.FETCH, 4, struct.pack(">iiiibi", -1, 0, 0, 0, 0, 0x7FFFFFFF)),
    (ApiKey.FETCH, 12, struct.pack(">iiiibii", -1, 0, 0, 0, 0, 0, -1) + b"\xff\xff\xff\xff\x0f"),
]


@pytest.mark.parametrize(("key", "version", "body"), LENGTHS)
def test_an_array_of_two_billion_items_is_refused_before_it_is_allocated(
    key: ApiKey, version: int, body: bytes
) -> None:
    with pytest.raises(DecodeError, match="more than 50000 topics and partitions"):
        ROUTES[key, version].decode(version, memoryview(bytearray(body)))


NULLS = [
    (ApiKey.FETCH, 4, struct.pack(">iiiibi", -1, 0, 0, 0, 0, -1)),
    (ApiKey.FETCH, 7, struct.pack(">iiiibiiii", -1, 0, 0, 0, 0, 0, -1, 0, -1)),
    (ApiKey.FETCH, 12, struct.pack(">iiiibii", -1, 0, 0, 0, 0, 0, -1) + b"\x00\x01\x01\x00"),
]


@pytest.mark.parametrize(("key", "version", "body"), NULLS)
def test_null_instead_of_an_array_is_refused(key: ApiKey, version: int, body: bytes) -> None:
    with pytest.raises(DecodeError, match="may not be null"):
        ROUTES[key, version].decode(version, memoryview(bytearray(body)))
