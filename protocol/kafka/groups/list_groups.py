"""ListGroups (16), versions 0-5. Version 4 added states, 5 types, each with a filter."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import INT16, NO_THROTTLE, STRING, Array, Computed, Message, Struct, since
from barnabas.protocol.messages.groups.groups import ListGroupsRequest, ListGroupsResponse

_NAMES = Array(STRING, make=tuple)
REQUEST = Message(3, ListGroupsRequest, states=since(4, _NAMES), types=since(5, _NAMES))
_GROUP = Struct(
    group_id=STRING,
    protocol_type=STRING,
    state=since(4, STRING),
    # Kafka's brokers write the type in lower case; its tools print it with a capital.
    type=since(5, Computed(STRING, lambda group: group.group_type.lower())),
)
RESPONSE = Message(3, throttle_ms=since(1, NO_THROTTLE), error=INT16, groups=Array(_GROUP))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: ListGroupsRequest, code: ErrorCode, message: str) -> bytes:
    """The code for the whole request."""
    return RESPONSE.write(version, ListGroupsResponse(error=code))
