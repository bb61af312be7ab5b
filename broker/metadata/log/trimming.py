"""Retention of old snapshots of the metadata log, and of the log before the next snapshot.

    time   the oldest snapshot's last record is older than metadata.max.retention.ms
    size   snapshots and log together exceed metadata.max.retention.bytes

The newest snapshot is always kept. After a snapshot is deleted, the log may begin at the next one's end offset. Decided
here, carried out by the snapshotter. Source: Kafka's KafkaMetadataLog.maybeClean.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from barnabas.broker.metadata.log.snapshots import SnapshotId


class KeptSnapshot(NamedTuple):
    """A snapshot on disk, with the timestamp (ms) in its header."""

    id: SnapshotId
    size_bytes: int
    last_timestamp_ms: int


def snapshots_to_drop(
    oldest_first: Sequence[KeptSnapshot], *, log_bytes: int, now_ms: int, retention_ms: int, retention_bytes: int
) -> list[KeptSnapshot]:
    """Return the oldest snapshots that exceed the retention. A negative limit does not apply."""
    dropped: list[KeptSnapshot] = []
    total = log_bytes + sum(snapshot.size_bytes for snapshot in oldest_first)
    for snapshot, _ in pairwise(oldest_first):
        is_old = 0 <= retention_ms < now_ms - snapshot.last_timestamp_ms
        is_excess = 0 <= retention_bytes < total
        if not is_old and not is_excess:
            break
        total -= snapshot.size_bytes
        dropped.append(snapshot)
    return dropped
