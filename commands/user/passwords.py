"""Passwords for commands: never an argument, which every user of the machine could read in the list of processes."""

from __future__ import annotations

import stat
import sys
from typing import TYPE_CHECKING

import click

from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.failures import CommandFailure
from barnabas.commands.output import print_note

if TYPE_CHECKING:
    from pathlib import Path

_READABLE_BY_OTHERS = stat.S_IRGRP | stat.S_IROTH


def read_password(user: str, password_file: Path | None) -> str:
    """Return the password: the first line of the file or of standard input; a terminal is prompted twice.

    Raises CommandFailure for an empty one, OSError.
    """
    if password_file is not None:
        password = _first_line(password_file.read_text())
        if password_file.stat().st_mode & _READABLE_BY_OTHERS:
            print_note(f"{password_file} is readable by other users: chmod 600 {password_file}")
    elif sys.stdin.isatty():
        password = str(click.prompt(f"Password of {user}", hide_input=True, confirmation_prompt=True))
    else:
        password = _first_line(sys.stdin.readline())
    if not password:
        raise CommandFailure("the password is empty", ExitCode.USAGE)
    return password


def _first_line(text: str) -> str:
    lines = text.splitlines()
    return lines[0] if lines else ""
