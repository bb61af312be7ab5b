"""`barnabas pipeline archive`: copy topics to Parquet files by date and hour."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.commands.options import PositiveNumber, bootstrap_option
from barnabas.commands.pipeline.job import SessionChoice, run_job, session_options
from barnabas.commands.pipeline.source import kafka_options

if TYPE_CHECKING:
    from barnabas.pipeline.jobs.summary import Summary
    from barnabas.pipeline.spark.session import Session


@click.command()
@click.argument("topics", metavar="[TOPIC]...", nargs=-1)
@click.option("--to", "archive_path", metavar="DIR", required=True, help="The archive: a path, or a URI (s3://...).")
@click.option("--pattern", metavar="REGEX", help="Instead of TOPIC: all topics whose whole name matches.")
@click.option(
    "--from-files",
    "--log-dir",
    "log_dir",
    metavar="DIR",
    help="Read segment files instead of a broker: a log.dir or a partition's directory, or its URI (s3://...).",
)
@bootstrap_option
@click.option(
    "--starting-offsets", metavar="O", default="earliest", show_default=True, help="earliest, latest or JSON."
)
@click.option("--max-records", type=click.IntRange(min=1), metavar="N", help="Limit for one micro-batch.")
@click.option(
    "--fail-on-data-loss/--no-fail-on-data-loss",
    default=True,
    show_default=True,
    help="Whether to fail if retention deleted records before they were archived.",
)
@click.option(
    "--every",
    "interval_s",
    type=PositiveNumber(0.1),
    metavar="SECONDS",
    help="Keep running, with a micro-batch at this interval.",
)
@click.option(
    "--name",
    metavar="NAME",
    default="archive",
    show_default=True,
    help="Name of this query, if one archive has several.",
)
@session_options
def archive(
    topics: tuple[str, ...],
    archive_path: str,
    pattern: str | None,
    log_dir: str | None,
    bootstrap: str,
    starting_offsets: str,
    max_records: int | None,
    fail_on_data_loss: bool,
    interval_s: float | None,
    name: str,
    session: SessionChoice,
) -> None:
    """Copy topics to Parquet files, DIR/TOPIC/date=.../hour=.../TOPIC-PARTITION-FIRST-LAST.parquet.

    Every record is archived exactly once: however a run ended, the next one continues where it stopped. Hours are those
    of the records' timestamps, in UTC. Without --every it ends when it has reached the topics' current end.
    """
    if (pattern is None) == (not topics):
        raise click.UsageError("give either topics or --pattern.")
    source = {
        "startingOffsets": starting_offsets,
        "failOnDataLoss": str(fail_on_data_loss).lower(),
        **({"subscribe": ",".join(topics)} if pattern is None else {"subscribePattern": pattern}),
        **({"kafka.bootstrap.servers": bootstrap, **kafka_options()} if log_dir is None else {"path": log_dir}),
    }
    if max_records is not None:
        source["maxOffsetsPerTrigger"] = str(max_records)
    location = archive_path if "://" in archive_path else str(Path(archive_path).absolute())

    def work(spark: Session) -> Summary:
        from barnabas.pipeline.jobs.archive import ArchiveOptions, run

        return run(spark, ArchiveOptions(location, source, name, interval_s))

    run_job("archive", session, work)
