"""`barnabas pipeline whatif`: estimate what other retention or compaction would free."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.commands.options import PositiveNumber, as_dict, parse_key_value, parse_timestamp
from barnabas.commands.output import print_note, print_table
from barnabas.commands.pipeline.job import SessionChoice, run_job, session_options
from barnabas.commands.pipeline.source import SharedDirectory, log_dirs_option, topics_option

if TYPE_CHECKING:
    from barnabas.pipeline.jobs.summary import Summary
    from barnabas.pipeline.jobs.whatif_report import WhatIfReport
    from barnabas.pipeline.spark.session import Session


@click.command()
@log_dirs_option
@topics_option
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="K=V",
    help="A hypothetical topic property (retention.ms, retention.bytes, cleanup.policy, min.compaction.lag.ms, "
    "min.cleanable.dirty.ratio). Repeatable. Others are those of the topic.",
)
@click.option(
    "--metadata-log-dir",
    type=SharedDirectory(),
    metavar="DIR",
    help="The log directory with the metadata log, which contains the topics' configs.  [default: the first --log-dir]",
)
@click.option("--now", metavar="TIME", help="Estimate as of this time: milliseconds since 1970, or ISO 8601.")
@click.option(
    "--days",
    type=PositiveNumber(),
    metavar="DAYS",
    default=30.0,
    show_default=True,
    help="How far ahead the page estimates.",
)
@click.option(
    "--html",
    "html_file",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write a page with charts.",
)
@session_options
def whatif(
    session: SessionChoice,
    log_dirs: tuple[Path, ...],
    topics: tuple[str, ...],
    settings: tuple[str, ...],
    metadata_log_dir: Path | None,
    now: str | None,
    days: float,
    html_file: Path | None,
) -> None:
    """Estimate what other retention or compaction settings would free, by topic.

    Without --set: what the topics' own settings would free now. Reads a data directory, also that of a running broker,
    and changes nothing. Kafka's internal topics (__consumer_offsets) are included only if they are named.
    """
    if not log_dirs:
        raise click.UsageError("give a data directory: --log-dir DIR.")
    changes = as_dict(tuple(parse_key_value(pair) for pair in settings), "--set")
    now_ms = time.time_ns() // 1_000_000 if now is None else parse_timestamp(now)

    def work(spark: Session) -> Summary:
        from barnabas.commands.pipeline.policies import policies_of
        from barnabas.pipeline.jobs.whatif_report import WhatIfOptions, run, whatif_page
        from barnabas.pipeline.report.page import write_page
        from barnabas.pipeline.segments.log_files import find_logs

        logs = find_logs(log_dirs, topics)
        policies = policies_of({log.topic for log in logs}, changes, metadata_log_dir or log_dirs[0], print_note)
        words = ", ".join(f"{name}={value}" for name, value in changes.items()) or "as the topics have them"
        report = run(spark, WhatIfOptions(logs, policies, words, now_ms, days))
        if html_file is not None:
            write_page(html_file, whatif_page(report))
        if not session.as_json:
            _print(report)
        return report.summary()

    run_job("whatif", session, work)


def _print(report: WhatIfReport) -> None:
    print_table(
        ("TOPIC", "BYTES", "RETENTION.BYTES", "RETENTION.MS", "COMPACTION", "LEFT", "RECORDS", "TOMBSTONES", "DUE"),
        [
            (
                topic.topic,
                topic.size_bytes,
                topic.freed_by_size,
                topic.freed_by_time,
                topic.freed_by_compaction,
                topic.left_bytes,
                topic.records_gone,
                topic.tombstones,
                "yes" if topic.is_due else "no",
            )
            for topic in report.topics
        ],
    )
