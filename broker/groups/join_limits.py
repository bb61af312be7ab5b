"""The limits of a JoinGroup and a ConsumerGroupHeartbeat: the bounds of the session timeout, how long texts may be.

The texts go into the group's records, and flexible versions of the requests could carry more than those: strings have
an int16 size there, or Kafka reads none above it, and could not load the partition. A member id is a client's or an
instance's id with a dash and a uuid behind it. Kafka answers a join whose texts are too long UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.classic_fields import MAX_STRING_BYTES

if TYPE_CHECKING:
    from barnabas.broker.groups.classic.core import GroupSettings
    from barnabas.broker.groups.classic.joining import JoiningClient
    from barnabas.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
    from barnabas.protocol.messages.groups.join_group import JoinGroupRequest

UUID_CHARACTERS: Final = 37
"""What a member id has behind the client's or the instance's id."""

MAX_ID_BYTES: Final = MAX_STRING_BYTES - UUID_CHARACTERS


def ensure_session_timeout(request: JoinGroupRequest, settings: GroupSettings) -> None:
    """Raises BrokerError INVALID_SESSION_TIMEOUT."""
    lowest, highest = settings.min_session_timeout_ms, settings.max_session_timeout_ms
    if not lowest <= request.session_timeout_ms <= highest:
        raise BrokerError(
            ErrorCode.INVALID_SESSION_TIMEOUT,
            f"a session timeout of {request.session_timeout_ms} ms is not between group.min.session.timeout.ms "
            f"({lowest}) and group.max.session.timeout.ms ({highest})",
        )


def ensure_storable(request: JoinGroupRequest, client: JoiningClient) -> None:
    """What goes into the group's record has to fit its strings. Raises BrokerError."""
    if _too_long(request.group_id):
        raise BrokerError(ErrorCode.INVALID_GROUP_ID, f"a group id is longer than {MAX_ID_BYTES} bytes")
    names = (request.protocol_type, request.group_instance_id or "", client.client_id)
    if any(map(_too_long, names)) or any(_too_long(protocol.name) for protocol in request.protocols):
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            f"a client id, an instance id or the name of a protocol is longer than {MAX_ID_BYTES} bytes",
        )


def ensure_short(request: ConsumerGroupHeartbeatRequest) -> None:
    """What goes into a consumer group's records has to fit the strings that Kafka reads. Raises BrokerError."""
    if _too_long(request.group_id):
        raise BrokerError(ErrorCode.INVALID_GROUP_ID, f"a group id is longer than {MAX_ID_BYTES} bytes")
    texts = (request.member_id, request.instance_id, request.rack_id, request.topic_regex, *(request.topic_names or ()))
    if any(text is not None and _too_long(text) for text in texts):
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            "a member id, an instance id, a rack id, the name of a topic or an expression is longer than "
            f"{MAX_ID_BYTES} bytes",
        )


def _too_long(text: str) -> bool:
    return len(text) > MAX_ID_BYTES or len(text.encode("utf-8")) > MAX_ID_BYTES
