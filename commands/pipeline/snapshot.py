"""`barnabas pipeline snapshot`: write the latest record of each key."""

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
@click.option("--output", required=True, metavar="PATH", help="Directory for the Parquet files: a path or a URI.")
@click.option("--overwrite", is_flag=True, help="Replace existing output.")
@click.option(
    "--across-partitions",
    is_flag=True,
    help="Take a key's latest record of all partitions, by timestamp: for topics whose partition count was raised.",
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
    """Write the latest record of each key, as compaction would leave it.

    Keys whose latest record is a tombstone are left out, and so are records without a key. As in compaction, each
    partition is processed by itself, unless --across-partitions is given.
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
