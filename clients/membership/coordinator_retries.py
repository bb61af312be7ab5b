"""Retries of a member's requests to its coordinator: retriable errors, pauses, and final errors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import (
    BrokerConnectionError,
    BrokerTimeoutError,
    ClientError,
    ProtocolViolationError,
    RefusedError,
)
from barnabas.clients.network.backoff import backoff_s
from barnabas.protocol.errors import RETRIABLE_CODES, ErrorCode

logger = logging.getLogger(__name__)


class CoordinatorRetries:
    """Owned by one membership. `on_trouble` is called each time requests have failed for another api_timeout_ms."""

    def __init__(self, config: ClientConfig, group: str, on_trouble: Callable[[ClientError], None]) -> None:
        self._config = config
        self._group = group
        self._on_trouble = on_trouble
        self._failing_since: float | None = None
        self._failures = 0

    def reached(self) -> None:
        """Reset the failures after an answer of the coordinator."""
        self._failing_since = None
        self._failures = 0

    async def pause(self, error: ClientError) -> None:
        """Wait before the next attempt. Raises `error` if it is not retriable."""
        if isinstance(error, ProtocolViolationError):
            raise error
        if not isinstance(error, BrokerConnectionError | BrokerTimeoutError | RefusedError):
            raise error
        if isinstance(error, RefusedError) and not error.retriable:
            raise error
        now = asyncio.get_running_loop().time()
        self._failures += 1
        if self._failing_since is None:
            self._failing_since = now
        elif now - self._failing_since > self._config.api_timeout_ms / 1000:
            self._failing_since = now
            self._on_trouble(error)
        logger.debug("retrying the group's coordinator, group=%s: %s", self._group, error)
        await asyncio.sleep(backoff_s(self._failures, self._config.retry_backoff_ms, self._config.retry_backoff_max_ms))

    async def pause_unless_final(self, code: ErrorCode) -> None:
        """Wait before the next attempt after this code. Raises RefusedError if the code is final."""
        error = RefusedError(code, f"group {self._group!r}: {_SENTENCES.get(code, 'the broker gave no reason')}")
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            await asyncio.sleep(self._config.retry_backoff_ms / 1000)
        elif code in RETRIABLE_CODES:
            await self.pause(error)
        else:
            raise error


_SENTENCES: Final = {
    ErrorCode.FENCED_INSTANCE_ID: "another consumer has taken this one's group_instance_id",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "its members have no assignor in common with this one; see assignors",
    ErrorCode.INVALID_SESSION_TIMEOUT: "session_timeout_ms is outside of the broker's group.min.session.timeout.ms "
    "and group.max.session.timeout.ms",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "it has as many members as the broker's group.max.size allows",
    ErrorCode.INVALID_GROUP_ID: "the broker does not accept this name",
    ErrorCode.NOT_COORDINATOR: "the broker is stopping, or does not coordinate it",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "its coordinator is not available",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "the broker is still loading it",
}
