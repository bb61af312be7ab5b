"""Limits of the texts in a JoinGroup, and in the heartbeats of consumer groups, share groups and streams groups.

The texts go into the group's records, where strings have an int16 size, or where Kafka reads no longer ones. Flexible
versions of the requests can carry longer texts, and with one of them in its log Kafka could not load the partition. A
member id is a client id or an instance id, a dash and a uuid. Kafka answers UNKNOWN_SERVER_ERROR to a join whose texts
are too long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.wire.structures import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.broker.groups.client import JoiningClient
    from barnabas.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
    from barnabas.protocol.messages.groups.join_group import JoinGroupRequest
    from barnabas.protocol.messages.groups.share_group_heartbeat import ShareGroupHeartbeatRequest
    from barnabas.protocol.messages.groups.streams_group_heartbeat import StreamsGroupHeartbeatRequest

UUID_CHARACTERS: Final = 37
"""The dash and the uuid at the end of a member id."""

MAX_ID_BYTES: Final = 0x7FFF - UUID_CHARACTERS

MAX_CHOSEN_ID: Final = 36
"""Characters of a member id that a member of a share group or a streams group chooses: those of a uuid as text."""


def ensure_join_is_storable(request: JoinGroupRequest, client: JoiningClient) -> None:
    """Raise BrokerError INVALID_GROUP_ID or INVALID_REQUEST for a text that does not fit the group's record."""
    if _too_long(request.group_id):
        raise BrokerError(ErrorCode.INVALID_GROUP_ID, f"a group id is longer than {MAX_ID_BYTES} bytes")
    names = (request.protocol_type, request.group_instance_id or "", client.client_id)
    if any(map(_too_long, names)) or any(_too_long(protocol.name) for protocol in request.protocols):
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            f"a client id, an instance id or the name of a protocol is longer than {MAX_ID_BYTES} bytes",
        )


def ensure_heartbeat_is_storable(request: ConsumerGroupHeartbeatRequest) -> None:
    """Raise BrokerError INVALID_GROUP_ID or INVALID_REQUEST for a text longer than the strings that Kafka reads."""
    if _too_long(request.group_id):
        raise BrokerError(ErrorCode.INVALID_GROUP_ID, f"a group id is longer than {MAX_ID_BYTES} bytes")
    texts = (request.member_id, request.instance_id, request.rack_id, request.topic_regex, *(request.topic_names or ()))
    if any(text is not None and _too_long(text) for text in texts):
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            "a member id, an instance id, a rack id, the name of a topic or an expression is longer than "
            f"{MAX_ID_BYTES} bytes",
        )


def ensure_share_heartbeat_is_storable(request: ShareGroupHeartbeatRequest) -> None:
    """Raise BrokerError as `ensure_heartbeat_is_storable`."""
    if _too_long(request.group_id):
        raise BrokerError(ErrorCode.INVALID_GROUP_ID, f"a group id is longer than {MAX_ID_BYTES} bytes")
    texts = (request.member_id, request.rack_id or "", *(request.topic_names or ()))
    if any(map(_too_long, texts)):
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            f"a member id, a rack id or the name of a topic is longer than {MAX_ID_BYTES} bytes",
        )


def ensure_streams_heartbeat_is_storable(request: StreamsGroupHeartbeatRequest) -> None:
    """Raise BrokerError INVALID_GROUP_ID or INVALID_REQUEST for a text longer than the strings that Kafka reads."""
    if _too_long(request.group_id):
        raise BrokerError(ErrorCode.INVALID_GROUP_ID, f"a group id is longer than {MAX_ID_BYTES} bytes")
    texts = (
        request.member_id,
        request.rack_id,
        request.process_id,
        request.user_endpoint,
        request.client_tags,
        request.topology,
    )
    if any(map(_too_long, _texts(texts))):
        raise BrokerError(
            ErrorCode.INVALID_REQUEST, f"a text of the member or of its topology is longer than {MAX_ID_BYTES} bytes"
        )


def _texts(value: object) -> Iterator[str]:
    """Return the texts in nested sequences and structures."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, Struct):
        for name in value.wire_annotations:
            yield from _texts(getattr(value, name))


def _too_long(text: str) -> bool:
    return len(text) > MAX_ID_BYTES or len(text.encode("utf-8")) > MAX_ID_BYTES
