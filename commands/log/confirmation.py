"""The question that a destructive command asks before it starts."""

from __future__ import annotations

import sys

import click

from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.failures import CommandFailure


def confirm(question: str) -> None:
    """Ask on the terminal. Raises CommandFailure if the answer is no, or standard input is not a terminal."""
    if not sys.stdin.isatty():
        raise CommandFailure("this cannot be undone: give --yes if standard input is not a terminal", ExitCode.USAGE)
    if not click.confirm(f"This cannot be undone. {question}"):
        raise CommandFailure("nothing was changed")
