"""Fetch (1), versions 4-18: stored batches, sent between the fields of the answer.

    request    4+   replica_id int32 (14-), max_wait_ms, min_bytes, max_bytes int32, isolation int8,
               7+   session_id, session_epoch int32,
                    [topic string, [partition int32, current_leader_epoch int32 (9+), fetch_offset int64,
                        last_fetched_epoch int32 (12+), log_start_offset int64 (5+), partition_max_bytes int32]],
               7+   forgotten [topic, [partition int32]]
               11+  rack_id string
               12+  flexible        13+  topic_id uuid instead of every topic
               15+  tagged field 1: replica_id int32, replica_epoch int64
    response   4+   throttle int32,
               7+   error int16, session_id int32,
                    [topic string, [partition int32, error int16, high_watermark int64, last_stable_offset int64,
                        log_start_offset int64 (5+), aborted nullable [producer_id, first_offset int64],
                        preferred_read_replica int32 (11+), records nullable bytes]]
               12+  flexible        13+  topic_id instead of topic
               12+  tagged field 0 of a partition: epoch int32 and end offset int64 where the client's log diverges
               16+  tagged field 1 of a partition: the current leader and its epoch

Of a follower's fields only its replica_id and last_fetched_epoch are read. A partition with an error has no offsets.
Coded by hand, see hot_fields.py. Source: Kafka's FetchRequest.json, FetchResponse.json.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.hot_fields import (
    INT32,
    NO_TAGS,
    compact_string,
    count_items,
    decoder,
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    read_topic,
    skip_tags,
    string,
)
from barnabas.protocol.kafka.pieces import Piece, Pieces
from barnabas.protocol.kafka.repetitions import fetched_once
from barnabas.protocol.messages.data.fetch import (
    UNREAD_ERRORS,
    AbortedTransaction,
    FetchPartition,
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    FetchTopicResult,
    PartitionKey,
)
from barnabas.protocol.primitives import Reader
from barnabas.protocol.varint import unsigned

_LOG_START_FROM: Final = 5
_SESSIONS_FROM: Final = 7
_LEADER_EPOCH_FROM: Final = 9
_PREFERRED_REPLICA_FROM: Final = 11
_FLEXIBLE_FROM: Final = 12
_TOPIC_IDS_FROM: Final = 13
_REPLICA_STATE_FROM: Final = 15
_CURRENT_LEADER_FROM: Final = 16

_ITEMS_OF_ONE_PARTITION: Final = 2
_REPLICA_STATE_TAG: Final = 1
_CONSUMERS_TAIL: Final = b"\x01\x01\x00"
"""End of most consumers' requests from version 12: no forgotten topics, an empty rack, no tagged fields."""

_LIMITS = struct.Struct(">iiib")
_SESSION = struct.Struct(">ii")
_PARTITION_V4 = struct.Struct(">iqi")
_PARTITION_V5 = struct.Struct(">iqqi")
_PARTITION_V9 = struct.Struct(">iiqqi")
_PARTITION_V12 = struct.Struct(">iiqiqi")

_HEAD_V4: Final = INT32.pack(0)
_HEAD_V7 = struct.Struct(">ihi")
_RESULT_V4 = struct.Struct(">ihqq")
_RESULT_V5 = struct.Struct(">ihqqq")
_ABORTED = struct.Struct(">qq")
_CURRENT_LEADER = struct.Struct(">iiB")
_DIVERGING = struct.Struct(">iqB")
_NO_PREFERRED_REPLICA: Final = INT32.pack(-1)
_NULL_ARRAY: Final = INT32.pack(-1)

_pack_int32 = INT32.pack


@decoder
def decode_request(version: int, body: memoryview) -> FetchRequest:
    """Raises DecodeError."""
    flexible = version >= _FLEXIBLE_FROM
    read_array, read_text = (read_compact_count, read_compact_string) if flexible else (read_count, read_string)
    replica_id, position = -1, 0
    if version < _REPLICA_STATE_FROM:
        (replica_id,) = INT32.unpack_from(body)
        position = INT32.size
    max_wait_ms, min_bytes, max_bytes, isolation = _LIMITS.unpack_from(body, position)
    position += _LIMITS.size
    session_id, session_epoch = 0, -1
    if version >= _SESSIONS_FROM:
        session_id, session_epoch = _SESSION.unpack_from(body, position)
        position += _SESSION.size
    topic_count, position = read_array(body, position)
    items = count_items(0, topic_count)
    topics: list[FetchTopic] = []
    for _ in range(topic_count):
        name, topic_id, position = read_topic(body, position, version >= _TOPIC_IDS_FROM, read_text)
        count, position = read_array(body, position)
        items = count_items(items, count)
        partitions: list[FetchPartition] = []
        for _ in range(count):
            partition, position = _read_partition(version, body, position)
            partitions.append(partition)
            if flexible:
                position = skip_tags(body, position)
        topics.append(FetchTopic(name, partitions, topic_id))
        if flexible:
            position = skip_tags(body, position)
    if items != _ITEMS_OF_ONE_PARTITION:
        topics = fetched_once(topics)
    forgotten: Sequence[PartitionKey] = ()
    if version >= _SESSIONS_FROM and (not flexible or bytes(body[position : position + 4]) != _CONSUMERS_TAIL):
        forgotten, position = _read_forgotten(version, body, position)
        if version >= _REPLICA_STATE_FROM:
            replica_id = _replica_id(Reader(body, position))
    return FetchRequest(
        max(0, max_wait_ms),
        max(0, min_bytes),
        max(0, max_bytes),
        isolation,
        topics,
        session_id,
        session_epoch,
        replica_id,
        forgotten,
        version >= _TOPIC_IDS_FROM,
    )


def _read_forgotten(version: int, body: memoryview, position: int) -> tuple[list[PartitionKey], int]:
    """Return the partitions to remove from the session, and the position after them."""
    flexible = version >= _FLEXIBLE_FROM
    read_array, read_text = (read_compact_count, read_compact_string) if flexible else (read_count, read_string)
    topic_count, position = read_array(body, position)
    items = count_items(0, topic_count)
    forgotten: list[PartitionKey] = []
    for _ in range(topic_count):
        name, topic_id, position = read_topic(body, position, version >= _TOPIC_IDS_FROM, read_text)
        count, position = read_array(body, position)
        items = count_items(items, count)
        numbers = struct.unpack_from(f">{count}i", body, position)
        forgotten += [(topic_id or name, number) for number in numbers]
        position += INT32.size * count
        if flexible:
            position = skip_tags(body, position)
    return forgotten, position


def _replica_id(tail: Reader) -> int:
    """Return a follower's node, or -1; `tail` is at the rack. Raises DecodeError, struct.error."""
    tail.raw(max(0, tail.unsigned_varint() - 1))
    state = tail.tagged_fields().get(_REPLICA_STATE_TAG)
    if state is None:
        return -1
    replica_id: int = INT32.unpack_from(state)[0]
    return replica_id


def _read_partition(version: int, body: memoryview, position: int) -> tuple[FetchPartition, int]:
    leader_epoch = last_fetched_epoch = -1
    if version >= _FLEXIBLE_FROM:
        number, leader_epoch, offset, last_fetched_epoch, _, max_bytes = _PARTITION_V12.unpack_from(body, position)
        position += _PARTITION_V12.size
    elif version >= _LEADER_EPOCH_FROM:
        number, leader_epoch, offset, _, max_bytes = _PARTITION_V9.unpack_from(body, position)
        position += _PARTITION_V9.size
    elif version >= _LOG_START_FROM:
        number, offset, _, max_bytes = _PARTITION_V5.unpack_from(body, position)
        position += _PARTITION_V5.size
    else:
        number, offset, max_bytes = _PARTITION_V4.unpack_from(body, position)
        position += _PARTITION_V4.size
    return FetchPartition(number, offset, max(0, max_bytes), max(leader_epoch, -1), last_fetched_epoch), position


def encode_response(version: int, response: FetchResponse) -> Pieces:
    """Return an answer's body; each partition's records are a piece between bytes."""
    return _encode(version, response)


def encode_error(version: int, request: FetchRequest, code: ErrorCode, message: str) -> Pieces:
    """Return the body with `code` for the whole and, up to version 12, for every partition.

    It has the request's session id, as in Kafka.
    """
    topics: list[FetchTopicResult] = []
    if version < _TOPIC_IDS_FROM:
        for topic in request.topics:
            results = [FetchPartitionResult(p.partition, code) for p in topic.partitions]
            topics.append(FetchTopicResult(topic.name, results))
    return _encode(version, FetchResponse(topics, session_id=request.session_id, error=code))


def _encode(version: int, response: FetchResponse) -> Pieces:
    flexible = version >= _FLEXIBLE_FROM
    out = bytearray(_HEAD_V7.pack(0, response.error, response.session_id) if version >= _SESSIONS_FROM else _HEAD_V4)
    head = b""
    parts: list[Piece] = []
    size = 0
    topics = response.topics
    out += unsigned(len(topics) + 1) if flexible else _pack_int32(len(topics))
    null_array = NO_TAGS if flexible else _NULL_ARRAY
    empty_array = _aborted([], flexible)
    none_aborted = empty_array if response.committed_only else null_array
    for topic in topics:
        if version >= _TOPIC_IDS_FROM:
            out += topic.topic_id or b""
        else:
            out += compact_string(topic.name) if flexible else string(topic.name)
        count = len(topic.partitions)
        out += unsigned(count + 1) if flexible else _pack_int32(count)
        for p in topic.partitions:
            if p.error:  # as in Kafka, an error has no offsets
                p = FetchPartitionResult(p.partition, p.error, current_leader=p.current_leader)
            if version >= _LOG_START_FROM:
                out += _RESULT_V5.pack(p.partition, p.error, p.high_watermark, p.last_stable_offset, p.log_start_offset)
            else:
                out += _RESULT_V4.pack(p.partition, p.error, p.high_watermark, p.last_stable_offset)
            if p.aborted:
                out += _aborted(p.aborted, flexible)
            elif p.error:  # Kafka's default for a partition that was not read, and null for a failed read
                out += empty_array if response.error or p.error in UNREAD_ERRORS else null_array
            elif p.diverging is not None:
                out += null_array
            else:
                out += none_aborted
            if version >= _PREFERRED_REPLICA_FROM:
                out += _NO_PREFERRED_REPLICA
            records = p.records
            records_size = 0 if records is None else records.size
            out += unsigned(records_size + 1) if flexible else _pack_int32(records_size)
            if records is not None:
                size += len(out) + records_size
                if parts:
                    parts.append(bytes(out))
                else:
                    head = bytes(out)
                parts.append(records)
                out.clear()
            if flexible:
                leader = p.current_leader if version >= _CURRENT_LEADER_FROM else None
                out += NO_TAGS if leader is None and p.diverging is None else _tags(leader, p.diverging)
        if flexible:
            out += NO_TAGS
    if flexible:
        out += NO_TAGS
    size += len(out)
    if not parts:
        return Pieces(bytes(out), parts, size)
    if out:
        parts.append(bytes(out))
    return Pieces(head, parts, size)


def _aborted(aborted: list[AbortedTransaction], flexible: bool) -> bytes:
    out = bytearray(unsigned(len(aborted) + 1) if flexible else _pack_int32(len(aborted)))
    for transaction in aborted:
        out += _ABORTED.pack(transaction.producer_id, transaction.first_offset)
        if flexible:
            out += NO_TAGS
    return bytes(out)


def _tags(leader: tuple[int, int] | None, diverging: tuple[int, int] | None) -> bytes:
    """Return a partition's tagged fields.

    Tag 0 with 13 bytes (epoch, end offset, empty tagged fields), tag 1 with 9 bytes (node, epoch, empty tagged fields).
    """
    fields = []
    if diverging is not None:
        fields.append(b"\x00\x0d" + _DIVERGING.pack(*diverging, 0))
    if leader is not None:
        fields.append(b"\x01\x09" + _CURRENT_LEADER.pack(*leader, 0))
    return bytes([len(fields)]) + b"".join(fields)
