"""Writes throttle_time_ms into encoded responses, so that no codec has a parameter for it.

The field is the first of the body of nearly every response. The others:

    Produce                   after the responses, so last but for tagged fields, which Barnabas never writes
    delegation tokens         likewise
    OffsetDelete              after the error
    ApiVersions               after the array of APIs, whose entries have a fixed size

WriteTxnMarkers, DescribeQuorum, SaslHandshake, SaslAuthenticate, the APIs of share partitions' states (83 to 87) and
the first versions of some other APIs have none.
Source: Kafka's message definitions (ThrottleTimeMs).
"""

from __future__ import annotations

import struct
from typing import Final

from barnabas.protocol.kafka.apis import MAX_INT32
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.varint import read_unsigned

_FRAME_HEADER_BYTES: Final = 8
"""Size and correlation id."""

_FIRST_FROM: Final[dict[int, int]] = {
    ApiKey.FETCH: 1,
    ApiKey.LIST_OFFSETS: 2,
    ApiKey.METADATA: 3,
    ApiKey.OFFSET_COMMIT: 3,
    ApiKey.OFFSET_FETCH: 3,
    ApiKey.FIND_COORDINATOR: 1,
    ApiKey.JOIN_GROUP: 2,
    ApiKey.HEARTBEAT: 1,
    ApiKey.LEAVE_GROUP: 1,
    ApiKey.SYNC_GROUP: 1,
    ApiKey.DESCRIBE_GROUPS: 1,
    ApiKey.LIST_GROUPS: 1,
    ApiKey.CREATE_TOPICS: 2,
    ApiKey.DELETE_TOPICS: 1,
    ApiKey.DELETE_RECORDS: 0,
    ApiKey.INIT_PRODUCER_ID: 0,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 2,
    ApiKey.ADD_PARTITIONS_TO_TXN: 0,
    ApiKey.ADD_OFFSETS_TO_TXN: 0,
    ApiKey.END_TXN: 0,
    ApiKey.TXN_OFFSET_COMMIT: 0,
    ApiKey.DESCRIBE_ACLS: 0,
    ApiKey.CREATE_ACLS: 0,
    ApiKey.DELETE_ACLS: 0,
    ApiKey.DESCRIBE_CONFIGS: 0,
    ApiKey.ALTER_CONFIGS: 0,
    ApiKey.ALTER_REPLICA_LOG_DIRS: 0,
    ApiKey.DESCRIBE_LOG_DIRS: 0,
    ApiKey.CREATE_PARTITIONS: 0,
    ApiKey.DELETE_GROUPS: 0,
    ApiKey.ELECT_LEADERS: 0,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 0,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: 0,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: 0,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: 0,
    ApiKey.PUSH_TELEMETRY: 0,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: 0,
    ApiKey.ALTER_CLIENT_QUOTAS: 0,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: 0,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: 0,
    ApiKey.UPDATE_FEATURES: 0,
    ApiKey.DESCRIBE_CLUSTER: 0,
    ApiKey.DESCRIBE_PRODUCERS: 0,
    ApiKey.DESCRIBE_TRANSACTIONS: 0,
    ApiKey.LIST_TRANSACTIONS: 0,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 0,
    ApiKey.CONSUMER_GROUP_DESCRIBE: 0,
    ApiKey.LIST_CONFIG_RESOURCES: 0,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: 0,
    ApiKey.SHARE_GROUP_HEARTBEAT: 0,
    ApiKey.SHARE_GROUP_DESCRIBE: 0,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: 0,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: 0,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: 0,
    ApiKey.SHARE_FETCH: 0,
    ApiKey.SHARE_ACKNOWLEDGE: 0,
    ApiKey.STREAMS_GROUP_HEARTBEAT: 0,
    ApiKey.STREAMS_GROUP_DESCRIBE: 0,
    ApiKey.MIRRORS: 0,
    ApiKey.STANDBY: 0,
    ApiKey.EXPLAIN_GROUP: 0,
    ApiKey.EXPLAIN_START: 0,
    ApiKey.EXPLAIN_TOPIC: 0,
    ApiKey.CLEANING: 0,
}
"""APIs whose first field it is, with the first version that has it."""

_LAST: Final = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    }
)
_INT32: Final = struct.Struct(">i")
_API_ENTRY: Final = struct.Struct(">hhh")
_ERROR_BYTES: Final = 2
_API_VERSIONS_FLEXIBLE_FROM: Final = 3


def throttle_position(api: int, version: int, frame: bytes, *, is_flexible: bool) -> int | None:
    """Return the position of throttle_time_ms in a response frame, None if this version has no such field.

    `frame` begins with its size and, for an API with records, ends before them. `is_flexible`: of the response header.
    """
    body = _FRAME_HEADER_BYTES + is_flexible
    first_from = _FIRST_FROM.get(api)
    if first_from is not None:
        return body if version >= first_from else None
    if api in _LAST:
        return len(frame) - _INT32.size - is_flexible
    if api == ApiKey.OFFSET_DELETE:
        return body + _ERROR_BYTES
    if api == ApiKey.API_VERSIONS and version > 0:
        return _after_api_versions(version, frame)
    return None


def with_throttle(api: int, version: int, frame: bytes, throttle_ms: int, *, is_flexible: bool) -> bytes:
    """Return a response frame with throttle_time_ms; the frame itself where its version has no such field."""
    position = throttle_position(api, version, frame, is_flexible=is_flexible)
    if position is None:
        return frame
    patched = bytearray(frame)
    _INT32.pack_into(patched, position, min(throttle_ms, MAX_INT32))
    return bytes(patched)


def _after_api_versions(version: int, frame: bytes) -> int:
    """Return the position after the array of APIs. The header of this response is never flexible."""
    start = _FRAME_HEADER_BYTES + _ERROR_BYTES
    if version < _API_VERSIONS_FLEXIBLE_FROM:
        (count,) = _INT32.unpack_from(frame, start)
        return start + _INT32.size + int(count) * _API_ENTRY.size
    length, position = read_unsigned(memoryview(frame), start)
    return position + (length - 1) * (_API_ENTRY.size + 1)  # each entry ends with its tagged fields, which are empty
