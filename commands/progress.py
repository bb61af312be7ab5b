"""A progress bar on standard error, if that is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

_REDRAW_INTERVAL_S = 0.1

Unit = Literal["records", "bytes"]


class Progress:
    """Progress of a command. This class draws nothing."""

    def advance(self, amount: int) -> None:
        """Count `amount` more units."""


class _DrawnProgress(Progress):
    """Passes the count to rich at most every 0.1 s: a call for each record would cost more than the record."""

    def __init__(self, rich_progress: RichProgress, task: TaskID) -> None:
        self._rich_progress = rich_progress
        self._task = task
        self._pending = 0
        self._next_draw = time.monotonic()

    def advance(self, amount: int) -> None:
        self._pending += amount
        now = time.monotonic()
        if now >= self._next_draw:
            self.flush()
            self._next_draw = now + _REDRAW_INTERVAL_S

    def flush(self) -> None:
        self._rich_progress.advance(self._task, self._pending)
        self._pending = 0


@contextmanager
def progress_bar(description: str, *, total: int | None, unit: Unit, wanted: bool = True) -> Iterator[Progress]:
    """Draw a bar towards `total` units (None: unknown, a moving bar) and remove it at the end.

    `wanted` False draws nothing, for output that would share the terminal with the bar.
    """
    if not wanted or not sys.stderr.isatty():
        yield Progress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    count = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    with RichProgress(
        TextColumn("{task.description}"),
        BarColumn(),
        count,
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as rich_progress:
        drawn = _DrawnProgress(rich_progress, rich_progress.add_task(description, total=total))
        yield drawn
        drawn.flush()
