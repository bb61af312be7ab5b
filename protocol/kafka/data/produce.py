"""Produce (0), versions 3-13: one record batch for each of the named partitions.

    request    3+   transactional_id nullable string, acks int16, timeout_ms int32,
                    [name string, [index int32, records nullable bytes]]
               9+   flexible        13+  topic_id uuid instead of name
    response   3+   [name string, [index int32, error int16, base_offset int64, log_append_time int64,
               5+       log_start_offset int64,
               8+       [batch_index int32, message nullable string], error_message nullable string]],
                    throttle int32
               9+   flexible        13+  topic_id instead of name

From version 12 on the partitions need not be part of the transaction yet (KIP-890). Version 11 added the error
TRANSACTION_ABORTABLE.

A batch's `records` are a view of the frame, that is of the receive buffer, and are patched in place. The tagged fields
that version 10 adds to a response (the current leader) are never written: this node leads all its partitions.
Written by hand, see hot_fields.py. Source: Kafka's ProduceRequest.json, ProduceResponse.json.
"""

from __future__ import annotations

import struct
from typing import Final

from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.framing import FrameError
from barnabas.protocol.kafka.hot_fields import (
    INT32,
    NO_TAGS,
    compact_nullable_string,
    compact_string,
    count_items,
    cut_short,
    null_array,
    nullable_string,
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    read_topic_id,
    read_unsigned,
    skip_tags,
    string,
    unsigned,
)
from barnabas.protocol.messages.data.produce import (
    ACKS_NONE,
    ProducePartition,
    ProducePartitionResult,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    ProduceTopicResult,
)

_LOG_START_FROM: Final = 5
_ZSTD_FROM: Final = 7
_MESSAGES_FROM: Final = 8
_FLEXIBLE_FROM: Final = 9
_ABORTABLE_FROM: Final = 11
_ADDS_PARTITIONS_FROM: Final = 12
_TOPIC_IDS_FROM: Final = 13

_ACKS_AND_TIMEOUT = struct.Struct(">hi")
_ACKS_AND_TIMEOUT_SIZE: Final = 6
_PARTITION = struct.Struct(">ii")
_PARTITION_SIZE: Final = 8
_RESULT_V3 = struct.Struct(">ihqq")
_RESULT_V5 = struct.Struct(">ihqqq")
_NO_RECORDS = memoryview(b"")
_NO_THROTTLE: Final = INT32.pack(0)

_unpack_acks_and_timeout = _ACKS_AND_TIMEOUT.unpack_from
_unpack_partition = _PARTITION.unpack_from
_unpack_int32 = INT32.unpack_from
_unpack_index_and_size = struct.Struct(">iB").unpack_from
_pack_int32 = INT32.pack
_pack_result_v5 = _RESULT_V5.pack


def decode_request(version: int, body: memoryview) -> ProduceRequest:
    """Return the request; each partition's `records` is its slice of `body`. Raises DecodeError."""
    try:
        return _decode_flexible(version, body) if version >= _FLEXIBLE_FROM else _decode_classic(version, body)
    except (struct.error, IndexError) as error:
        raise cut_short(error) from error


def _decode_classic(version: int, body: memoryview) -> ProduceRequest:
    end = len(body)
    transactional_id, position = read_string(body, 0)
    acks, timeout_ms = _unpack_acks_and_timeout(body, position)
    topic_count, position = read_count(body, position + _ACKS_AND_TIMEOUT_SIZE)
    items = count_items(0, topic_count)
    topics: list[ProduceTopic] = []
    for _ in range(topic_count):
        name, position = read_string(body, position)
        (count,) = _unpack_int32(body, position)
        position += 4
        if count < 0:
            raise null_array()
        items = count_items(items, count) if count > 1 else items + 1
        partitions: list[ProducePartition] = []
        for _ in range(count):
            number, size = _unpack_partition(body, position)
            position += _PARTITION_SIZE
            if size > 0:
                following = position + size
                if following > end:
                    raise _too_long(size, end - position)
                partitions.append(ProducePartition(number, body[position:following]))
                position = following
            else:
                partitions.append(ProducePartition(number, _NO_RECORDS))
        if name is None:
            raise DecodeError("a topic's name is null")
        topics.append(ProduceTopic(name, partitions))
    takes_zstd = version >= _ZSTD_FROM
    return ProduceRequest(
        acks, timeout_ms, topics, transactional_id, takes_zstd, adds_partitions=False, knows_abortable=False
    )


def _decode_flexible(version: int, body: memoryview) -> ProduceRequest:
    end = len(body)
    transactional_id, position = read_compact_string(body, 0)
    acks, timeout_ms = _unpack_acks_and_timeout(body, position)
    topic_count, position = read_compact_count(body, position + _ACKS_AND_TIMEOUT_SIZE)
    items = count_items(0, topic_count)
    topics: list[ProduceTopic] = []
    for _ in range(topic_count):
        topic_id: bytes | None = None
        name: str | None = None
        if version >= _TOPIC_IDS_FROM:
            topic_id, position = read_topic_id(body, position)
        else:
            name, position = read_compact_string(body, position)
            if name is None:
                raise DecodeError("a topic's name is null")
        count, position = read_compact_count(body, position)
        items = count_items(items, count)
        partitions: list[ProducePartition] = []
        for _ in range(count):
            number, size = _unpack_index_and_size(body, position)
            if size < 0x80:
                position += 5
            else:
                size, position = read_unsigned(body, position + 4)
            if size > 1:
                following = position + size - 1
                if following > end:
                    raise _too_long(size - 1, end - position)
                partitions.append(ProducePartition(number, body[position:following]))
                position = following
            else:
                partitions.append(ProducePartition(number, _NO_RECORDS))
            position = position + 1 if body[position] == 0 else skip_tags(body, position)
        topics.append(ProduceTopic(name or "", partitions, topic_id))
        position = skip_tags(body, position)
    skip_tags(body, position)
    request = ProduceRequest(acks, timeout_ms, topics, transactional_id)
    if version < _ADDS_PARTITIONS_FROM:
        request.adds_partitions = False
        request.knows_abortable = version >= _ABORTABLE_FROM
    return request


def encode_response(version: int, response: ProduceResponse) -> bytes:
    """Return the body of a response."""
    return _encode_flexible(version, response) if version >= _FLEXIBLE_FROM else _encode_classic(version, response)


def _encode_classic(version: int, response: ProduceResponse) -> bytes:
    pack = _RESULT_V5.pack if version >= _LOG_START_FROM else _RESULT_V3.pack
    topics = response.topics
    out = bytearray(_pack_int32(len(topics)))
    for topic in topics:
        out += string(topic.name)
        out += _pack_int32(len(topic.partitions))
        for p in topic.partitions:
            values = (p.partition, p.error, p.base_offset, p.log_append_time_ms, p.log_start_offset)
            out += pack(*values) if version >= _LOG_START_FROM else pack(*values[:4])
            if version >= _MESSAGES_FROM:
                out += _pack_int32(len(p.record_errors))
                for index, message in p.record_errors:
                    out += _pack_int32(index)
                    out += nullable_string(message)
                out += nullable_string(p.message)
    out += _NO_THROTTLE
    return bytes(out)


def _encode_flexible(version: int, response: ProduceResponse) -> bytes:
    topics = response.topics
    out = bytearray(unsigned(len(topics) + 1))
    for topic in topics:
        out += (topic.topic_id or b"") if version >= _TOPIC_IDS_FROM else compact_string(topic.name)
        out += unsigned(len(topic.partitions) + 1)
        for p in topic.partitions:
            out += _pack_result_v5(p.partition, p.error, p.base_offset, p.log_append_time_ms, p.log_start_offset)
            if p.message is None and not p.record_errors:
                out += _NO_ERRORS
                continue
            out += unsigned(len(p.record_errors) + 1)
            for index, message in p.record_errors:
                out += _pack_int32(index)
                out += compact_nullable_string(message)
                out += NO_TAGS
            out += compact_nullable_string(p.message)
            out += NO_TAGS
        out += NO_TAGS
    out += _END
    return bytes(out)


_NO_ERRORS: Final = b"\x01\x00\x00"
"""No record errors, a null message, no tagged fields."""

_END: Final = _NO_THROTTLE + NO_TAGS


def encode_error(version: int, request: ProduceRequest, code: ErrorCode, message: str) -> bytes:
    """Return the body with `code` for every partition. Raises FrameError for acks=0, which has no response."""
    if request.acks == ACKS_NONE:
        raise FrameError(f"a produce with acks=0 failed: {code.name}: {message}")
    topics = [
        ProduceTopicResult(
            topic.name, [ProducePartitionResult(p.partition, code, message) for p in topic.partitions], topic.topic_id
        )
        for topic in request.topics
    ]
    return encode_response(version, ProduceResponse(topics))


def _too_long(size: int, left: int) -> DecodeError:
    return DecodeError(f"records of {size} bytes, but {left} are left")
