"""Lines of output while a progress bar is drawn.

The bar takes sys.stdout for itself while it stands: what is printed then may go to the terminal where standard output
is a file, or be glued to the bar. So lines go to the stream that was there before; and where that is a terminal, too,
they wait until the bar is gone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click


class LineReport:
    """Made before the bar; `line` may be called while it stands."""

    def __init__(self) -> None:
        self._stream = sys.stdout
        self._waits = sys.stdout.isatty()
        self._waiting: list[str] = []

    def line(self, text: str) -> None:
        """One line to standard output, now or when the bar is gone."""
        if self._waits:
            self._waiting.append(text)
        else:
            click.echo(text, file=self._stream)

    def flush(self) -> None:
        """The bar is gone."""
        for text in self._waiting:
            click.echo(text, file=self._stream)
        self._waiting.clear()


@contextmanager
def line_report() -> Iterator[LineReport]:
    """A report around a bar; what waits is printed at the end, also when the work was broken off."""
    report = LineReport()
    try:
        yield report
    finally:
        report.flush()
