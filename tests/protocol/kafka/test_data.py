"""Produce and Fetch of Kafka's protocol: what their messages mean; tests/protocol/wire judges their bytes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.framing import FrameError
from barnabas.protocol.messages.data.fetch import (
    READ_COMMITTED,
    AbortedTransaction,
    EpochEnd,
    FetchPartition,
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    FetchTopicResult,
    ForgottenTopic,
    ReplicaState,
)
from barnabas.protocol.messages.data.produce import ProduceRequest
from barnabas.protocol.messages.nodes import LeaderAndEpoch
from barnabas.protocol.wire.pieces import NO_RECORDS, RecordBytes
from tests.support.kafka.kafka_wire import message_type, read, schema, written

PRODUCE_VERSIONS = range(3, 14)
FETCH_VERSIONS = range(4, 19)
TOPIC_ID = bytes(range(16))
BATCHES = [b"first batch", b"", b"x" * 300, b"last"]


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


def fetch(version: int, **fields: Any) -> FetchRequest:
    """Return a request as the broker reads it."""
    partitions = [FetchPartition(partition=each, offset=1 << 40, max_bytes=1 << 20) for each in (3, 4)]
    topics = [FetchTopic(name="töpic", topic_id=TOPIC_ID, partitions=partitions)]
    values = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 50 << 20, "topics": topics, "session_id": 77, **fields}
    return FetchRequest.decode(version, FetchRequest(**values).encode(version))


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_fetch_names_topics_as_its_version_does(version: int) -> None:
    forgotten = [ForgottenTopic(name="töpic", topic_id=TOPIC_ID, partitions=[1, 2])]
    request = fetch(version, forgotten=forgotten)
    key = TOPIC_ID if version >= 13 else "töpic"
    assert request.uses_topic_ids == (version >= 13)
    assert [topic.key for topic in request.topics] == [key]
    assert list(request.forgotten_keys()) == ([(key, 1), (key, 2)] if version >= 7 else [])


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_fetch_has_the_node_of_its_follower(version: int) -> None:
    assert fetch(version).follower_id == -1
    assert fetch(version, replica_id=7, replica_state=ReplicaState(replica_id=7)).follower_id == 7


def test_a_fetch_of_the_native_dialect_names_topics_and_wants_the_offsets_of_errors() -> None:
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=0, isolation=READ_COMMITTED, topics=())
    assert (request.uses_topic_ids, request.wants_offsets_of_errors) == (False, True)
    assert not any(fetch(version).wants_offsets_of_errors for version in FETCH_VERSIONS)


@dataclass
class Slice:
    """What the broker has for the bytes of a file."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)


def results(kind: Any) -> list[FetchPartitionResult]:
    """Return partitions with and without records, whose bytes are of a kind."""
    return [
        FetchPartitionResult(partition=0, high_watermark=100, records=kind(b"a batch" * 50)),
        FetchPartitionResult(partition=1, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, aborted=()),
        FetchPartitionResult(
            partition=2, aborted=[AbortedTransaction(producer_id=9, first_offset=3)] * 2, records=kind(b"b")
        ),
        FetchPartitionResult(
            partition=3,
            error=ErrorCode.FENCED_LEADER_EPOCH,
            current_leader=LeaderAndEpoch(node_id=1, epoch=12),
            records=kind(b"c" * 126),
        ),
        FetchPartitionResult(partition=4, diverging=EpochEnd(epoch=1, end_offset=2), records=kind(b"d" * 127)),
        FetchPartitionResult(partition=5, last_stable_offset=3, preferred_read_replica=1),
    ]


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [5, 3, 2, 1, 0], [1, 5], [0, 2], []])
def test_an_answer_in_pieces_is_the_answer_with_the_records_between_its_bytes(version: int, order: list[int]) -> None:
    def answer(kind: Any) -> FetchResponse:
        partitions = [results(kind)[each] for each in order]
        topics = [FetchTopicResult(name="töpic", topic_id=TOPIC_ID, partitions=partitions)] * 2
        return FetchResponse(topics=topics, session_id=1 << 30)

    body = answer(Slice).pieces(version)
    data = b"".join([body.head, *(part if isinstance(part, bytes) else part.data for part in body.parts)])  # type: ignore[attr-defined]
    assert len(data) == body.size
    assert data == answer(RecordBytes).encode(version)
    records = [part.data for part in body.parts if isinstance(part, Slice)]
    assert records == [each.data for each in answer(RecordBytes).topics[0].partitions if each.records.size] * 2
    found = FetchResponse.decode(version, memoryview(data))
    assert [[bytes(each.data) for each in topic.partitions] for topic in found.topics] == [
        [bytes(each.data) for each in topic.partitions] for topic in answer(RecordBytes).topics
    ]


def test_a_client_reads_records_as_views_of_the_frame() -> None:
    frame = bytearray(FetchResponse(topics=[FetchTopicResult(partitions=results(RecordBytes))]).encode(17))
    data = FetchResponse.decode(17, memoryview(frame)).topics[0].partitions[0].data
    assert data.obj is frame


def test_a_partition_whose_records_are_null_has_no_data() -> None:
    result = FetchPartitionResult(partition=0)
    result.records = None  # type: ignore[assignment]
    data = FetchResponse(topics=[FetchTopicResult(partitions=[result])]).encode(17)
    read_back = FetchResponse.decode(17, data).topics[0].partitions[0]
    records: object = read_back.records
    assert records is None
    assert bytes(read_back.data) == b""
    assert FetchPartitionResult(partition=0).records is NO_RECORDS


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_fetch_refused_as_a_whole_has_the_code_where_its_version_reads_it(version: int) -> None:
    refusal = fetch(version).refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "none")
    answer = read(message_type("fetch", version, "response"), refusal.encode(version))
    if version >= 7:
        assert (answer.error_code, answer.session_id) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 77)
    errors = [each.error_code for topic in answer.responses for each in topic.partitions]
    assert errors == ([] if version >= 13 else [ErrorCode.FETCH_SESSION_ID_NOT_FOUND] * 2)
