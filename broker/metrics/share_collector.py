"""Collector over share groups: sessions, records in flight, and what became of delivered ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from prometheus_client.core import Metric

from barnabas.broker.metrics.family import Family
from barnabas.broker.metrics.state import BrokerState
from barnabas.broker.probes import BrokerProbes

_LABELS = ("group", "topic", "partition")


class ShareCollector:
    """Share groups. The lag of a group is what kafka-share-groups.sh prints."""

    sessions = Family("barnabas_share_sessions", "gauge", "Share sessions: members that fetch.")
    in_flight = Family(
        "barnabas_share_records_in_flight",
        "gauge",
        "Offsets from a share partition's first record that is not done to the last one that was delivered.",
        labels=_LABELS,
    )
    acquired = Family("barnabas_share_records_acquired_total", "counter", "Deliveries of records to share groups.")
    acknowledged = Family(
        "barnabas_share_records_acknowledged_total", "counter", "Delivered records that were accepted."
    )
    released = Family(
        "barnabas_share_records_released_total",
        "counter",
        "Delivered records that were given back to be delivered again.",
    )
    archived = Family(
        "barnabas_share_records_archived_total",
        "counter",
        "Delivered records that were rejected, or given back after their last delivery.",
    )
    lock_timeouts = Family(
        "barnabas_share_lock_timeouts_total", "counter", "Delivered records of which the lock ran out."
    )
    families: ClassVar = (sessions, in_flight, acquired, acknowledged, released, archived, lock_timeouts)

    def __init__(self, probes: BrokerProbes, state: BrokerState) -> None:
        self._probe = probes.share
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """All families, from the counters and states as they are now."""
        shares, probe = self._state.share_partitions, self._probe
        yield self.sessions.render([((), 0 if shares is None else len(shares.sessions))])
        yield self.in_flight.render(
            [
                (
                    (each.key.group_id, each.partition.log.topic_partition.topic, str(each.key.partition)),
                    each.state.window.in_flight,
                )
                for each in (() if shares is None else shares)
            ]
        )
        for family, value in (
            (self.acquired, probe.acquired),
            (self.acknowledged, probe.acknowledged),
            (self.released, probe.released),
            (self.archived, probe.archived),
            (self.lock_timeouts, probe.lock_timeouts),
        ):
            yield family.render([((), value)])
