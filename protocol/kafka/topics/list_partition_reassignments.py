"""ListPartitionReassignments (46), version 0. The answer never has a row: see the handler of that name."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.topics.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

_API: Final = "list_partition_reassignments"


def decode_request(version: int, body: memoryview) -> ListPartitionReassignmentsRequest:
    """Raises DecodeError."""
    entities.read_request(_API, version, body)
    return ListPartitionReassignmentsRequest()


def encode_response(version: int, response: ListPartitionReassignmentsResponse) -> bytes:
    """No rows."""
    return _encode(version, ErrorCode.NONE, None)


def encode_error(version: int, request: ListPartitionReassignmentsRequest, code: ErrorCode, message: str) -> bytes:
    """A refusal."""
    return _encode(version, code, entities.sentence(message))


def _encode(version: int, code: ErrorCode, message: str | None) -> bytes:
    schema = entities.response_schema(_API, version)
    return entities.write(
        schema.ListPartitionReassignmentsResponse(
            throttle_time=entities.NO_THROTTLE, error_code=code, error_message=message, topics=()
        )
    )
