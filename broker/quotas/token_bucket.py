"""Token bucket of controller mutations (KIP-599): a mutation takes one token per partition, the rate refills them.

The bucket starts full with the mutations of all windows, and may become negative by one request. Source: Kafka's
TokenBucket, ControllerMutationQuotaManager.
"""

from __future__ import annotations

import math

from barnabas.broker.quotas.rate import FOREVER_MS, SECOND_MS, WindowSizes


class TokenBucket:
    """The tokens of one client. Times are ms of one clock that never goes backwards."""

    __slots__ = ("_tokens", "_updated_ms", "_windows")

    def __init__(self, windows: WindowSizes) -> None:
        self._windows = windows
        self._tokens = math.inf
        """Cut to the burst at the first use: the bucket is full, whatever its rate will be."""
        self._updated_ms = 0

    def record(self, tokens: float, per_second: float, now_ms: int) -> None:
        """Take tokens, however few there are."""
        self._refill(per_second, now_ms)
        self._tokens -= tokens

    def throttle_ms(self, per_second: float, now_ms: int) -> int:
        """Return the time after which the bucket is not negative; 0 if it is not."""
        self._refill(per_second, now_ms)
        if not self._tokens < 0:
            return 0
        if per_second <= 0:
            return FOREVER_MS
        return math.floor(min(-self._tokens / per_second * SECOND_MS, FOREVER_MS) + 0.5)

    def is_full(self, per_second: float, now_ms: int) -> bool:
        """Return whether no mutation counts any more: a new bucket would be equal."""
        self._refill(per_second, now_ms)
        return self._tokens >= self._burst(per_second)

    def _refill(self, per_second: float, now_ms: int) -> None:
        refilled = self._tokens + per_second * (now_ms - self._updated_ms) / SECOND_MS
        self._tokens = min(self._burst(per_second), refilled)
        self._updated_ms = now_ms

    def _burst(self, per_second: float) -> float:
        return self._windows.samples * self._windows.sample_seconds * per_second
