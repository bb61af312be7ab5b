"""The subscriptions of client metrics in the metadata image, and what they ask of one client.

A client's subscription is the sum of those that match it: all of their metrics, at the shortest of their intervals.
Stored values that do not parse (another program's) leave their subscription out. Source: Kafka's ClientMetricsManager.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final, NamedTuple

from barnabas.broker.client_metrics.configs import parse_match
from barnabas.config.client_metrics_configs import (
    CLIENT_METRICS_CONFIGS,
    DEFAULT_INTERVAL_MS,
    INTERVAL_MS,
    MATCH,
    METRICS,
)
from barnabas.config.property import BadValueError
from barnabas.config.regex import MAX_LENGTH, Regex
from barnabas.protocol.crc32c import crc32c
from barnabas.protocol.errors import BrokerError

logger = logging.getLogger(__name__)

ALL: Final = "*"
"""Stands for all metrics."""


class Subscription(NamedTuple):
    """One stored subscription."""

    metrics: tuple[str, ...]
    interval_ms: int
    match: Mapping[str, str]

    def matches(self, client: Mapping[str, str | None]) -> bool:
        """Return whether the client's properties match all expressions."""
        return all(
            (value := client.get(name)) is not None and Regex(expression, max_length=MAX_LENGTH).matches(value)
            for name, expression in self.match.items()
        )


class Wanted(NamedTuple):
    """What one client shall push."""

    id: int
    metrics: tuple[str, ...]
    interval_ms: int


def read_subscription(name: str, texts: Mapping[str, str]) -> Subscription | None:
    """Return a stored subscription; None, with a warning, for one that does not parse."""
    try:
        values = {key: known.parse(texts[key]) for key, known in CLIENT_METRICS_CONFIGS.items() if key in texts}
        match, metrics, interval = values.get(MATCH, ()), values.get(METRICS, ()), values.get(INTERVAL_MS)
        assert isinstance(match, tuple)
        assert isinstance(metrics, tuple)
        expressions = parse_match(match)
    except (BadValueError, BrokerError) as error:
        logger.warning("the subscription %s of client metrics is ignored: %s", name, error)
        return None
    return Subscription(metrics, interval if isinstance(interval, int) else DEFAULT_INTERVAL_MS, expressions)


def wanted_of(
    subscriptions: Mapping[str, Subscription], client: Mapping[str, str | None], instance_id: bytes
) -> Wanted:
    """Return the sum of the subscriptions that match a client."""
    interval_ms = DEFAULT_INTERVAL_MS
    metrics: set[str] = set()
    for subscription in subscriptions.values():
        if subscription.matches(client):
            metrics.update(subscription.metrics)
            interval_ms = min(interval_ms, subscription.interval_ms)
    if ALL in metrics:
        metrics = {ALL}
    names = tuple(sorted(metrics))
    checksum = crc32c(f"[{', '.join(names)}]{interval_ms}".encode())
    halves = int.from_bytes(instance_id[:8], "big") ^ int.from_bytes(instance_id[8:], "big")
    number = (checksum ^ (halves >> 32) ^ halves) & 0xFFFF_FFFF
    return Wanted(number - (1 << 32) if number >> 31 else number, names, interval_ms)
