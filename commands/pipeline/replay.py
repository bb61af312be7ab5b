"""`barnabas pipeline replay`: write an archive's records into topics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.commands.options import as_dict, bootstrap_option, parse_key_value
from barnabas.commands.pipeline.job import SessionChoice, run_job, session_options
from barnabas.commands.pipeline.source import kafka_options

if TYPE_CHECKING:
    from barnabas.pipeline.jobs.summary import Summary
    from barnabas.pipeline.spark.session import Session


@click.command()
@click.argument("archive_path", metavar="DIR")
@click.option(
    "--topic",
    "topics",
    metavar="TOPIC[=NEW]",
    multiple=True,
    help="An archived topic, and the topic for its records. Repeatable. Default: all, under their own names.",
)
@click.option(
    "--state",
    metavar="DIR",
    required=True,
    help="Directory for this replay's progress. Another run with the same one adds the missing records.",
)
@bootstrap_option
@click.option(
    "--name",
    metavar="NAME",
    default="archive",
    show_default=True,
    help="Name of the archive's query, as in `archive --name`.",
)
@session_options
def replay(
    archive_path: str, topics: tuple[str, ...], state: str, bootstrap: str, name: str, session: SessionChoice
) -> None:
    """Write the records of an archive into topics: key, value, headers, timestamp, partition and order are kept.

    The topics must exist, with as many partitions as the archived ones. Every record is written exactly once: after a
    crash, run it again with the same --state, within the broker's producer.id.expiration.ms (a day).
    """
    pairs = as_dict(tuple(parse_key_value(each if "=" in each else f"{each}={each}") for each in topics), "--topic")

    sink = {"kafka.bootstrap.servers": bootstrap, **kafka_options()}

    def work(spark: Session) -> Summary:
        from barnabas.pipeline.jobs.replay import ReplayOptions, run

        return run(spark, ReplayOptions(_absolute(archive_path), _absolute(state), sink, pairs, name))

    run_job("replay", session, work)


def _absolute(location: str) -> str:
    return location if "://" in location else str(Path(location).absolute())
