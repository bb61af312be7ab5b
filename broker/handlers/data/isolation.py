"""Check of the isolation level in Fetch and ListOffsets."""

from __future__ import annotations

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.data.fetch import READ_COMMITTED, READ_UNCOMMITTED


def ensure_isolation(isolation: int) -> None:
    """Raise BrokerError UNKNOWN_SERVER_ERROR, as Kafka does (IllegalArgumentException there), for an unknown level."""
    if isolation not in (READ_UNCOMMITTED, READ_COMMITTED):
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"unknown isolation level {isolation}, expected 0 or 1")
