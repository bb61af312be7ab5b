"""ListPartitionReassignments (key 46): partitions that move between nodes; a single node has none."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class ListPartitionReassignmentsRequest:
    """The requested partitions do not matter: none is ever reassigned."""


@dataclass(slots=True)
class ListPartitionReassignmentsResponse:
    """No partition is being reassigned."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
