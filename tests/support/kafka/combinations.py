"""Combinations of Kafka versions with other parameters: each value at least once, or with a variable all of them.

`make interop` has to end within 45 minutes. A release runs all: BARNABAS_INTEROP_COMPLETE=1 make interop.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeVar

NEWEST: Final = "4.3.0"
OLDEST: Final = "3.9.1"
COMPLETE_VARIABLE: Final = "BARNABAS_INTEROP_COMPLETE"

T = TypeVar("T")


def combinations(complete: Sequence[T], usual: Sequence[T]) -> Sequence[T]:
    """Return `complete` if the environment asks for it, else `usual`, which must be a part of it."""
    assert set(usual) <= set(complete)
    return complete if os.environ.get(COMPLETE_VARIABLE) == "1" else usual
