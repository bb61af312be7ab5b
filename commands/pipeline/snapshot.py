"""`barnabas pipeline snapshot`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from barnabas.commands.pipeline.job import SessionChoice, run_job, session_options
from barnabas.commands.pipeline.source import SourceChoice, source_options

if TYPE_CHECKING:
    from barnabas.pipeline.jobs.summary import Summary
    from barnabas.pipeline.spark.session import Session


@click.command()
@source_options
@click.option("--output", required=True, metavar="PATH", help="Where Parquet files go: a path or a URI.")
@click.option("--overwrite", is_flag=True, help="Replace what is there.")
@click.option(
    "--across-partitions",
    is_flag=True,
    help="A key's latest record of all partitions, by timestamp: for topics that were given more partitions.",
)
@click.option("--keep-tombstones", is_flag=True, help="Keep deleted keys, with a null value.")
@session_options
def snapshot(
    choice: SourceChoice,
    session: SessionChoice,
    output: str,
    overwrite: bool,
    across_partitions: bool,
    keep_tombstones: bool,
) -> None:
    """Write the latest record of each key: what compaction would leave.

    A key whose latest record is a tombstone is left out, and so are records without a key. Compaction works on each
    partition by itself, and so does this unless --across-partitions is given.
    """

    def work(spark: Session) -> Summary:
        from barnabas.pipeline.jobs.snapshot import SnapshotOptions, run

        options = SnapshotOptions(
            choice.source(),
            output,
            across_partitions=across_partitions,
            keep_tombstones=keep_tombstones,
            overwrite=overwrite,
        )
        return run(spark, options)

    run_job("snapshot", session, work)
