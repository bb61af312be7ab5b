"""Value of a GroupMetadata record: a classic group with its members after its last completed rebalance.

    int16 version | protocol type string | generation int32 | protocol, leader nullable string |
    current state timestamp int64 (from 2) | members array

    member := member id string | group instance id nullable string (from 3) | client id, client host string |
              rebalance timeout int32 (from 1) | session timeout int32 | subscription bytes | assignment bytes

Version 4 is flexible: compact strings, bytes and array, and tagged fields after each member and at the end. Kafka 3.7
to 4.3 write version 3 and read 0 to 4. Subscription and assignment are the clients' bytes. Source: Kafka's
GroupMetadataValue.json, GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.groups.classic_fields import (
    read_array_length,
    read_bytes,
    read_nullable_string,
    read_string,
    write_bytes,
    write_nullable_string,
    write_string,
)
from barnabas.protocol.primitives import Reader, Writer

VERSION: Final = 3
"""The version that is written."""

NO_TIMESTAMP: Final = -1

_NEWEST: Final = 4
_REBALANCE_TIMEOUT_FROM: Final = 1
_STATE_TIMESTAMP_FROM: Final = 2
_INSTANCE_FROM: Final = 3
_FLEXIBLE_FROM: Final = 4


class MemberMetadata(NamedTuple):
    """One member. Timeouts in ms; version 0 has one timeout for both."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupMetadataValue(NamedTuple):
    """A group. `protocol` and `leader` are None without members. `current_state_timestamp` in ms, -1 if unknown."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp: int = NO_TIMESTAMP
    members: Sequence[MemberMetadata] = ()


def encode_group_metadata(value: GroupMetadataValue, version: int = VERSION) -> bytes:
    """Encode without fields that `version` lacks. Raises ValueError for a string above 32,767 bytes."""
    if not 0 <= version <= _NEWEST:
        raise ValueError(f"there is no version {version} of group metadata")
    flexible = version >= _FLEXIBLE_FROM
    writer = Writer().int16(version)
    _put_string(writer, value.protocol_type, flexible)
    writer.int32(value.generation)
    _put_nullable(writer, value.protocol, flexible)
    _put_nullable(writer, value.leader, flexible)
    if version >= _STATE_TIMESTAMP_FROM:
        writer.int64(value.current_state_timestamp)
    if flexible:
        writer.compact_array_length(len(value.members))
    else:
        writer.int32(len(value.members))
    for member in value.members:
        _put_member(writer, member, version)
    if flexible:
        writer.tagged_fields()
    return writer.to_bytes()


def decode_group_metadata(data: bytes) -> GroupMetadataValue:
    """Decode a value of any version. Raises DecodeError."""
    reader = Reader(data)
    version = reader.int16()
    if not 0 <= version <= _NEWEST:
        raise DecodeError(f"version {version} of group metadata is not 0 to {_NEWEST}")
    flexible = version >= _FLEXIBLE_FROM
    protocol_type = _get_string(reader, flexible)
    generation = reader.int32()
    protocol = _get_nullable(reader, flexible)
    leader = _get_nullable(reader, flexible)
    state_timestamp = reader.int64() if version >= _STATE_TIMESTAMP_FROM else NO_TIMESTAMP
    count = reader.compact_array_length() if flexible else read_array_length(reader)
    members = tuple([_get_member(reader, version) for _ in range(count)])
    if flexible:
        reader.tagged_fields()
    reader.ensure_end()
    return GroupMetadataValue(protocol_type, generation, protocol, leader, state_timestamp, members)


def _put_member(writer: Writer, member: MemberMetadata, version: int) -> None:
    flexible = version >= _FLEXIBLE_FROM
    _put_string(writer, member.member_id, flexible)
    if version >= _INSTANCE_FROM:
        _put_nullable(writer, member.group_instance_id, flexible)
    _put_string(writer, member.client_id, flexible)
    _put_string(writer, member.client_host, flexible)
    if version >= _REBALANCE_TIMEOUT_FROM:
        writer.int32(member.rebalance_timeout_ms)
    writer.int32(member.session_timeout_ms)
    for value in (member.subscription, member.assignment):
        if flexible:
            writer.compact_bytes(value)
        else:
            write_bytes(writer, value)
    if flexible:
        writer.tagged_fields()


def _get_member(reader: Reader, version: int) -> MemberMetadata:
    flexible = version >= _FLEXIBLE_FROM
    member_id = _get_string(reader, flexible)
    instance_id = _get_nullable(reader, flexible) if version >= _INSTANCE_FROM else None
    client_id = _get_string(reader, flexible)
    client_host = _get_string(reader, flexible)
    rebalance_timeout_ms = reader.int32() if version >= _REBALANCE_TIMEOUT_FROM else None
    session_timeout_ms = reader.int32()
    if rebalance_timeout_ms is None:
        rebalance_timeout_ms = session_timeout_ms
    subscription = reader.compact_bytes() if flexible else read_bytes(reader)
    assignment = reader.compact_bytes() if flexible else read_bytes(reader)
    if flexible:
        reader.tagged_fields()
    return MemberMetadata(
        member_id,
        instance_id,
        client_id,
        client_host,
        rebalance_timeout_ms,
        session_timeout_ms,
        subscription,
        assignment,
    )


def _put_string(writer: Writer, value: str, flexible: bool) -> None:
    if flexible:
        writer.compact_string(value)
    else:
        write_string(writer, value)


def _put_nullable(writer: Writer, value: str | None, flexible: bool) -> None:
    if flexible:
        writer.compact_nullable_string(value)
    else:
        write_nullable_string(writer, value)


def _get_string(reader: Reader, flexible: bool) -> str:
    return reader.compact_string() if flexible else read_string(reader)


def _get_nullable(reader: Reader, flexible: bool) -> str | None:
    return reader.compact_nullable_string() if flexible else read_nullable_string(reader)
