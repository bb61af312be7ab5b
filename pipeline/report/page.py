"""A self-contained page: one HTML file with its style, scripts and data, which loads no other resource.

It has the console's look, from the console's own style sheet, and its chart library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from importlib.resources import files
from pathlib import Path

from barnabas.pipeline.report.charts import Chart

Cell = str | int | float | datetime | None

_STYLES = (
    ("barnabas.console", "static/vendor/uPlot.min.css"),
    ("barnabas.console", "static/console.css"),
    ("barnabas.pipeline.report", "static/report.css"),
)
_SCRIPTS = (
    ("barnabas.console", "static/vendor/uPlot.iife.min.js"),
    ("barnabas.console", "static/axes.js"),
    ("barnabas.pipeline.report", "static/report.js"),
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table. Columns of numbers are right-aligned, with thousands separators; None is shown as `-`."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, a note, and tables and charts."""

    title: str
    note: str
    content: Sequence[Table | Chart]


def render_page(title: str, facts: Mapping[str, str], sections: Sequence[Section]) -> str:
    """Render the page; `facts` are shown below its title. All text is escaped."""
    facts_html = "".join(f"<div><dt>{escape(name)}</dt><dd>{_fact(value)}</dd></div>" for name, value in facts.items())
    body = "\n".join(_section(section) for section in sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{_assets(_STYLES)}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{escape(title)}</h1>\n<dl class="figures">{facts_html}</dl>\n{body}\n</main>\n'
        f"<script>{_assets(_SCRIPTS)}</script>\n</body>\n</html>\n"
    )


def write_page(path: Path, page: str) -> None:
    """Write the page as UTF-8. Raises OSError."""
    path.write_text(page, encoding="utf-8")


def _fact(value: str) -> str:
    """A setting breaks before its value, not in it."""
    return escape(value).replace("=", "=<wbr>")


def _assets(names: Sequence[tuple[str, str]]) -> str:
    return "\n".join(files(package).joinpath(name).read_text(encoding="utf-8") for package, name in names)


def _section(section: Section) -> str:
    parts = [_chart(part) if isinstance(part, Chart) else _scrolled(part, section.title) for part in section.content]
    note = f"<p>{escape(section.note)}</p>\n" if section.note else ""
    return f"<section>\n<h2>{escape(section.title)}</h2>\n{note}" + "\n".join(parts) + "\n</section>"


def _chart(chart: Chart) -> str:
    """A figure with the data of the chart, and its numbers as a table; or a sentence."""
    sentence = chart.sentence()
    if sentence is not None:
        return f"<p>{escape(sentence)}</p>"
    rows = [
        (label, *(chart.text(values[index]) for values in chart.series.values()))
        for index, label in enumerate(chart.labels)
    ]
    table = _scrolled(Table(("", *chart.series), rows), f"Numbers of: {chart.title}", are_numbers=True)
    return (
        f'<figure class="chart" data-report>\n<figcaption>{escape(chart.caption)}</figcaption>\n'
        f'<div class="plot" role="img" aria-label="{escape(chart.title)}: the numbers are in the table below"></div>\n'
        f'<script type="application/json">{chart.script_data()}</script>\n'
        f"<details><summary>Numbers</summary>{table}</details>\n</figure>"
    )


def _scrolled(table: Table, label: str, *, are_numbers: bool = False) -> str:
    """A table in a part of its own that scrolls. `are_numbers`: all columns but the first, although they are text."""
    region = f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">'
    return f"{region}{_table(table, are_numbers=are_numbers)}</div>"


def _table(table: Table, *, are_numbers: bool) -> str:
    numeric = [
        (are_numbers and index > 0)
        or (bool(table.rows) and all(row[index] is None or isinstance(row[index], int | float) for row in table.rows))
        for index in range(len(table.columns))
    ]
    marks = [' class="number"' if is_number else "" for is_number in numeric]
    head = "".join(
        f'<th scope="col"{mark}>{escape(name)}</th>' for name, mark in zip(table.columns, marks, strict=True)
    )
    rows = "\n".join(
        "<tr>" + "".join(f"<td{mark}>{_cell(cell)}</td>" for cell, mark in zip(row, marks, strict=True)) + "</tr>"
        for row in table.rows
    )
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>"


def _cell(cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, datetime):
        return f'<span class="date">{cell:%Y-%m-%d}</span> {cell:%H:%M}'
    if isinstance(cell, str):
        return escape(cell)
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.3f}"
