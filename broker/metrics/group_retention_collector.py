"""Collector over what retention takes from groups before they have read it. Only with metrics.group.lag.enable.

A sample per group, and of the hundred groups with the least time only. Segments of a partition are looked at once a
minute, of at most MAX_READS partitions in a scrape, the longest unread first: the cost of a scrape does not grow with
the number of partitions. Runs on the metrics thread.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from prometheus_client.core import Metric

from barnabas.broker.metrics.family import Family
from barnabas.broker.metrics.state import BrokerState

if TYPE_CHECKING:
    from barnabas.broker.storage.explanation.retention_findings import SegmentFinding
    from barnabas.broker.storage.log.readable_log import ReadableLog
    from barnabas.broker.storage.served_logs import ServedLogs

MAX_GROUPS: Final = 100
MAX_READS: Final = 100
MAX_AGE_S: Final = 60.0

_PartitionKey = tuple[str, int]


class _Read(NamedTuple):
    """What retention does to a partition's segments, as found at `at_s` (monotonic)."""

    at_s: float
    findings: Sequence[SegmentFinding]


class GroupRetentionCollector:
    """Retention and groups that are behind. Only with metrics.group.lag.enable."""

    overtakes = Family(
        "barnabas_group_retention_overtakes_seconds",
        "gauge",
        "Time until retention deletes a record that the group has not read, if it commits nothing until then; 0: at"
        " the next check, or at the end of a move to another log directory. Of the 100 groups with the least time; no"
        " sample if nothing is deleted unread.",
        labels=("group",),
    )
    lost = Family(
        "barnabas_group_lost_records",
        "gauge",
        "Offsets that were deleted before the group read them: from its committed offsets to the log start offsets."
        " Of the 100 groups with most; no sample if there are none.",
        labels=("group",),
    )
    families: ClassVar = (overtakes, lost)

    def __init__(self, state: BrokerState, *, max_reads: int = MAX_READS) -> None:
        """`max_reads`: partitions whose segments one scrape looks at."""
        self._state = state
        self._max_reads = max_reads
        self._reads: dict[_PartitionKey, _Read] = {}

    def collect(self) -> Iterator[Metric]:
        """Both families, from the offsets as they are now, and segments as they were within the last minute."""
        seconds: dict[str, float] = {}
        lost: dict[str, int] = {}
        offsets, manager = self._state.committed_offsets, self._state.log_manager
        if offsets is not None and manager is not None:
            groups = offsets.snapshot()
            logs: dict[_PartitionKey, ReadableLog] = {(*log.topic_partition,): log for log in manager.logs()}
            behind = [
                (group, key, value.offset, log)
                for group, by_partition in groups
                for key, value in by_partition.items()
                if (log := logs.get(key)) is not None and value.offset < log.high_watermark
            ]
            self._refresh({key: log for _, key, _, log in behind}, manager)
            now_ms = time.time_ns() // 1_000_000
            for group, key, offset, log in behind:
                if offset < log.log_start_offset:
                    lost[group] = lost.get(group, 0) + log.log_start_offset - offset
                moment = self._overtaken_ms(key, max(offset, log.log_start_offset))
                if moment is not None:
                    left = max(0, moment - now_ms) / 1000
                    seconds[group] = min(seconds.get(group, left), left)
        soonest = sorted(seconds.items(), key=lambda each: each[1])[:MAX_GROUPS]
        most = sorted(lost.items(), key=lambda each: -each[1])[:MAX_GROUPS]
        yield self.overtakes.render(((group,), value) for group, value in sorted(soonest))
        yield self.lost.render(((group,), value) for group, value in sorted(most))

    def _refresh(self, behind: dict[_PartitionKey, ReadableLog], manager: ServedLogs[ReadableLog]) -> None:
        """Look at the segments of some partitions again, and forget those that no group is behind in."""
        from barnabas.broker.groups.explanation.lag import try_read_findings

        self._reads = {key: read for key, read in self._reads.items() if key in behind}
        now_s = time.monotonic()
        due = [key for key in behind if key not in self._reads or now_s - self._reads[key].at_s > MAX_AGE_S]
        due.sort(key=lambda key: self._reads[key].at_s if key in self._reads else 0.0)
        now_ms = time.time_ns() // 1_000_000
        for key in due[: self._max_reads]:
            self._reads[key] = _Read(now_s, try_read_findings(behind[key], manager, now_ms=now_ms))

    def _overtaken_ms(self, key: _PartitionKey, offset: int) -> int | None:
        """Return when the segment with `offset` is deleted, by wall clock; None: never, or not known yet."""
        read = self._reads.get(key)
        if read is None:
            return None
        for finding in read.findings:
            if finding.segment.end_offset > offset:
                return finding.deleted_earliest_ms
        return None
