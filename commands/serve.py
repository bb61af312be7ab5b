"""`barnabas serve`: run the broker. Imports only what the broker itself needs."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import click

from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.failures import CommandFailure

LOG_LEVELS = ("debug", "info", "warning", "error")

_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@click.command()
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    envvar="BARNABAS_CONFIG",
    show_envvar=True,
    help="Properties in the form of Kafka's server.properties.",
)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="K=V",
    help="Set a property, over the file and the environment (BARNABAS_LOG_RETENTION_MS and the like). Repeatable.",
)
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PATH",
    help="Written once connections are accepted: JSON with pid, host, port, metrics_port, log_dirs.",
)
@click.option(
    "--stop-with-stdin",
    is_flag=True,
    help="Stop when standard input ends: for whoever starts a broker as a child through a pipe and may be killed.",
)
@click.option(
    "--ignore-security",
    is_flag=True,
    help="Open a directory that holds Kafka's ACLs or SCRAM users: they are kept, and nobody is kept out by them.",
)
@click.option(
    "--log-level",
    type=click.Choice(LOG_LEVELS, case_sensitive=False),
    envvar="BARNABAS_LOG_LEVEL",
    show_envvar=True,
    default="info",
    show_default=True,
    help="How much is logged to standard error.",
)
def serve(
    config_file: Path | None,
    overrides: tuple[str, ...],
    ready_file: Path | None,
    stop_with_stdin: bool,
    ignore_security: bool,
    log_level: str,
) -> int:
    """Run the broker until SIGTERM or SIGINT.

    It then finishes the requests at hand, flushes and closes the logs, and exits 0; a second signal ends it at once.
    `barnabas config list` shows every property. With --set listeners=127.0.0.1:0 it takes a free port, and the ready
    file says which.
    """
    from barnabas.config.loader import ConfigError, load

    logging.basicConfig(stream=sys.stderr, level=log_level.upper(), format=_LOG_FORMAT)
    if ignore_security:
        overrides = (*overrides, "ignore.security=true")
    try:
        config = load(config_file=config_file, environ=os.environ, overrides=overrides)
    except ConfigError as error:
        raise CommandFailure(str(error), ExitCode.USAGE) from error
    from barnabas.broker.server import StartupError, run  # only now: a configuration error need not wait for it

    if stop_with_stdin:
        from barnabas.commands.parent_watch import stop_when_standard_input_ends

        stop_when_standard_input_ends()
    try:
        return run(config, ready_file)
    except StartupError as error:
        raise CommandFailure(str(error)) from error
