"""Output of the demo: steps, progress bars while they run (on a terminal only), and tables at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from demo.traffic import Report

_WIDTH_WITHOUT_TERMINAL = 110


class Screen:
    """Standard output, with colours and progress bars on a terminal."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        if not self._console.is_terminal:
            self._console = Console(highlight=False, width=_WIDTH_WITHOUT_TERMINAL)

    def say(self, text: str) -> None:
        """One line."""
        self._console.print(text, markup=False, soft_wrap=True)

    def done(self, text: str) -> None:
        """Print a step that succeeded."""
        self._console.print("[green]ok[/green]  ", end="")
        self._console.print(text, markup=False, soft_wrap=True)

    def failed(self, text: str) -> None:
        """Print a step that failed."""
        self._console.print("[bold red]NOT OK[/bold red]  ", end="")
        self._console.print(text, markup=False, soft_wrap=True)

    @contextmanager
    def bars(self, total: int, *names: str) -> Iterator[list[Report]]:
        """Show a progress bar per name, up to `total` records; calling a name's report advances its bar."""
        with Progress(
            TextColumn("{task.description:>10}"),
            BarColumn(),
            MofNCompleteColumn(),
            TaskProgressColumn(show_speed=True),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        ) as progress:
            tasks = [progress.add_task(name, total=total) for name in names]

            def report_of(task: int) -> Report:
                return lambda count: progress.advance(tasks[task], count)

            yield [report_of(task) for task in range(len(names))]

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str | int]]) -> None:
        """Print a table; numbers are right-aligned, with thousands separators."""
        table = Table(title=title, title_justify="left", title_style="bold")
        for index, column in enumerate(columns):
            is_number = all(isinstance(row[index], int) for row in rows)
            table.add_column(column, justify="right" if is_number else "left")
        for row in rows:
            table.add_row(*(f"{cell:,}" if isinstance(cell, int) else cell for cell in row))
        self._console.print(table)
