"""Metadata (3), versions 0-13: see the handler of that name.

An empty list means all topics in version 0, null in later versions. Topics are requested by id from version 12 on (10
and 11 have the field, but a request that uses it, or omits the name, is INVALID_REQUEST). Version 4 added whether
missing topics may be created; for older clients they are.

    response   3+   throttle int32,
                    [node_id int32, host string, port int32, rack nullable string (1+)],
               2+   cluster_id nullable string,
               1+   controller_id int32,
                    [error int16, name string (12+ nullable), topic_id uuid (10+), is_internal bool (1+),
                        [error int16, partition int32, leader int32, leader_epoch int32 (7+), replicas [int32],
                            isr [int32], offline [int32] (5+)],
                        authorized_operations int32 (8+)],
               8-10 authorized_operations int32
               13+  error int16
               9+   flexible

The answer is coded by hand: every client requests it, and large clusters' answers would hold the event loop.
Source: Kafka's MetadataRequest.json, MetadataResponse.json.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.hot_fields import INT16, INT32, NO_TAGS, compact_count, compact_string, string
from barnabas.protocol.kafka.schema import BOOL, UUID, Array, Message, Sized, Struct, Versions, since
from barnabas.protocol.messages.topics.metadata import (
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from barnabas.protocol.messages.topics.topics import TopicReference
from barnabas.protocol.uuids import ZERO_UUID

_INTERNAL_FROM: Final = 1
_RACK_FROM: Final = 1
_CONTROLLER_FROM: Final = 1
_CLUSTER_ID_FROM: Final = 2
_THROTTLE_FROM: Final = 3
_OFFLINE_FROM: Final = 5
_LEADER_EPOCH_FROM: Final = 7
_OPERATIONS_FROM: Final = 8
_FLEXIBLE_FROM: Final = 9
_TOPIC_ID_FIELD_FROM: Final = 10
_CLUSTER_OPERATIONS_TO: Final = 10
_TOPIC_IDS_FROM: Final = 12
_ERROR_FROM: Final = 13

_PARTITION_V0 = struct.Struct(">hii")
_PARTITION_V7 = struct.Struct(">hiii")
_NO_THROTTLE: Final = INT32.pack(0)
_NULL_STRING: Final = INT16.pack(-1)


def _named(name: str | None, topic_id: bytes = ZERO_UUID) -> TopicReference:
    return TopicReference(name, topic_id)


REQUEST = Message(
    _FLEXIBLE_FROM,
    dict[str, Any],
    topics=Array(Struct(_named, topic_id=since(10, UUID), name=Sized("string", nullable_from=10)), nullable_from=1),
    allow_auto_creation=since(4, BOOL),
    include_cluster_operations=Versions(BOOL, 8, 10),
    include_topic_operations=since(8, BOOL),
)


def decode_request(version: int, body: memoryview) -> MetadataRequest:
    """Raises DecodeError. Topic ids in versions 10 and 11 are a refusal in the request: its answer names the topics."""
    fields = {"allow_auto_creation": True} | REQUEST.read(version, body)
    topics: list[TopicReference] | None = fields.pop("topics")
    names: list[str] | None = None
    ids: list[bytes] | None = None
    if topics is not None and (topics or version > 0):
        found = [each.topic_id for each in topics if each.topic_id != ZERO_UUID]
        if version < _TOPIC_IDS_FROM and (found or any(each.name is None for each in topics)):
            fields["refusal"] = f"Metadata version {version} takes names, no ids"
        elif found:
            ids = found
        if ids is None:
            names = [each.name or "" for each in topics]
    return MetadataRequest(names, topic_ids=ids, **fields)


def encode_response(version: int, response: MetadataResponse) -> bytes:
    """Return the body of an answer."""
    return _encode(version, response, ErrorCode.NONE)


def encode_error(version: int, request: MetadataRequest | None, code: ErrorCode, message: str) -> bytes:
    """The code for every named topic, and from version 13 on for the whole answer."""
    names = [] if request is None or request.topics is None else request.topics
    return _encode(version, MetadataResponse("", [], [TopicMetadata(name, code) for name in names]), code)


def _encode(version: int, response: MetadataResponse, code: ErrorCode) -> bytes:
    flexible = version >= _FLEXIBLE_FROM
    text, count = (compact_string, compact_count) if flexible else (string, INT32.pack)
    end = NO_TAGS if flexible else b""
    rack = (NO_TAGS if flexible else _NULL_STRING) if version >= _RACK_FROM else b""
    out = bytearray(_NO_THROTTLE if version >= _THROTTLE_FROM else b"")
    out += count(len(response.brokers))
    for broker in response.brokers:
        out += INT32.pack(broker.node_id) + text(broker.host) + INT32.pack(broker.port) + rack + end
    if version >= _CLUSTER_ID_FROM:
        null = NO_TAGS if flexible else _NULL_STRING
        out += text(response.cluster_id) if response.cluster_id else null
    if version >= _CONTROLLER_FROM:
        out += INT32.pack(response.controller_id)
    out += count(len(response.topics))
    partition = _partition_writer(version)
    for topic in response.topics:
        out += INT16.pack(topic.error)
        # null for an id without a name; the name "" was asked for
        is_null = not topic.name and topic.topic_id != ZERO_UUID and version >= _TOPIC_IDS_FROM
        out += NO_TAGS if is_null else text(topic.name)
        if version >= _TOPIC_ID_FIELD_FROM:
            out += topic.topic_id
        if version >= _INTERNAL_FROM:
            out.append(topic.is_internal)
        out += count(len(topic.partitions))
        for each in topic.partitions:
            out += partition(each)
        if version >= _OPERATIONS_FROM:
            out += INT32.pack(topic.authorized_operations)
        out += end
    if _OPERATIONS_FROM <= version <= _CLUSTER_OPERATIONS_TO:
        out += INT32.pack(response.authorized_operations)
    if version >= _ERROR_FROM:
        out += INT16.pack(code)
    out += end
    return bytes(out)


def _partition_writer(version: int) -> Callable[[PartitionMetadata], bytes]:
    """Return a writer of partitions. Partitions share few distinct node lists, so each list is packed once."""
    flexible = version >= _FLEXIBLE_FROM
    count = compact_count if flexible else INT32.pack
    packed: dict[tuple[int, ...], bytes] = {}

    def nodes(ids: tuple[int, ...]) -> bytes:
        found = packed.get(ids)
        if found is None:
            found = packed[ids] = count(len(ids)) + struct.pack(f">{len(ids)}i", *ids)
        return found

    def write(partition: PartitionMetadata) -> bytes:
        lists = nodes(partition.replicas) + nodes(partition.isr)
        if version >= _OFFLINE_FROM:
            lists += nodes(partition.offline)
        if flexible:
            lists += NO_TAGS
        if version >= _LEADER_EPOCH_FROM:
            fixed = _PARTITION_V7.pack(partition.error, partition.partition, partition.leader, partition.leader_epoch)
        else:
            fixed = _PARTITION_V0.pack(partition.error, partition.partition, partition.leader)
        return fixed + lists

    return write
