"""How a plan counts created and deleted partitions against a client's quota."""

from __future__ import annotations

from collections.abc import Callable

TakeQuota = Callable[[int], None]
"""Counts new or deleted partitions. Raises BrokerError THROTTLING_QUOTA_EXCEEDED."""


def take_freely(partitions: int) -> None:
    """Count nothing: the client has no quota."""
