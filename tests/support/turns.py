"""Handlers called without a dispatcher: on a busy machine even a small request may take more than one turn."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def answer_of(outcome: T | Coroutine[Any, Any, T]) -> T:
    """Return what a handler answers, after the turns of the event loop that it still takes."""
    return asyncio.run(outcome) if isinstance(outcome, Coroutine) else outcome
