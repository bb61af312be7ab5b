"""ListGroups (16), versions 0-5. Version 4 brought states, 5 types, each with a filter."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.groups.groups import ListGroupsRequest, ListGroupsResponse

_API: Final = "list_groups"


def decode_request(version: int, body: memoryview) -> ListGroupsRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    return ListGroupsRequest(getattr(request, "states_filter", ()), getattr(request, "types_filter", ()))


def encode_response(version: int, response: ListGroupsResponse) -> bytes:
    """A row for each group."""
    schema = entities.response_schema(_API, version)
    groups = tuple(
        entities.make(
            schema.ListedGroup,
            group_id=each.group_id,
            protocol_type=each.protocol_type,
            group_state=each.state,
            group_type=each.group_type.lower(),  # as Kafka's brokers write it; its tools print it with a capital
        )
        for each in response.groups
    )
    return entities.write(
        entities.make(
            schema.ListGroupsResponse, throttle_time=entities.NO_THROTTLE, error_code=response.error, groups=groups
        )
    )


def encode_error(version: int, request: ListGroupsRequest, code: ErrorCode, message: str) -> bytes:
    """The code of the whole."""
    return encode_response(version, ListGroupsResponse(error=code))
