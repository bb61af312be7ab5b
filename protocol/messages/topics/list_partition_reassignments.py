"""ListPartitionReassignments (key 46): partitions that are moving between nodes, of which there is one here."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class ListPartitionReassignmentsRequest:
    """Which partitions are asked for does not matter: none is ever reassigned."""


@dataclass(slots=True)
class ListPartitionReassignmentsResponse:
    """No partition is being reassigned."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
