"""Pauses between attempts: doubling from a first one up to a longest one, with jitter.

The jitter keeps a crowd of clients from coming back to a restarted broker at the same instant.
"""

from __future__ import annotations

import random

JITTER = 0.2
_MAX_DOUBLINGS = 30


def backoff_s(attempt: int, first_ms: int, longest_ms: int) -> float:
    """Seconds to wait before attempt `attempt` + 1, when `attempt` (from 1 on) have failed; within 20 % of the rule."""
    pause_ms = min(first_ms << min(attempt - 1, _MAX_DOUBLINGS), longest_ms)
    return pause_ms * random.uniform(1 - JITTER, 1 + JITTER) / 1000
