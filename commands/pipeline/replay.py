"""`barnabas pipeline replay`: an archive back into topics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.commands.options import as_dict, bootstrap_option, parse_key_value
from barnabas.commands.pipeline.job import SessionChoice, run_job, session_options

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
    help="An archived topic, and where its records go; several times. Without it: all, each to its own name.",
)
@click.option(
    "--state",
    metavar="DIR",
    required=True,
    help="Where this replay keeps how far it is: run again with it, it adds what is missing.",
)
@bootstrap_option
@click.option(
    "--name", metavar="NAME", default="archive", show_default=True, help="Of the archive's query, as `archive --name`."
)
@session_options
def replay(
    archive_path: str, topics: tuple[str, ...], state: str, bootstrap: str, name: str, session: SessionChoice
) -> None:
    """Write the records of an archive into topics: key, value, headers, timestamp, partition and order are kept.

    The topics must be there, with as many partitions as the archived ones. Every record once: after a crash, run it
    again with the same --state, within the broker's producer.id.expiration.ms (a day).
    """
    pairs = as_dict(tuple(parse_key_value(each if "=" in each else f"{each}={each}") for each in topics), "--topic")

    def work(spark: Session) -> Summary:
        from barnabas.pipeline.jobs.replay import ReplayOptions, run

        sink = {"kafka.bootstrap.servers": bootstrap}
        return run(spark, ReplayOptions(_absolute(archive_path), _absolute(state), sink, pairs, name))

    run_job("replay", session, work)


def _absolute(location: str) -> str:
    return location if "://" in location else str(Path(location).absolute())
