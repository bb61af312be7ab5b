"""Counters of quotas, as broker/probes.py has them for everything else."""

from __future__ import annotations


class QuotaProbe:
    """Responses with a throttle time, and the sum of these times, by the kind of quota."""

    __slots__ = ("throttle_seconds", "throttled_requests")

    def __init__(self) -> None:
        self.throttled_requests: dict[str, int] = {}
        self.throttle_seconds: dict[str, float] = {}

    def throttled(self, kind: str, seconds: float) -> None:
        """Count a request after which a connection was muted. Kinds are few and fixed: they become label values."""
        self.throttled_requests[kind] = self.throttled_requests.get(kind, 0) + 1
        self.throttle_seconds[kind] = self.throttle_seconds.get(kind, 0.0) + seconds
