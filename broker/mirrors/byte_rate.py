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

    def seconds_after(self, size_bytes: int, begun: float) -> float:
        """Count `size_bytes` that were received since `begun`; return how long to wait before the next request.

        At most 0: not at all.
        """
        if self._bytes_per_second is None:
            return 0.0
        self._free_at = max(begun, self._free_at) + size_bytes / self._bytes_per_second
        return self._free_at - self._monotonic()
