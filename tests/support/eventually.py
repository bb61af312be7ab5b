"""Polling for conditions without an event, such as files of another process or a server's start."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_POLL_INTERVAL_S = 0.1


def eventually(read: Callable[[], T | None], *, what: str, timeout_s: float = 60.0) -> T:
    """Return the first true result of `read`; AssertionError after `timeout_s`. An empty collection is waited out."""
    deadline = time.monotonic() + timeout_s
    while True:
        result = read()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s:.0f} s: {what}")
        time.sleep(_POLL_INTERVAL_S)
