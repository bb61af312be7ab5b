"""FindCoordinator (10), versions 1-6: the broker that serves a group or a transactional id.

From version 4 on a request has several keys; before that exactly one.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.fields import ERROR
from barnabas.protocol.kafka.schema import (
    INT8,
    INT32,
    NULLABLE_STRING,
    STRING,
    Array,
    Computed,
    Message,
    rows,
    since,
    until,
)
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.find_coordinator import (
    CoordinatorResult,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)


def _only_key(request: FindCoordinatorRequest) -> str:
    (key,) = request.keys
    return key


def _found(coordinators: list[CoordinatorResult] | None = None, **only: Any) -> FindCoordinatorResponse:
    return FindCoordinatorResponse([CoordinatorResult(key="", **only)] if coordinators is None else coordinators)


FIND_COORDINATOR: Final = ClientApi(
    ApiKey.FIND_COORDINATOR,
    1,
    6,
    Message(3, key=until(3, Computed(STRING, _only_key)), key_type=INT8, keys=since(4, Array(STRING))),
    Message(
        3,
        _found,
        _throttle_ms=INT32,
        error=until(3, ERROR),
        message=until(3, NULLABLE_STRING),
        node_id=until(3, INT32),
        host=until(3, STRING),
        port=until(3, INT32),
        coordinators=since(
            4,
            rows(
                CoordinatorResult,
                key=STRING,
                node_id=INT32,
                host=STRING,
                port=INT32,
                error=ERROR,
                message=NULLABLE_STRING,
            ),
        ),
    ),
)
"""Writes a FindCoordinatorRequest, reads a FindCoordinatorResponse; before version 4 its result has an empty key."""
