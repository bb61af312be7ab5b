"""What commands print: tables for people (rich), JSON for programs.

JSON is ASCII only: every other character is escaped, so that a line stays one line for any program (U+2028 and U+0085
are line ends to some) and the encoding of the terminal does not matter.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, BinaryIO

import click

_UNWRAPPED_WIDTH = 10_000
"""Columns assumed when the output is no terminal: nothing may be wrapped or cut there."""


def print_json(value: Any) -> None:
    """One JSON document."""
    click.echo(json.dumps(value, indent=2))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str | None = None) -> None:
    """Rows under a head. Numbers are set flush right; None is shown as `-`."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    listed = [list(row) for row in rows]
    is_terminal = sys.stdout.isatty()
    console = Console(file=sys.stdout, highlight=False, width=None if is_terminal else _UNWRAPPED_WIDTH)
    table = Table(
        box=box.SIMPLE_HEAD if is_terminal else None, show_edge=False, pad_edge=False, title=title, title_justify="left"
    )
    for index, column in enumerate(columns):
        cells = [row[index] for row in listed if row[index] is not None]
        is_number = bool(cells) and all(isinstance(cell, int) and not isinstance(cell, bool) for cell in cells)
        table.add_column(column, justify="right" if is_number else "left", no_wrap=not is_terminal)
    for row in listed:
        table.add_row(*(Text("-" if cell is None else str(cell)) for cell in row))
    console.print(table)


def print_line(text: str) -> None:
    """One sentence for people on standard output."""
    click.echo(text)


def print_note(text: str) -> None:
    """One sentence for people on standard error: it is in no program's way."""
    click.echo(f"barnabas: {text}", err=True)


def time_text(timestamp_ms: int) -> str:
    """ISO 8601 in UTC with milliseconds; the number itself where it is no time that Python can write."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{timestamp_ms % 1000:03d}Z"


def standard_output() -> BinaryIO:
    """Standard output for bytes. The caller flushes."""
    sys.stdout.flush()
    return sys.stdout.buffer


def is_pipe(descriptor: int) -> bool:
    """Whether the file behind a descriptor is a pipe or a socket, whose other end can go away."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
