"""OffsetCommit (8), versions 2-10: sent by every consumer of a group every few seconds.

    request    2+   group_id string, generation or member epoch int32, member_id string,
               7+       group_instance_id nullable string,
               2-4      retention_ms int64,
               2+       [name string, [index int32, offset int64,
               6+           leader_epoch int32,
               2+           metadata nullable string]]
               8+   flexible        10+  topic_id uuid instead of name
    response   3+   throttle int32,
               2+       [name string, [index int32, error int16]]
               8+   flexible        10+  topic_id instead of name

An error of the whole request is set for every partition. Coded by hand, see hot_fields.py: both directions take 17 us
for ten partitions. Source: Kafka's OffsetCommitRequest.json, OffsetCommitResponse.json.
"""

from __future__ import annotations

import struct
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.hot_fields import (
    INT32,
    NO_TAGS,
    compact_count,
    compact_string,
    count_items,
    decoder,
    read_compact_count,
    read_compact_string,
    read_count,
    read_present,
    read_string,
    read_topic,
    skip_tags,
    string,
)
from barnabas.protocol.messages.groups.offset_commit import (
    DEFAULT_RETENTION,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
    refuse_commit,
)
from barnabas.protocol.uuids import ZERO_UUID

_THROTTLE_FROM: Final = 3
_RETENTION_UNTIL: Final = 4
_EPOCH_FROM: Final = 6
_INSTANCE_FROM: Final = 7
_FLEXIBLE_FROM: Final = 8
_UNKNOWN_GROUPS_FROM: Final = 9
_BY_ID_FROM: Final = 10

_NO_EPOCH: Final = -1
_INT64 = struct.Struct(">q")
_OFFSET = struct.Struct(">iq")
_OFFSET_AND_EPOCH = struct.Struct(">iqi")
_RESULT = struct.Struct(">ih")
_NO_THROTTLE: Final = INT32.pack(0)


@decoder
def decode_request(version: int, body: memoryview) -> OffsetCommitRequest:
    """Raises DecodeError."""
    flexible = version >= _FLEXIBLE_FROM
    read_text = read_compact_string if flexible else read_string
    group_id, position = read_present(read_text, body, 0, "the group id")
    (generation,) = INT32.unpack_from(body, position)
    member_id, position = read_present(read_text, body, position + INT32.size, "the member id")
    instance: str | None = None
    if version >= _INSTANCE_FROM:
        instance, position = read_text(body, position)
    retention_ms = DEFAULT_RETENTION
    if version <= _RETENTION_UNTIL:
        (retention_ms,) = _INT64.unpack_from(body, position)
        position += _INT64.size
    topic_count, position = read_compact_count(body, position) if flexible else read_count(body, position)
    items = count_items(0, topic_count)
    topics: list[OffsetCommitTopic] = []
    for _ in range(topic_count):
        name, topic_id, position = read_topic(body, position, version >= _BY_ID_FROM, read_text)
        count, position = read_compact_count(body, position) if flexible else read_count(body, position)
        items = count_items(items, count)
        partitions: list[OffsetCommitPartition] = []
        for _ in range(count):
            epoch = _NO_EPOCH
            if version >= _EPOCH_FROM:
                number, offset, epoch = _OFFSET_AND_EPOCH.unpack_from(body, position)
                position += _OFFSET_AND_EPOCH.size
            else:
                number, offset = _OFFSET.unpack_from(body, position)
                position += _OFFSET.size
            metadata, position = read_text(body, position)
            if flexible:
                position = skip_tags(body, position)
            partitions.append(OffsetCommitPartition(number, offset, epoch, metadata))
        if flexible:
            position = skip_tags(body, position)
        topics.append(OffsetCommitTopic(name, partitions, topic_id))
    if flexible:
        skip_tags(body, position)
    return OffsetCommitRequest(
        group_id,
        topics,
        generation,
        member_id,
        instance,
        retention_ms,
        knows_unknown_groups=version >= _UNKNOWN_GROUPS_FROM,
    )


def encode_response(version: int, response: OffsetCommitResponse) -> bytes:
    """A code for each partition."""
    flexible = version >= _FLEXIBLE_FROM
    write_count = compact_count if flexible else INT32.pack
    write_text = compact_string if flexible else string
    result_end = NO_TAGS if flexible else b""
    out = bytearray(_NO_THROTTLE if version >= _THROTTLE_FROM else b"")
    out += write_count(len(response.topics))
    for topic in response.topics:
        out += (topic.topic_id or ZERO_UUID) if version >= _BY_ID_FROM else write_text(topic.name)
        out += write_count(len(topic.partitions))
        for each in topic.partitions:
            out += _RESULT.pack(each.partition, each.error)
            out += result_end
        out += result_end
    out += result_end
    return bytes(out)


def encode_error(version: int, request: OffsetCommitRequest, code: ErrorCode, message: str) -> bytes:
    """The code for every partition."""
    return encode_response(version, refuse_commit(request, code))
