"""FindCoordinator (key 10): which broker serves a group or a transactional id. A single node serves all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode

GROUP_KEY = 0
TRANSACTION_KEY = 1
SHARE_KEY = 2

NO_NODE = -1


@dataclass(slots=True)
class FindCoordinatorRequest:
    """`key_type`: 0 the keys are group ids, 1 transactional ids, 2 `group:topic id:partition` if `takes_share_keys`."""

    keys: Sequence[str]
    key_type: int = GROUP_KEY
    takes_share_keys: bool = True


@dataclass(slots=True)
class CoordinatorResult:
    """The address of a key's coordinator, or an error without one (-1, "", -1)."""

    key: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    node_id: int = NO_NODE
    host: str = ""
    port: int = -1


@dataclass(slots=True)
class FindCoordinatorResponse:
    """In the order of the request."""

    coordinators: list[CoordinatorResult]
