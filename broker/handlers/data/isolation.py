"""The isolation levels that Fetch and ListOffsets know."""

from __future__ import annotations

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.data.fetch import READ_COMMITTED, READ_UNCOMMITTED


def ensure_isolation(isolation: int) -> None:
    """Raises BrokerError UNKNOWN_SERVER_ERROR, which Kafka makes of its IllegalArgumentException, for another one."""
    if isolation not in (READ_UNCOMMITTED, READ_COMMITTED):
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"isolation level {isolation} is none: 0 or 1")
