"""The exit codes of every command. Scripts rely on them: never renumber one."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process tells its caller."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NO_CONNECTION = 3
    TIMED_OUT = 4
    INTERNAL = 70  # EX_SOFTWARE of sysexits.h
    INTERRUPTED = 130  # 128 + SIGINT, as a shell says it
    CLOSED_PIPE = 141  # 128 + SIGPIPE: what `cat` would end with


EXIT_CODE_HELP = """\
\b
Exit codes:
    0  done
    1  the broker refused, or the operation failed
    2  wrong usage, or a configuration that is refused
    3  no connection to the broker
    4  timed out
   70  a bug in barnabas (BARNABAS_LOG_LEVEL=debug shows where)
  130  interrupted by Ctrl-C
  141  the reader of our output went away (`| head`)
"""
