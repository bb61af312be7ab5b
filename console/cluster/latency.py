"""How long requests took, from the broker's histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.protocol.messages.cluster.explain_start import ApiLatency, ExplainStartResponse


class Latency(NamedTuple):
    """The requests of one API in some time. `p50_s`, `p99_s`: upper bounds, None if above the histogram's last one."""

    api: str
    requests: int
    errors: int
    mean_s: float
    p50_s: float | None
    p99_s: float | None


def latencies_between(before: ExplainStartResponse | None, after: ExplainStartResponse) -> list[Latency]:
    """The requests that were answered between two answers of a broker, since its start without the first, most first.

    A restart between the two begins anew.
    """
    same_run = before is not None and before.began_ms == after.began_ms
    earlier = {each.api: each for each in before.latencies} if before is not None and same_run else {}
    found = [_between(earlier.get(each.api), each, after.latency_bounds_seconds) for each in after.latencies]
    return sorted((each for each in found if each.requests), key=lambda each: -each.requests)


def _between(before: ApiLatency | None, after: ApiLatency, bounds: Sequence[float]) -> Latency:
    counts, errors, seconds = list(after.counts), after.errors, after.sum_seconds
    if before is not None:
        counts = [new - old for new, old in zip(counts, before.counts, strict=True)]
        errors, seconds = errors - before.errors, seconds - before.sum_seconds
    requests = sum(counts)
    mean = seconds / requests if requests else 0.0
    return Latency(after.api, requests, errors, mean, _quantile(counts, bounds, 0.5), _quantile(counts, bounds, 0.99))


def _quantile(counts: Sequence[int], bounds: Sequence[float], share: float) -> float | None:
    """The bound that at least this share of the requests does not exceed."""
    wanted, seen = share * sum(counts), 0
    for count, bound in zip(counts, bounds, strict=False):
        seen += count
        if seen >= wanted:
            return bound
    return None
