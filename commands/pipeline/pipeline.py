"""`barnabas pipeline ...`: jobs on Apache Spark. Each job's command has its own module, imported when it runs.

None of these modules imports pyspark at its top: `--help` must work, and fast, without Spark installed.
"""

from __future__ import annotations

import click

from barnabas.commands.lazy_group import LazyCommand, LazyGroup

_PACKAGE = "barnabas.commands.pipeline"

JOBS = {
    "archive": LazyCommand(f"{_PACKAGE}.archive:archive", "Copy topics to Parquet files by date and hour."),
    "replay": LazyCommand(f"{_PACKAGE}.replay:replay", "Write an archive's records into topics."),
    "snapshot": LazyCommand(f"{_PACKAGE}.snapshot:snapshot", "Write the latest value of each key."),
    "stats": LazyCommand(f"{_PACKAGE}.stats:stats", "Report records and bytes by key, age and batch size."),
    "whatif": LazyCommand(f"{_PACKAGE}.whatif:whatif", "Estimate what other retention or compaction would free."),
    "audit": LazyCommand(f"{_PACKAGE}.audit:audit", "Check a data directory, or an archive against its log."),
}


@click.group(cls=LazyGroup, commands_by_name=JOBS)
def pipeline() -> None:
    """Process topics with Apache Spark, on this machine or on a cluster (--master).

    Needs the extra `spark` (`pip install '.[spark]'` in a checkout) and a Java 17 runtime. Every job ends with one
    line: records, bytes, files and seconds.
    """
