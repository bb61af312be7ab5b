"""Output of commands: tables for people (rich), JSON for programs.

JSON is ASCII only: every other character is escaped, so that a line stays one line for any program (some take U+2028
and U+0085 for line ends) and the encoding of the terminal does not matter.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO

import click


def print_json(value: Any) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(value, indent=2))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows under a header; None is shown as `-`, numbers are right-aligned. On a terminal, rich draws the table.

    Elsewhere the columns are only aligned with spaces, no text is wrapped or cut, and rich is not loaded.
    """
    listed = [list(row) for row in rows]
    is_number = [
        any(row[index] is not None for row in listed)
        and all(row[index] is None or type(row[index]) is int for row in listed)
        for index in range(len(columns))
    ]
    texts = [["-" if cell is None else str(cell) for cell in row] for row in listed]
    if sys.stdout.isatty():
        _print_rich_table(columns, texts, is_number)
        return
    widths = [max(map(len, column)) for column in zip(columns, *texts, strict=True)]
    for line in (list(columns), *texts):
        cells = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, is_number, strict=True)
        )
        click.echo("  ".join(cells).rstrip())


def _print_rich_table(columns: Sequence[str], rows: list[list[str]], is_number: Sequence[bool]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column, right in zip(columns, is_number, strict=True):
        table.add_column(column, justify="right" if right else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    Console(highlight=False).print(table)


def print_line(text: str) -> None:
    """Print one line for people on standard output."""
    click.echo(text)


def print_note(text: str) -> None:
    """Print one sentence for people on standard error, where it does not disturb programs."""
    click.echo(f"barnabas: {text}", err=True)


def standard_output() -> BinaryIO:
    """Standard output as a binary stream, which the caller flushes."""
    sys.stdout.flush()
    return sys.stdout.buffer


def is_pipe(descriptor: int) -> bool:
    """Whether a descriptor is a pipe, whose reader can close it."""
    return stat.S_ISFIFO(os.fstat(descriptor).st_mode)
