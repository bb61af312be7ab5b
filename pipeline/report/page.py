"""A self-contained page: one HTML file with its style and charts, which loads no other resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

Cell = str | int | float | None

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem } h2 { font-size: 1.2rem; margin: 2.2rem 0 .4rem; overflow-wrap: anywhere }
p { margin: .3rem 0 .8rem; max-width: 48rem } .facts { color: #555 }
.wide { overflow-x: auto } table { border-collapse: collapse; margin: .6rem 0 1.2rem; font-size: .9rem }
th, td { padding: .2rem .7rem; border-bottom: 1px solid #ddd; text-align: left; white-space: nowrap }
th { border-bottom: 2px solid #999; font-weight: 600 }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
figure { margin: .8rem 0 } svg { width: 100%; height: auto }
"""


@dataclass(frozen=True, slots=True)
class Table:
    """A table. Columns of numbers are right-aligned, with thousands separators; None is shown as `-`."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, a note, and tables and charts (`<svg>` elements)."""

    title: str
    note: str
    content: Sequence[Table | str]


def render_page(title: str, facts: Mapping[str, str], sections: Sequence[Section]) -> str:
    """Render the page; `facts` are shown below its title. All text is escaped, charts are inserted unchanged."""
    facts_text = " &middot; ".join(f"{escape(name)}: {escape(value)}" for name, value in facts.items())
    body = "\n".join(_section(section) for section in sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f'<h1>{escape(title)}</h1>\n<p class="facts">{facts_text}</p>\n{body}\n</body>\n</html>\n'
    )


def write_page(path: Path, page: str) -> None:
    """Write the page as UTF-8. Raises OSError."""
    path.write_text(page, encoding="utf-8")


def _section(section: Section) -> str:
    parts = [
        f'<div class="wide">{_table(part)}</div>' if isinstance(part, Table) else f"<figure>{part}</figure>"
        for part in section.content
    ]
    note = f"<p>{escape(section.note)}</p>\n" if section.note else ""
    return f"<h2>{escape(section.title)}</h2>\n{note}" + "\n".join(parts)


def _table(table: Table) -> str:
    numeric = [
        bool(table.rows) and all(row[index] is None or isinstance(row[index], int | float) for row in table.rows)
        for index in range(len(table.columns))
    ]
    marks = [' class="n"' if is_number else "" for is_number in numeric]
    head = "".join(f"<th{mark}>{escape(name)}</th>" for name, mark in zip(table.columns, marks, strict=True))
    rows = "\n".join(
        "<tr>" + "".join(f"<td{mark}>{_cell(cell)}</td>" for cell, mark in zip(row, marks, strict=True)) + "</tr>"
        for row in table.rows
    )
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>"


def _cell(cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return escape(cell)
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.3f}"
