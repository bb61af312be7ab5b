"""Lines of output while a progress bar is drawn.

The bar replaces sys.stdout while it is drawn: lines printed then may go to the terminal although standard output is a
file, or be appended to the bar. So lines are written to the original stream; if that is a terminal too, they wait until
the bar is removed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click


class LineReport:
    """Create it before the bar; `line` may be called while the bar is drawn."""

    def __init__(self) -> None:
        self._stream = sys.stdout
        self._waits = sys.stdout.isatty()
        self._waiting: list[str] = []

    def line(self, text: str) -> None:
        """Print one line to standard output, now or after the bar."""
        if self._waits:
            self._waiting.append(text)
        else:
            click.echo(text, file=self._stream)

    def flush(self) -> None:
        """Print waiting lines after the bar was removed."""
        for text in self._waiting:
            click.echo(text, file=self._stream)
        self._waiting.clear()


@contextmanager
def line_report() -> Iterator[LineReport]:
    """A report to use around a bar. Prints waiting lines at the end, also after an exception."""
    report = LineReport()
    try:
        yield report
    finally:
        report.flush()
