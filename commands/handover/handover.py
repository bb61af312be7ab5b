"""`barnabas handover`: prepare log directories for Apache Kafka, and print how to start it."""

from __future__ import annotations

from pathlib import Path

import click

from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.options import check_kafka_version

_DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command()
@click.argument("log_dirs", metavar="DIR...", nargs=-1, required=True, type=_DIRECTORY)
@click.option(
    "--kafka-version",
    metavar="V",
    required=True,
    callback=check_kafka_version,
    help="Version of the Apache Kafka that takes over.",
)
@click.option("--metadata-log-dir", type=_DIRECTORY, metavar="DIR", help="metadata.log.dir, if not the first DIR.")
@click.option(
    "--listener",
    default="127.0.0.1:9092",
    metavar="HOST:PORT",
    show_default=True,
    help="Kafka's listener for clients; for Kafka itself if --config has TLS, SASL or an authorizer.",
)
@click.option(
    "--controller-listener",
    default="127.0.0.1:9093",
    metavar="HOST:PORT",
    show_default=True,
    help="The controller's listener; brokers that join later need to reach it.",
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Barnabas' configuration file, whose properties that Kafka has too are carried over, with its security.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The server.properties to write. Default: kafka-server.properties beside the first DIR.",
)
@click.option("--overwrite", is_flag=True, help="Replace an existing server.properties.")
@click.option("--execute", is_flag=True, help="Make the changes. Without this option they are only shown.")
def handover(
    log_dirs: tuple[Path, ...],
    kafka_version: str,
    metadata_log_dir: Path | None,
    listener: str,
    controller_listener: str,
    config_file: Path | None,
    output: Path | None,
    *,
    overwrite: bool,
    execute: bool,
) -> int:
    """Hand a node's log directories over to Apache Kafka.

    Name all log.dirs of the node, in order. A topic's segment.bytes below 1 MiB, which Kafka 4.1 and later refuse, is
    raised; a transaction.version that Kafka 3.x does not support is lowered to 0, unless a transaction is open or
    prepared; a topic's flush.acks.all, which Kafka does not know, is removed. Other problems that would keep this Kafka
    from starting are reported. Writes a server.properties for kafka-server-start and prints the commands to run.
    Without --execute it is a dry run. Records are not changed. To go back, stop Kafka and start Barnabas.

    The exit code is 1 if this Kafka would not start.
    """
    from barnabas.commands.handover.plan import Handover
    from barnabas.commands.handover.properties import Listening, carried_properties
    from barnabas.commands.handover.secure_listeners import secure_listeners
    from barnabas.commands.output import print_line
    from barnabas.config.listeners import parse_listener
    from barnabas.config.properties_file import BadLineError

    try:
        carried = {} if config_file is None else carried_properties(config_file)
    except BadLineError as error:
        raise click.BadParameter(f"{config_file}, line {error.line}: {error}.", param_hint="--config") from error
    try:
        listening = Listening(parse_listener(listener), parse_listener(controller_listener))
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from error
    secure = None if config_file is None else secure_listeners(config_file, listening.clients, listening.controller)
    plan = Handover(log_dirs, metadata_log_dir, kafka_version, listening, carried, output, secure)
    plan.print()
    if plan.refusals:
        return ExitCode.FAILED
    if execute:
        plan.execute(overwrite=overwrite)
    else:
        print_line("dry run: nothing was written; --execute makes the changes")
    plan.print_commands()
    return ExitCode.OK
