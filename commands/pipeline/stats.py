"""`barnabas pipeline stats`: report records and bytes of topics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.commands.output import print_table
from barnabas.commands.pipeline.job import SessionChoice, run_job, session_options
from barnabas.commands.pipeline.source import SourceChoice, source_options

if TYPE_CHECKING:
    from barnabas.pipeline.jobs.stats_report import StatsReport
    from barnabas.pipeline.jobs.summary import Summary
    from barnabas.pipeline.spark.session import Session

_FILE = click.Path(dir_okay=False, writable=True, path_type=Path)


@click.command()
@source_options
@click.option(
    "--top",
    type=click.IntRange(min=0),
    metavar="N",
    default=20,
    show_default=True,
    help="Number of keys to list for each topic.",
)
@click.option(
    "--by",
    "top_by",
    type=click.Choice(("bytes", "records")),
    default="bytes",
    show_default=True,
    help="What to rank keys by.",
)
@click.option("--html", "html_file", type=_FILE, metavar="FILE", help="Write a page with charts.")
@click.option("--report", "report_file", type=_FILE, metavar="FILE", help="Write all numbers as JSON.")
@session_options
def stats(
    choice: SourceChoice,
    session: SessionChoice,
    top: int,
    top_by: str,
    html_file: Path | None,
    report_file: Path | None,
) -> None:
    """Report the records of topics: numbers and bytes by partition and key, ages, sizes.

    With files (--log-dir) also the sizes of batches, their compression, and the cleaner's dirty ratio.
    """

    def work(spark: Session) -> Summary:
        from barnabas.pipeline.jobs.stats_page import stats_page
        from barnabas.pipeline.jobs.stats_report import StatsOptions, run
        from barnabas.pipeline.report.page import write_page

        report = run(spark, StatsOptions(choice.source(), top, top_by))
        if html_file is not None:
            write_page(html_file, stats_page(report))
        if report_file is not None:
            report_file.write_text(json.dumps(report.as_json(), indent=1), encoding="utf-8")
        if not session.as_json:
            _print(report)
        return report.summary()

    run_job("stats", session, work)


def _print(report: StatsReport) -> None:
    ratios = {(row["topic"], row["partition"]): row["dirty_ratio"] for row in report.dirty}
    numbers = ("records", "bytes", "keys", "keyless", "tombstones", "superseded_records", "superseded_bytes")
    print_table(
        ("TOPIC", "PARTITION", *(name.upper().replace("_", "-") for name in numbers), "DIRTY-RATIO"),
        [
            (
                row["topic"],
                row["partition"],
                *(row[name] for name in numbers),
                _ratio_text(ratios.get((row["topic"], row["partition"]))),
            )
            for row in report.partitions
        ],
    )
    if report.top_keys:
        print_table(
            ("TOPIC", "KEY", "RECORDS", "BYTES", "SHARE"),
            [
                (row["topic"], row["key"], row["records"], row["bytes"], f"{row['share']:.2%}")
                for row in report.top_keys
            ],
        )


def _ratio_text(ratio: float | None) -> str | None:
    return None if ratio is None else f"{ratio:.3f}"
