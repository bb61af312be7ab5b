"""Results of the job audit: findings, counts and gaps of data directories, or an archive against its log."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from barnabas.pipeline.jobs.archive_comparison import FAULTS, STATES, compare_offsets, count_states
from barnabas.pipeline.jobs.audit import checkpoints_of, circumstances_by_path, gaps, log_counts
from barnabas.pipeline.jobs.summary import Summary
from barnabas.pipeline.segments.batch_facts import batch_facts
from barnabas.pipeline.segments.log_check import check_logs
from barnabas.pipeline.segments.log_files import StoredLog

Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class AuditReport:
    """`findings` (path, position, message) and `gaps` are limited in number; the counts are complete."""

    seconds: float
    logs: Rows
    findings: Rows
    finding_count: int
    gaps: Rows

    @property
    def is_good(self) -> bool:
        """Whether there are no findings. Gaps alone are not faults."""
        return self.finding_count == 0

    def summary(self) -> Summary:
        """Summarize the records and bytes read."""
        return Summary(
            job="audit",
            records=sum(row["records"] for row in self.logs),
            size_bytes=sum(row["bytes"] for row in self.logs),
            files=sum(row["segments"] for row in self.logs),
            seconds=self.seconds,
            details={
                "logs": len(self.logs),
                "findings": self.finding_count,
                "gaps": sum(row["gaps"] for row in self.logs),
                "missing_offsets": sum(row["missing_offsets"] for row in self.logs),
            },
        )


@dataclass(frozen=True, slots=True)
class ComparisonReport:
    """`partitions` has a count for each of archive_comparison's STATES; `differences` are limited in number."""

    seconds: float
    partitions: Rows
    differences: Rows
    faults: Sequence[str] = FAULTS
    totals: dict[str, int] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        """Whether the archive has every record of the log up to its own end once, and no others."""
        return not any(self.totals[state] for state in self.faults)

    def summary(self) -> Summary:
        """Summarize the comparison; records are those on either side."""
        return Summary(
            job="audit",
            records=sum(self.totals.values()),
            size_bytes=0,
            files=0,
            seconds=self.seconds,
            details={"archive": "whole" if self.is_good else "NOT WHOLE", **self.totals},
        )


def run(spark: SparkSession, logs: Sequence[StoredLog], *, listed: int = 1000) -> AuditReport:
    """Check these logs; `listed` limits the number of findings and gaps in the report."""
    began = time.monotonic()
    circumstances = circumstances_by_path(logs)
    checked = check_logs(spark, logs, circumstances).cache()
    batches = batch_facts(spark, logs).cache()
    try:
        wrong = checked.where("message is not null")
        extents = checked.where("message is null").collect()
        findings = _rows(wrong.orderBy("topic", "partition", "path", "position").limit(listed))
        count = wrong.count()
        counts = _rows(log_counts(batches))
        found_gaps = _rows(gaps(batches).limit(listed))
    finally:
        checked.unpersist()
        batches.unpersist()
    of_checkpoints = checkpoints_of(logs, extents, circumstances)
    findings += [
        {"path": str(finding.path), "position": finding.position, "message": finding.message}
        for finding in of_checkpoints
    ]
    return AuditReport(
        seconds=time.monotonic() - began,
        logs=counts,
        findings=findings,
        finding_count=count + len(of_checkpoints),
        gaps=found_gaps,
    )


def compare(archive: DataFrame, log: DataFrame, *, is_compacted: bool = False, listed: int = 100) -> ComparisonReport:
    """Compare an archive with its log. `is_compacted`: the log may lack records that the archive has."""
    began = time.monotonic()
    offsets = compare_offsets(archive, log).cache()
    faults = tuple(state for state in FAULTS if not (is_compacted and state == "extra"))
    try:
        partitions = _rows(count_states(offsets))
        differences = _rows(
            offsets.where(offsets["state"].isin(*faults)).orderBy("topic", "partition", "offset").limit(listed)
        )
    finally:
        offsets.unpersist()
    totals = {state: sum(row[state] for row in partitions) for state in STATES}
    return ComparisonReport(time.monotonic() - began, partitions, differences, faults, totals)


def _rows(frame: DataFrame) -> Rows:
    return [row.asDict() for row in frame.collect()]
