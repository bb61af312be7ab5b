"""Collector over this broker's standby: whether it is in time, and what it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from prometheus_client.core import Metric

from barnabas.broker.metrics.family import Family
from barnabas.broker.metrics.state import BrokerState


class StandbyCollector:
    """The standby of this broker. No samples before one has fetched, unless standby.min.acks is 1."""

    in_time = Family(
        "barnabas_standby_in_time",
        "gauge",
        "1 while a standby has fetched within replica.lag.time.max.ms, else 0. With standby.min.acks=1, acks=all is "
        "refused at 0.",
    )
    since_fetch = Family(
        "barnabas_standby_seconds_since_fetch", "gauge", "Time since the last fetch of the standby. None before it."
    )
    lag_records = Family(
        "barnabas_standby_lag_records",
        "gauge",
        "Offsets of all partitions that the standby does not have, and consumers do not see. Only with "
        "standby.min.acks=1.",
    )
    families: ClassVar = (in_time, since_fetch, lag_records)

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """All families, as the standby's last fetch has left them."""
        replication = self._state.replication
        seconds = None if replication is None else replication.seconds_since_fetch
        is_required = replication is not None and replication.is_required
        is_shown = replication is not None and (is_required or seconds is not None)
        yield self.in_time.render([((), replication.is_in_time)] if replication is not None and is_shown else [])
        yield self.since_fetch.render([] if seconds is None else [((), seconds)])
        yield self.lag_records.render(
            [((), replication.lag_records)] if replication is not None and is_required else []
        )
