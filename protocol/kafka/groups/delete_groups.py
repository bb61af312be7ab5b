"""DeleteGroups (42), versions 0-2, which say the same."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.groups.groups import DeleteGroupResult, DeleteGroupsRequest, DeleteGroupsResponse

_API: Final = "delete_groups"


def decode_request(version: int, body: memoryview) -> DeleteGroupsRequest:
    """Raises DecodeError."""
    return DeleteGroupsRequest(entities.read_request(_API, version, body).groups_names)


def encode_response(version: int, response: DeleteGroupsResponse) -> bytes:
    """A code for each group."""
    schema = entities.response_schema(_API, version)
    results = tuple(
        schema.DeletableGroupResult(group_id=each.group_id, error_code=each.error) for each in response.results
    )
    return entities.write(schema.DeleteGroupsResponse(throttle_time=entities.NO_THROTTLE, results=results))


def encode_error(version: int, request: DeleteGroupsRequest, code: ErrorCode, message: str) -> bytes:
    """The code for every group."""
    return encode_response(version, DeleteGroupsResponse([DeleteGroupResult(each, code) for each in request.group_ids]))
