"""Failures of commands: one sentence on standard error and an exit code, never a traceback.

Commands raise `CommandFailure` or let the client's errors through; `failure_of` turns any exception into the sentence
and the code.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import traceback

from barnabas.commands.exit_codes import ExitCode
from barnabas.protocol.errors import BrokerError, DecodeError, ErrorCode

_TIMEOUT_CODES = frozenset({ErrorCode.REQUEST_TIMED_OUT})
_DENIALS = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


class CommandFailure(Exception):
    """Ends a command: `message` is one sentence for people, `exit_code` is for scripts."""

    def __init__(self, message: str, exit_code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code


class ClosedPipeError(Exception):
    """The reader of standard output closed it: the command ends without a message."""


def failure_of(error: Exception) -> CommandFailure:
    """Return the sentence and the exit code for an exception raised by a command."""
    if isinstance(error, CommandFailure):
        return error
    from barnabas.clients.errors import ClientConfigError, ClientError, DeliveryTimeoutError

    if isinstance(error, BrokerError):
        code = ExitCode.TIMED_OUT if error.code in _TIMEOUT_CODES else ExitCode.FAILED
        return CommandFailure(f"{_one_line(_with_next_step(error))} ({error.code.name})", code)
    if isinstance(error, TimeoutError):
        is_unreachable = isinstance(error, DeliveryTimeoutError) and isinstance(error.last_error, ConnectionError)
        code = ExitCode.NO_CONNECTION if is_unreachable else ExitCode.TIMED_OUT
        return CommandFailure(_one_line(str(error)) or "timed out", code)
    if isinstance(error, ConnectionError):
        return CommandFailure(_one_line(str(error)) or "the connection was lost", ExitCode.NO_CONNECTION)
    if isinstance(error, ClientConfigError):
        return CommandFailure(_one_line(str(error)), ExitCode.USAGE)
    if isinstance(error, ClientError):
        return CommandFailure(_one_line(str(error)))
    if isinstance(error, DecodeError):
        return CommandFailure(f"the broker's answer cannot be read: {_one_line(str(error))}")
    if isinstance(error, OSError):
        return CommandFailure(_os_error_sentence(error))
    sentence = f"internal error: {type(error).__name__}: {_one_line(str(error))}"
    return CommandFailure(f"{sentence} (BARNABAS_LOG_LEVEL=debug shows where)", ExitCode.INTERNAL)


def report_failure(error: Exception | KeyboardInterrupt) -> ExitCode:
    """Print the sentence of a failure, unless the reason is obvious to the user; return the exit code."""
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if is_closed_pipe(error):
        _drop_output()
        return ExitCode.CLOSED_PIPE
    if _is_debugging():
        traceback.print_exception(error)
    failure = failure_of(error)
    sys.stderr.write(f"barnabas: {failure.message}\n")
    return failure.exit_code


def _drop_output() -> None:
    """Discard buffered output, because its reader is gone. A stand-in for standard output has no descriptor."""
    if sys.__stdout__ is None or sys.stdout is not sys.__stdout__:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.__stdout__.fileno())
    os.close(nowhere)


def _is_debugging() -> bool:
    """Whether to print tracebacks: by BARNABAS_LOG_LEVEL, or by `serve --log-level`."""
    return os.environ.get("BARNABAS_LOG_LEVEL", "").lower() == "debug" or logging.getLogger().level == logging.DEBUG


def is_closed_pipe(error: BaseException) -> bool:
    """Whether writing to standard output failed because its reader closed it."""
    return isinstance(error, ClosedPipeError) or (isinstance(error, OSError) and error.errno == errno.EPIPE)


def _with_next_step(error: BrokerError) -> str:
    """Return the message; Kafka's own, "Topic authorization failed.", does not say what to do."""
    if error.code not in _DENIALS or "acl explain" in error.message:
        return error.message
    from barnabas.clients.errors import reason_of

    return f"{error.message.removesuffix('.')}: {reason_of(error.code)}"


def _os_error_sentence(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {reason}" if error.filename else reason


def _one_line(text: str) -> str:
    return " ".join(text.split())
