"""The work of `barnabas serve`, from its arguments to its exit code. Imports only the broker's own dependencies."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, NoReturn

from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.failures import CommandFailure, report_failure
from barnabas.commands.serve_arguments import ServeArguments

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from barnabas.config import BrokerConfig

    Run = Callable[[BrokerConfig, Path | None], int]

logger = logging.getLogger(__name__)

_STANDARD_INPUT = 0
_CHUNK_BYTES = 4096
_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def serve_and_exit(arguments: ServeArguments) -> NoReturn:
    """Serve, report a failure as every command does, and raise SystemExit."""
    try:
        exit_code = serve_broker(arguments)
    except (Exception, KeyboardInterrupt) as error:
        raise SystemExit(report_failure(error)) from error
    raise SystemExit(exit_code)


def serve_broker(arguments: ServeArguments, run: Run | None = None) -> int:
    """Serve until a signal and return the exit code. Raises CommandFailure if the broker cannot start.

    `run` replaces the broker: it gets the configuration and the ready file, and raises StartupError.
    """
    from barnabas.config.loader import ConfigError, load

    gc.disable()  # as in `entry`, for a start whose arguments click has parsed
    try:
        logging.basicConfig(stream=sys.stderr, level=arguments.log_level.upper(), format=_LOG_FORMAT)
        overrides = arguments.overrides
        if arguments.ignore_security:
            overrides = (*overrides, "ignore.security=true")
        if arguments.adopt_topics:
            overrides = (*overrides, "adopt.topics=true")
        try:
            config = load(config_file=arguments.config_file, environ=os.environ, overrides=overrides)
        except ConfigError as error:
            raise CommandFailure(str(error), ExitCode.USAGE) from error
        from barnabas.broker.startup_error import StartupError

        if run is None:
            from barnabas.broker import server  # late, so that a configuration error is reported quickly

            run = server.run
        if arguments.stop_with_stdin:
            threading.Thread(target=stop_at_end_of_input, name="stdin-watch", daemon=True).start()
        try:
            return run(config, arguments.ready_file)
        except StartupError as error:
            raise CommandFailure(str(error)) from error
    finally:
        gc.enable()  # a start that was refused, in a process that goes on: a test's


def stop_at_end_of_input() -> None:
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
