"""OffsetFetch (9), versions 1-10: sent by a consumer for newly assigned partitions.

    request    1-7  group_id string, [name string, [index int32]] (null from 2 on: all)
               8+   [group_id string,
               9+       member_id nullable string, member_epoch int32,
               8+       [name string, [index int32]] or null]
               7+   require_stable int8
               6+   flexible        10+  topic_id uuid instead of name
    response   3+   throttle int32
               1-7  [name string, [index int32, offset int64,
               5+       leader_epoch int32,
               1+       metadata string, error int16]],
               2-7  error int16
               8+   [group_id string, [name string, [...]], error int16]
               6+   flexible        10+  topic_id instead of name

Version 9 added members of the consumer protocol. A string before version 6 has at most 32,767 bytes: a partition with
longer metadata, committed by a newer version, is answered OFFSET_METADATA_TOO_LARGE, while Kafka fails the whole
request (UNKNOWN_SERVER_ERROR). Coded by hand, see hot_fields.py: both directions take 12 us for ten partitions. Source:
Kafka's OffsetFetchRequest.json, OffsetFetchResponse.json.
"""

from __future__ import annotations

import struct
from typing import Final

from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.kafka.hot_fields import (
    INT16,
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
    read_unsigned,
    skip_tags,
    string,
)
from barnabas.protocol.messages.groups.offset_fetch import (
    NO_MEMBER_EPOCH,
    OffsetFetchGroup,
    OffsetFetchGroupResult,
    OffsetFetchPartitionResult,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
    OffsetFetchTopicResult,
    refuse_fetch,
)
from barnabas.protocol.uuids import ZERO_UUID

_ALL_FROM: Final = 2
_THROTTLE_FROM: Final = 3
_EPOCH_FROM: Final = 5
_FLEXIBLE_FROM: Final = 6
_STABLE_FROM: Final = 7
_GROUPS_FROM: Final = 8
_MEMBERS_FROM: Final = 9
_BY_ID_FROM: Final = 10

_LONGEST_STRING: Final = 2**15 - 1
"""Bytes of a string before flexible versions; offset.metadata.max.bytes may allow more."""
_SURELY_FITS: Final = _LONGEST_STRING // 4
"""A string of at most this many characters fits."""

_OFFSET = struct.Struct(">iq")
_OFFSET_AND_EPOCH = struct.Struct(">iqi")
_NO_THROTTLE: Final = INT32.pack(0)


@decoder
def decode_request(version: int, body: memoryview) -> OffsetFetchRequest:
    """Raises DecodeError."""
    groups: list[OffsetFetchGroup] = []
    if version >= _GROUPS_FROM:
        count, position = read_compact_count(body, 0)
        items = count_items(0, count)
        for _ in range(count):
            group, items, position = _read_group(version, body, position, items)
            groups.append(group)
    else:
        group, _, position = _read_group(version, body, 0, 0)
        groups.append(group)
    require_stable = False
    if version >= _STABLE_FROM:
        require_stable = body[position] != 0
        position += 1
    if version >= _FLEXIBLE_FROM:
        skip_tags(body, position)
    return OffsetFetchRequest(groups, require_stable, version >= _BY_ID_FROM)


def _read_group(version: int, body: memoryview, position: int, items: int) -> tuple[OffsetFetchGroup, int, int]:
    """Return the group, the count of items so far, and the position after the group."""
    read_text = read_compact_string if version >= _FLEXIBLE_FROM else read_string
    group_id, position = read_present(read_text, body, position, "a group id")
    member_id: str | None = None
    member_epoch = NO_MEMBER_EPOCH
    if version >= _MEMBERS_FROM:
        member_id, position = read_compact_string(body, position)
        (member_epoch,) = INT32.unpack_from(body, position)
        position += INT32.size
    topics, items, position = _read_topics(version, body, position, items)
    if version >= _GROUPS_FROM:
        position = skip_tags(body, position)
    return OffsetFetchGroup(group_id, topics, member_id, member_epoch), items, position


def _read_topics(
    version: int, body: memoryview, position: int, items: int
) -> tuple[list[OffsetFetchTopic] | None, int, int]:
    flexible = version >= _FLEXIBLE_FROM
    read_text = read_compact_string if flexible else read_string
    if flexible:
        size, position = read_unsigned(body, position)
        topic_count = size - 1
    else:
        (topic_count,) = INT32.unpack_from(body, position)
        position += INT32.size
    if topic_count < 0:
        if version < _ALL_FROM:
            raise DecodeError("the topics are null, which means all of them from version 2 on only")
        return None, items, position
    items = count_items(items, topic_count)
    topics: list[OffsetFetchTopic] = []
    for _ in range(topic_count):
        name, topic_id, position = read_topic(body, position, version >= _BY_ID_FROM, read_text)
        count, position = read_compact_count(body, position) if flexible else read_count(body, position)
        items = count_items(items, count)
        partitions = struct.unpack_from(f">{count}i", body, position)
        position += INT32.size * count
        if flexible:
            position = skip_tags(body, position)
        topics.append(OffsetFetchTopic(name, partitions, topic_id))
    return topics, items, position


def encode_response(version: int, response: OffsetFetchResponse) -> bytes:
    """The groups; before version 8 the only one."""
    out = bytearray(_NO_THROTTLE if version >= _THROTTLE_FROM else b"")
    if version >= _GROUPS_FROM:
        out += compact_count(len(response.groups))
        for group in response.groups:
            out += compact_string(group.group_id)
            _write_topics(version, out, group)
            out += INT16.pack(group.error)
            out += NO_TAGS
    else:
        (group,) = response.groups
        _write_topics(version, out, group)
        if version >= _ALL_FROM:
            out += INT16.pack(group.error)
    if version >= _FLEXIBLE_FROM:
        out += NO_TAGS
    return bytes(out)


def encode_error(version: int, request: OffsetFetchRequest, code: ErrorCode, message: str) -> bytes:
    """The code for every group and partition."""
    return encode_response(version, OffsetFetchResponse([refuse_fetch(each, code) for each in request.groups]))


def _write_topics(version: int, out: bytearray, group: OffsetFetchGroupResult) -> None:
    flexible = version >= _FLEXIBLE_FROM
    write_count = compact_count if flexible else INT32.pack
    write_text = compact_string if flexible else string
    # As in Kafka, versions that have the group's error have no partitions beside it.
    topics = () if version >= _ALL_FROM and group.error else group.topics
    out += write_count(len(topics))
    for topic in topics:
        out += (topic.topic_id or ZERO_UUID) if version >= _BY_ID_FROM else write_text(topic.name)
        out += write_count(len(topic.partitions))
        _write_partitions(version, out, topic)
        if flexible:
            out += NO_TAGS


def _write_partitions(version: int, out: bytearray, topic: OffsetFetchTopicResult) -> None:
    flexible = version >= _FLEXIBLE_FROM
    write_text = compact_string if flexible else string
    for each in topic.partitions:
        if not flexible and len(each.metadata) > _SURELY_FITS and len(each.metadata.encode()) > _LONGEST_STRING:
            each = OffsetFetchPartitionResult(each.partition, ErrorCode.OFFSET_METADATA_TOO_LARGE)
        if version >= _EPOCH_FROM:
            out += _OFFSET_AND_EPOCH.pack(each.partition, each.offset, each.leader_epoch)
        else:
            out += _OFFSET.pack(each.partition, each.offset)
        out += write_text(each.metadata)
        out += INT16.pack(each.error)
        if flexible:
            out += NO_TAGS
