"""`barnabas pipeline audit`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.options import command_config_option, configured_bootstrap
from barnabas.commands.output import print_line, print_note, print_table
from barnabas.commands.pipeline.job import SessionChoice, run_job, session_options
from barnabas.commands.pipeline.source import (
    check_optional_bootstrap,
    kafka_options,
    log_dirs_option,
    topics_option,
)

if TYPE_CHECKING:
    from barnabas.pipeline.jobs.audit_report import AuditReport, ComparisonReport
    from barnabas.pipeline.jobs.summary import Summary
    from barnabas.pipeline.spark.session import Session


@click.command()
@click.option(
    "--bootstrap",
    "--bootstrap-server",
    "bootstrap",
    metavar="HOST:PORT",
    callback=check_optional_bootstrap,
    help="With --archive: compare the archive with this broker's topics.",
    default=None,
)
@command_config_option
@log_dirs_option
@topics_option
@click.option("--archive", metavar="PATH", help="Compare this archive (a path or URI) with the log, record by record.")
@click.option(
    "--compacted",
    is_flag=True,
    help="With --archive: the topics are compacted, so the archive may have records that the log no longer has.",
)
@click.option(
    "--list",
    "listed",
    type=click.IntRange(min=0),
    metavar="N",
    default=100,
    show_default=True,
    help="Print at most N findings, gaps or differences; all are counted.",
)
@session_options
def audit(
    session: SessionChoice,
    bootstrap: str | None,
    log_dirs: tuple[Path, ...],
    topics: tuple[str, ...],
    archive: str | None,
    compacted: bool,
    listed: int,
) -> None:
    """Check data directories, or compare an archive with its log. The exit code is 1 if there is a fault.

    In data directories it checks CRC and records of each batch, the order of offsets, counts, gaps, indexes, snapshots
    and checkpoints, including Kafka's internal topics. Gaps are reported but not a fault: compaction leaves them.

    An archive must have every record of the log up to the archive's end once, with the same key, value, headers and
    timestamp.
    """
    if archive is not None and bootstrap is None and not log_dirs:
        bootstrap = configured_bootstrap(click.get_current_context())
    if archive is None and (bootstrap is not None or compacted):
        raise click.UsageError("--bootstrap and --compacted need --archive; --log-dir checks files.")
    if (bootstrap is None) == (not log_dirs):
        raise click.UsageError("give either --log-dir DIR, or --bootstrap together with --archive.")
    if archive is not None and not topics:
        raise click.UsageError("give at least one --topic of the archive.")
    outcome: list[bool] = []

    def work(spark: Session) -> Summary:
        report: AuditReport | ComparisonReport
        if archive is None:
            report = _check(spark, log_dirs, topics, listed, is_quiet=session.as_json)
        else:
            report = _compare(spark, archive, bootstrap, log_dirs, topics, compacted, listed, session.as_json)
        outcome.append(report.is_good)
        return report.summary()

    run_job("audit", session, work)
    if not all(outcome):
        sys.exit(ExitCode.FAILED)


def _check(
    spark: Session, log_dirs: tuple[Path, ...], topics: tuple[str, ...], listed: int, *, is_quiet: bool
) -> AuditReport:
    from barnabas.pipeline.jobs.audit_report import run
    from barnabas.pipeline.segments.log_files import find_logs

    report = run(spark, find_logs(log_dirs, topics, internal=True), listed=listed)
    for finding in report.findings:
        place = "" if finding["position"] is None else f"position {finding['position']}: "
        print_note(f"{finding['path']}: {place}{finding['message']}")
    for gap in report.gaps:
        print_note(
            f"{gap['path']}: position {gap['position']}: offsets {gap['first_missing']} to {gap['last_missing']} "
            "are missing before this batch"
        )
    if not is_quiet:
        names = ("topic", "partition", "segments", "batches", "records", "bytes", "first_offset", "end_offset")
        _print_rows((*names, "gaps", "missing_offsets", "holes"), report.logs)
    return report


def _compare(
    spark: Session,
    archive: str,
    bootstrap: str | None,
    log_dirs: tuple[Path, ...],
    topics: tuple[str, ...],
    compacted: bool,
    listed: int,
    is_quiet: bool,
) -> ComparisonReport:
    from barnabas.pipeline.jobs.archive_comparison import STATES, read_archive
    from barnabas.pipeline.jobs.audit_report import compare
    from barnabas.pipeline.jobs.record_source import RecordSource

    columns = ("topic", "partition", "offset", "key", "value", "timestamp", "headers")
    options = {} if bootstrap is None else kafka_options()
    log = RecordSource(bootstrap, log_dirs, topics, options).read(spark, columns, undecoded=True)
    report = compare(read_archive(spark, archive, topics), log, is_compacted=compacted, listed=listed)
    for row in report.differences:
        print_note(f"{row['topic']}-{row['partition']} offset {row['offset']}: {row['state']}")
    if not is_quiet:
        _print_rows(("topic", "partition", *STATES), report.partitions)
        print_line("the archive matches the log" if report.is_good else "the archive does NOT match the log")
    return report


def _print_rows(names: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    print_table([name.upper().replace("_", "-") for name in names], [[row[name] for name in names] for row in rows])
