"""Metrics of mirrors, from statuses."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.metrics.mirror_collector import MirrorCollector
from barnabas.broker.metrics.state import BrokerState
from barnabas.broker.mirrors.status import MirrorState, MirrorStatus, PartitionCopyState, PartitionStatus

COPYING, CAUGHT_UP, FAILED = PartitionCopyState.COPYING, PartitionCopyState.CAUGHT_UP, PartitionCopyState.FAILED


class Statuses:
    """Two mirrors: one that copies three partitions, and one whose source cannot be reached."""

    def statuses(self) -> Mapping[str, MirrorStatus]:
        partitions = (
            PartitionStatus("orders", 0, COPYING, 5, 8, 3, 0.5, bytes_copied=100, lag_bytes=60),
            PartitionStatus("orders", 1, CAUGHT_UP, 8, 8, 0, 0.0, bytes_copied=11, lag_bytes=0),
            PartitionStatus("bills", 0, FAILED, 0, errors=4, error="no right to READ"),
        )
        return {
            "east": MirrorStatus("east", MirrorState.RUNNING, partitions=partitions),
            "west": MirrorStatus("west", MirrorState.RUNNING, "the source cannot be reached"),
        }


def samples(state: BrokerState) -> dict[tuple[str, ...], float]:
    """Return the samples by name and label values, without states that no partition has."""
    return {
        (each.name, *each.labels.values()): each.value
        for family in MirrorCollector(state).collect()
        for each in family.samples
        if each.value or "partitions" not in each.name
    }


def test_every_partition_whose_lag_is_known_has_one_and_topics_have_sums() -> None:
    state = BrokerState()
    state.mirrors = Statuses()
    assert samples(state) == {
        ("barnabas_mirror_up", "east"): 1,
        ("barnabas_mirror_up", "west"): 0,
        ("barnabas_mirror_partitions", "east", "copying"): 1,
        ("barnabas_mirror_partitions", "east", "caught_up"): 1,
        ("barnabas_mirror_partitions", "east", "failed"): 1,
        ("barnabas_mirror_lag_records", "east", "orders", "0"): 3,
        ("barnabas_mirror_lag_records", "east", "orders", "1"): 0,
        ("barnabas_mirror_lag_bytes", "east", "orders", "0"): 60,
        ("barnabas_mirror_lag_bytes", "east", "orders", "1"): 0,
        ("barnabas_mirror_lag_seconds", "east", "orders", "0"): 0.5,
        ("barnabas_mirror_lag_seconds", "east", "orders", "1"): 0,
        ("barnabas_mirror_bytes_copied_total", "east", "orders"): 111,
        ("barnabas_mirror_bytes_copied_total", "east", "bills"): 0,
        ("barnabas_mirror_errors_total", "east", "orders"): 0,
        ("barnabas_mirror_errors_total", "east", "bills"): 4,
    }


def test_a_broker_that_is_starting_has_no_samples() -> None:
    assert samples(BrokerState()) == {}
