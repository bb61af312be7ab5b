"""Pauses between attempts: they double from the first one up to a longest one, with jitter.

The jitter keeps many clients from reconnecting to a restarted broker at the same instant.
"""

from __future__ import annotations

import random

JITTER = 0.2
_MAX_DOUBLINGS = 30


def backoff_s(attempt: int, first_ms: int, longest_ms: int) -> float:
    """Seconds to wait after `attempt` failed attempts (from 1 on), with 20 % of jitter."""
    pause_ms = min(first_ms << min(attempt - 1, _MAX_DOUBLINGS), longest_ms)
    return pause_ms * random.uniform(1 - JITTER, 1 + JITTER) / 1000
