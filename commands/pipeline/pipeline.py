"""`barnabas pipeline ...`: jobs on Apache Spark. Each job's command is a file of its own, imported when it runs.

None of these modules imports pyspark at its top: `--help` must work, and fast, where Spark is not installed.
"""

from __future__ import annotations

import click

from barnabas.commands.lazy_group import LazyCommand, LazyGroup

_PACKAGE = "barnabas.commands.pipeline"

JOBS = {
    "archive": LazyCommand(f"{_PACKAGE}.archive:archive", "Topics to Parquet files by date and hour."),
    "replay": LazyCommand(f"{_PACKAGE}.replay:replay", "An archive back into topics."),
    "snapshot": LazyCommand(f"{_PACKAGE}.snapshot:snapshot", "The latest value of each key."),
    "stats": LazyCommand(f"{_PACKAGE}.stats:stats", "Records and bytes by key, age and batch size."),
    "whatif": LazyCommand(f"{_PACKAGE}.whatif:whatif", "What other retention or compaction would free."),
    "audit": LazyCommand(f"{_PACKAGE}.audit:audit", "Check a data directory, or an archive against its log."),
}


@click.group(cls=LazyGroup, commands_by_name=JOBS)
def pipeline() -> None:
    """Process what lies in the broker on Apache Spark: on this machine, or on a cluster by --master.

    Needs the extra `spark` (`pip install '.[spark]'` in a checkout) and a Java 17 runtime. Every job ends with one
    line: records, bytes, files and seconds.
    """
