"""`barnabas serve`: run the broker. Imports only the broker's own dependencies."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from pathlib import Path

import click

from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.failures import CommandFailure

logger = logging.getLogger(__name__)

LOG_LEVELS = ("debug", "info", "warning", "error")

_STANDARD_INPUT = 0
_CHUNK_BYTES = 4096
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
    help="Set a property, overriding the file and the environment (BARNABAS_LOG_RETENTION_MS, ...). Repeatable.",
)
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PATH",
    help="File to write once connections are accepted: JSON with pid, host, port, metrics_port, log_dirs.",
)
@click.option(
    "--stop-with-stdin",
    is_flag=True,
    help="Stop when standard input ends: for a parent process that holds the other end of a pipe and may be killed.",
)
@click.option(
    "--ignore-security",
    is_flag=True,
    help="Serve a directory with ACLs or users although the configuration does not enforce them. Quotas still hold.",
)
@click.option(
    "--log-level",
    type=click.Choice(LOG_LEVELS, case_sensitive=False),
    envvar="BARNABAS_LOG_LEVEL",
    show_envvar=True,
    default="info",
    show_default=True,
    help="Level of the log on standard error.",
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

    Then it finishes current requests, flushes and closes the logs, and exits 0; a second signal ends it immediately.
    `barnabas config list` shows every property. With --set listeners=127.0.0.1:0 it listens on a free port, which is
    in the ready file.
    """
    from barnabas.config.loader import ConfigError, load

    logging.basicConfig(stream=sys.stderr, level=log_level.upper(), format=_LOG_FORMAT)
    if ignore_security:
        overrides = (*overrides, "ignore.security=true")
    try:
        config = load(config_file=config_file, environ=os.environ, overrides=overrides)
    except ConfigError as error:
        raise CommandFailure(str(error), ExitCode.USAGE) from error
    from barnabas.broker.server import StartupError, run  # late, so that a configuration error is reported quickly

    if stop_with_stdin:
        threading.Thread(target=_stop_at_end_of_input, name="stdin-watch", daemon=True).start()
    try:
        return run(config, ready_file)
    except StartupError as error:
        raise CommandFailure(str(error)) from error


def _stop_at_end_of_input() -> None:
    """Send this process SIGTERM, for a clean stop, when standard input ends.

    A parent that was killed cannot stop its child, but its end of a pipe is closed. (Linux's parent-death signal would
    not do: it follows the thread that forked, not the process.)
    """
    try:
        while os.read(_STANDARD_INPUT, _CHUNK_BYTES):
            pass
    except OSError:  # closed or not readable: no parent either
        pass
    logger.info("standard input ended: the parent process is gone or requests a stop")
    os.kill(os.getpid(), signal.SIGTERM)
