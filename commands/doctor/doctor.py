"""`barnabas doctor ...`: diagnose problems of client connections and log directories."""

from __future__ import annotations

from pathlib import Path

import click

from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.options import (
    DEFAULT_BOOTSTRAP,
    PositiveNumber,
    check_bootstrap,
    check_kafka_version,
    client_security,
    command_config_option,
    json_option,
)

DEFAULT_TIMEOUT_S = 5.0


@click.group()
def doctor() -> None:
    """Diagnose problems of client connections and log directories."""


@doctor.command()
@click.argument(
    "bootstrap", metavar="HOST:PORT", envvar="BARNABAS_BOOTSTRAP", default=DEFAULT_BOOTSTRAP, callback=check_bootstrap
)
@json_option
@click.option(
    "--timeout",
    "timeout_s",
    type=PositiveNumber(),
    metavar="SECONDS",
    default=DEFAULT_TIMEOUT_S,
    show_default=True,
    help="Limit for each connection attempt and each answer.",
)
@click.option("--topic", "topics", multiple=True, metavar="NAME", help="A topic that this client uses. Repeatable.")
@click.option("--group", "groups", multiple=True, metavar="ID", help="A group that this client joins. Repeatable.")
@command_config_option
def client(bootstrap: str, as_json: bool, timeout_s: float, topics: tuple[str, ...], groups: tuple[str, ...]) -> int:
    """Connect to HOST:PORT as a client on this machine would, and report each problem.

    The steps are name resolution, TCP, TLS, ApiVersions, SASL handshake and login, Metadata, and the operations that
    the broker authorizes (with --topic and --group also on topics and groups). TLS and SASL need --command-config. Then
    every address that the brokers advertise is tried in the same way: a client starts at HOST:PORT and continues at
    those. Works with any Kafka broker.

    The exit code is 0 without a problem, 1 with one, 3 if HOST:PORT cannot be reached.
    """
    from barnabas.commands.doctor.access import Resources
    from barnabas.commands.doctor.client import examine
    from barnabas.commands.output import print_json, print_line

    report = examine(bootstrap, timeout_s, client_security(), Resources(topics, groups))
    if as_json:
        print_json(report.as_json())
    else:
        for line in report.steps:
            print_line(line)
        if report.failed_step is not None:
            print_line(f"the step that fails: {report.failed_step}")
        for problem in report.problems:
            print_line(f"problem: {problem}")
        if not report.problems:
            print_line("no problem: clients on this machine can use the broker")
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
    help="Directory with the metadata log (metadata.log.dir), if not the first DIR.",
)
@click.option(
    "--kafka-version",
    metavar="V",
    callback=check_kafka_version,
    help="Report on this Apache Kafka, and let the exit code tell whether it can open the directories.",
)
@json_option
def directory(
    log_dirs: tuple[Path, ...], metadata_log_dir: Path | None, kafka_version: str | None, as_json: bool
) -> int:
    """Describe a broker's log directories, and which programs can open them.

    Name all log.dirs of the node, in order. Nothing is written, and a broker may be running. The report has the last
    writer of the metadata, node and cluster, feature levels, topics with their sizes, groups, open transactions, and
    whether the last stop was clean; then for Barnabas and each Apache Kafka whether it can open the directories, and
    otherwise the problems and their remedies. After an unclean stop all data after the recovery points is read, as at a
    start.

    The exit code is 0 if Barnabas (or the Kafka of --kafka-version) can open the directories, 1 if not.
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
