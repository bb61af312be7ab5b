"""`barnabas serve`: its options, for the help and for messages about wrong usage.

Plain arguments are parsed by `serve_arguments`, without click: a new option belongs there, too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from barnabas.commands.serve_arguments import LOG_LEVELS, ServeArguments
from barnabas.commands.serving import serve_broker

_OPTIONS = (
    click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        envvar="BARNABAS_CONFIG",
        show_envvar=True,
        help="Properties in the form of Kafka's server.properties.",
    ),
    click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="K=V",
        help="Set a property, overriding the file and the environment (BARNABAS_LOG_RETENTION_MS, ...). Repeatable.",
    ),
    click.option(
        "--ready-file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="PATH",
        help="File to write once connections are accepted: JSON with pid, host, port, ports, metrics_port, log_dirs. "
        "With `-` it is one line on standard output.",
    ),
    click.option(
        "--stop-with-stdin",
        is_flag=True,
        help="Stop when standard input ends: for a parent process that holds the other end of a pipe and may be "
        "killed.",
    ),
    click.option(
        "--ignore-security",
        is_flag=True,
        help="Serve a directory with ACLs or users although the configuration does not enforce them. Quotas still "
        "hold.",
    ),
    click.option(
        "--adopt-topics",
        is_flag=True,
        help="Serve the topics of a directory without a metadata log, as a Kafka with ZooKeeper leaves it. Nothing in "
        "them is deleted or compacted until their configs are set.",
    ),
    click.option(
        "--log-level",
        type=click.Choice(LOG_LEVELS, case_sensitive=False),
        envvar="BARNABAS_LOG_LEVEL",
        show_envvar=True,
        default="info",
        show_default=True,
        help="Level of the log on standard error.",
    ),
)

Command = TypeVar("Command", bound=Callable[..., Any])


def broker_options(command: Command) -> Command:
    """Add the options of ServeArguments, which belong to every command that runs a broker."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command()
@broker_options
def serve(**options: Any) -> int:
    """Run the broker until SIGTERM or SIGINT.

    Then it finishes current requests, flushes and closes the logs, and exits 0; a second signal ends it immediately.
    `barnabas config list` shows every property. With --set listeners=127.0.0.1:0 it listens on a free port, which is
    in the ready file.
    """
    return serve_broker(ServeArguments(**options))
