"""Exit codes of all commands. Scripts rely on them: never renumber one."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit code of the process."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NO_CONNECTION = 3
    TIMED_OUT = 4
    INTERNAL = 70  # EX_SOFTWARE of sysexits.h
    INTERRUPTED = 130  # 128 + SIGINT, as in shells
    CLOSED_PIPE = 141  # 128 + SIGPIPE, as with `cat`


EXIT_CODE_HELP = """\
\b
Exit codes:
    0  done
    1  the broker refused the request, or the operation failed
    2  wrong usage, or an invalid configuration
    3  no connection to the broker
    4  timed out
   70  a bug in barnabas (BARNABAS_LOG_LEVEL=debug shows where)
  130  interrupted by Ctrl-C
  141  the reader of the output closed it (`| head`)
"""
