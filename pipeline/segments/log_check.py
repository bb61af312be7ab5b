"""The checks of `barnabas log verify` as a DataFrame: each log is checked whole by the task that has its row.

    topic         string
    partition     int
    path          string         the faulty file; null in the closing row of each log
    position      long           byte in the file, if known
    message       string         the finding
    first_offset, end_offset     long; in the closing row only: the extent of the log, null without segments

Checked are CRC and records of each batch, the order of offsets and leader epochs from batch to batch and segment to
segment, all three indexes against the batches, snapshots and small files. One task checks all segments of a log,
because epochs, offsets and transactions continue from one to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from barnabas.broker.storage.inspection.findings import Circumstances
from barnabas.broker.storage.inspection.verify_log import LogCheck
from barnabas.pipeline.segments.log_files import StoredLog, shared_out

CHECK_SCHEMA = (
    "topic string, partition int, path string, position long, message string, first_offset long, end_offset long"
)
FINDINGS_PER_LOG = 10_000
"""A failed disk yields one per batch; findings beyond this number are only counted, in a last finding."""


class Checked(NamedTuple):
    """One row; the fields are the columns above."""

    topic: str
    partition: int
    path: str | None = None
    position: int | None = None
    message: str | None = None
    first_offset: int | None = None
    end_offset: int | None = None


def check_logs(spark: SparkSession, logs: Sequence[StoredLog], circumstances: Mapping[str, Circumstances]) -> DataFrame:
    """Check the logs. `circumstances` maps data directory paths to what the driver found there."""
    known = dict(circumstances)
    rows = shared_out(spark, logs).flatMap(lambda log: check_log(log, known[log.log_dir]))
    return spark.createDataFrame(rows, CHECK_SCHEMA, verifySchema=False)


def check_log(log: StoredLog, circumstances: Circumstances) -> Iterator[Checked]:
    """Yield the findings of one log, unreadable files included, and its closing row."""
    name = (log.topic, log.partition)
    check = LogCheck(Path(log.directory), circumstances, _ignore)
    listed = left_out = 0
    try:
        for finding in check.run():
            if listed == FINDINGS_PER_LOG:
                left_out += 1
                continue
            listed += 1
            yield Checked(*name, str(finding.path), finding.position, finding.message)
    except OSError as error:
        yield Checked(*name, error.filename or log.directory, None, f"cannot be read: {error.strerror}")
    if left_out:
        yield Checked(*name, log.directory, None, f"{left_out} more findings in this log")
    extent = check.extent
    if extent is None:
        yield Checked(*name)
    else:
        yield Checked(*name, first_offset=extent.first_base_offset, end_offset=extent.log_end_offset)


def _ignore(_: int) -> None:
    """Ignore progress, which Spark reports here."""
