"""`barnabas doctor ...`: what stands in the way, in plain sentences."""

from __future__ import annotations

from pathlib import Path

import click

from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.options import (
    DEFAULT_BOOTSTRAP,
    check_bootstrap,
    check_kafka_version,
    json_option,
)

DEFAULT_TIMEOUT_S = 5.0


@click.group()
def doctor() -> None:
    """Look for what stands in the way, and say it in plain sentences."""


@doctor.command()
@click.argument(
    "bootstrap", metavar="HOST:PORT", envvar="BARNABAS_BOOTSTRAP", default=DEFAULT_BOOTSTRAP, callback=check_bootstrap
)
@json_option
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    default=DEFAULT_TIMEOUT_S,
    show_default=True,
    help="How long each connection and each answer may take.",
)
def client(bootstrap: str, as_json: bool, timeout_s: float) -> int:
    """Do what a client at this place would do with HOST:PORT, and say where it would stumble.

    Connect, ask for ApiVersions and Metadata by Kafka's protocol (the native one where that is not answered), then
    look up and try every address that the brokers advertise: a client only starts at HOST:PORT and goes on at those.
    It works on any Kafka broker. The exit code is 0 when nothing stands in the way, 1 when something does, 3 when
    nothing was reached at all.
    """
    from barnabas.commands.doctor.client import examine
    from barnabas.commands.output import print_json, print_line

    report = examine(bootstrap, timeout_s)
    if as_json:
        print_json(report.as_json())
    else:
        for line in report.steps:
            print_line(line)
        for problem in report.problems:
            print_line(f"problem: {problem}")
        if not report.problems:
            print_line("a client at this place has all that it needs")
    if not report.is_connected:
        return ExitCode.NO_CONNECTION
    return ExitCode.FAILED if report.problems else ExitCode.OK


@doctor.command("dir")
@click.argument(
    "log_dirs",
    metavar="DIR...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option(
    "--metadata-log-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where the metadata log is, if not in the first DIR (metadata.log.dir).",
)
@click.option(
    "--kafka-version",
    metavar="V",
    callback=check_kafka_version,
    help="Tell of this Apache Kafka, and let the exit code say whether it opens the directories.",
)
@json_option
def directory(
    log_dirs: tuple[Path, ...], metadata_log_dir: Path | None, kafka_version: str | None, as_json: bool
) -> int:
    """Say what a broker's log directories are, and which program can open them.

    Name all log.dirs of the node, in their order. Nothing is written, and a broker may be running. Told are who wrote
    the metadata last, node and cluster, levels, topics with their sizes, groups, open transactions, whether the last
    stop was clean; then for Barnabas and each Apache Kafka whether it opens them, what it would refuse and what to do
    about that. After an unclean stop everything behind the recovery points is read, as a start would.

    The exit code is 0 when Barnabas (or the Kafka of --kafka-version) opens the directories, 1 when it does not.
    """
    from barnabas.broker.metadata.directories.report import BARNABAS, BARNABAS_READ_ONLY, kafka
    from barnabas.commands.doctor.directory import DirectoryDoctor
    from barnabas.commands.output import print_json

    doctor_of = DirectoryDoctor(log_dirs, metadata_log_dir)
    program = BARNABAS if kafka_version is None else kafka(kafka_version)
    if as_json:
        print_json(doctor_of.as_json())
    elif kafka_version is None:
        doctor_of.print()
    else:
        doctor_of.print((BARNABAS, BARNABAS_READ_ONLY, program))
    return ExitCode.FAILED if doctor_of.stops(program) else ExitCode.OK
