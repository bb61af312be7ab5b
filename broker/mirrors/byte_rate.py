"""A limit of bytes per second for all fetches of a mirror."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class ByteRate:
    """Says how long to wait after a number of bytes. `bytes_per_second` None is no limit."""

    def __init__(self, bytes_per_second: int | None, monotonic: Callable[[], float]) -> None:
        self._bytes_per_second = bytes_per_second
        self._monotonic = monotonic
        self._free_at = 0.0

    def seconds_after(self, size_bytes: int) -> float:
        """Count `size_bytes` that were received; return the seconds until the next request may be sent."""
        if self._bytes_per_second is None:
            return 0.0
        now = self._monotonic()
        self._free_at = max(now, self._free_at) + size_bytes / self._bytes_per_second
        return self._free_at - now
