"""Rendering of samples as the page docs/performance.md; every cell is a median with minimum and maximum."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

from benchmarks.table.rounds import Samples

_PAGE_WIDTH: Final = 120


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure of a table: its sample, its format, and a `goal` to append."""

    line: str
    column: str
    form: str = "{:.2f}"
    goal: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table. Rows are (name, cells); a None cell is empty."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]


def _bulk(line: str, goal: str) -> tuple[Cell | None, ...]:
    return (
        Cell(line, "mb_per_s", "{:.0f}"),
        Cell(line, "records_per_s", "{:,.0f}"),
        Cell(line, "cpu_s_per_gb", "{:.3f}", goal),
        Cell(line, "p50_us", "{:.0f}"),
        Cell(line, "generator_busy_percent", "{:.0f}"),
    )


def _small(line: str, goal: str) -> tuple[Cell | None, ...]:
    return (
        Cell(line, "requests_per_s", "{:,.0f}"),
        Cell(line, "p50_us", "{:.0f}"),
        Cell(line, "p99_us", "{:.0f}"),
        Cell(line, "cpu_us_per_request", "{:.1f}", goal),
        Cell(line, "generator_busy_percent", "{:.0f}"),
    )


def _durable(line: str, goal: str) -> tuple[Cell | None, ...]:
    return (Cell(line, "requests_per_s", "{:,.0f}", goal), *_small(line, "")[1:])


def _sync() -> tuple[Cell | None, ...]:
    return (
        Cell("sync", "requests_per_s", "{:,.0f}"),
        Cell("sync", "p50_us", "{:.0f}"),
        Cell("sync", "p99_us", "{:.0f}"),
        Cell("sync", "cpu_us_per_request", "{:.1f}"),
    )


TABLES = (
    Table(
        "1 KiB records in requests of 1 MiB, one connection, one partition",
        ("line", "MB/s", "records/s", "broker CPU s/GB", "p50 of a request, us", "generator busy, %"),
        (
            ("produce, acks=1, 4 requests in flight", _bulk("produce", "<= 0.45")),
            ("fetch the same, 1 request in flight", _bulk("fetch", "<= 0.30")),
            ("floor: produce, a C server that receives and writes", _bulk("floor_produce", "")),
            ("floor: fetch, a C server that only sends from the file", _bulk("floor_fetch", "")),
        ),
    ),
    Table(
        "One record of 100 bytes a request, acks=1, 1 request in flight per connection, one partition",
        ("connections", "requests/s", "p50 us", "p99 us", "broker CPU us per request", "generator busy, %"),
        (
            ("1", _small("one_record_1", "")),
            ("8", _small("one_record_8", "<= 10")),
            ("64", _small("one_record_64", "")),
            ("8, beside a compaction", _small("one_record_8_compacting", "")),
            ("limit: 1, a C server that only answers", _small("server_1", "")),
            ("limit: 8", _small("server_8", "")),
            ("limit: 64", _small("server_64", "")),
            ("floor: 1, a C server that also writes", _small("floor_1", "")),
            ("floor: 8", _small("floor_8", "")),
            ("floor: 64", _small("floor_64", "")),
        ),
    ),
    Table(
        "What the broker adds to the floor: its CPU less the C server's in the same round",
        ("line", "CPU"),
        (
            ("produce 1 KiB records, s/GB", (Cell("added_produce", "cpu_s_per_gb", "{:.3f}", "<= 0.25"),)),
            ("fetch 1 KiB records, s/GB", (Cell("added_fetch", "cpu_s_per_gb", "{:.3f}"),)),
            ("one record, 1 connection, us", (Cell("added_one_record_1", "cpu_us_per_request", "{:.1f}"),)),
            ("one record, 8 connections, us", (Cell("added_one_record_8", "cpu_us_per_request", "{:.1f}"),)),
            ("one record, 64 connections, us", (Cell("added_one_record_64", "cpu_us_per_request", "{:.1f}"),)),
        ),
    ),
    Table(
        "One record a request with flush.messages=1: each answer comes after an fdatasync",
        ("connections, partitions", "requests/s", "p50 us", "p99 us", "broker CPU us per request", "generator busy, %"),
        (
            ("1, 1", _small("durable_1_1", "")),
            ("8, 1", _small("durable_1_8", "")),
            ("64, 1", _durable("durable_1_64", ">= 50,000")),
            ("1, 64", _small("durable_64_1", "")),
            ("8, 64", _small("durable_64_8", "")),
            ("64, 64", _small("durable_64_64", "")),
            ("limit: append and fdatasync in C, one after the other", _sync()),
        ),
    ),
    Table(
        "Compaction: one cleaner thread, records of 200 bytes, half a million keys per GiB, all of it dirty",
        ("log", "MB/s", "CPU s/GB", "time / time of cp", "memory above the configured buffers, MiB", "kept, %"),
        (
            (
                "both passes",
                (
                    Cell("compaction", "mb_per_s", "{:.0f}", ">= 400"),
                    Cell("compaction", "cpu_s_per_gb", "{:.2f}", "<= 2.5"),
                    Cell("compaction", "cp_ratio"),
                    Cell("compaction", "memory_above_buffers_mib", "{:.0f}", "<= 20"),
                    Cell("compaction", "kept_percent", "{:.0f}"),
                ),
            ),
        ),
    ),
    Table(
        "Footprint",
        ("what", "measured"),
        (
            ("start to first answer, empty directory, s", (Cell("footprint", "start_s", "{:.3f}", "<= 0.2"),)),
            ("CPU of the start, s", (Cell("footprint", "start_cpu_s"),)),
            ("RSS idle, MiB", (Cell("footprint", "idle_rss_mib", "{:.1f}", "<= 40"),)),
            ("RSS after the load above, MiB", (Cell("loaded", "loaded_rss_mib", "{:.1f}"),)),
            ("idle CPU, % of a core", (Cell("footprint", "idle_cpu_percent"),)),
        ),
    ),
    Table(
        "The limits: the same bytes, in C, in the same rounds",
        ("limit", "MB/s", "CPU s/GB"),
        (
            ("memcpy", (Cell("memcpy", "mb_per_s", "{:.0f}"), Cell("memcpy", "cpu_s_per_gb", "{:.3f}"))),
            (
                "page-cache write, 1 MiB blocks",
                (Cell("write", "mb_per_s", "{:.0f}"), Cell("write", "cpu_s_per_gb", "{:.3f}")),
            ),
            (
                "loopback TCP, CPU of the receiver",
                (Cell("tcp", "mb_per_s", "{:.0f}"), Cell("tcp", "cpu_s_per_gb", "{:.3f}")),
            ),
            (
                "sendfile over loopback TCP, CPU of the sender",
                (Cell("sendfile", "mb_per_s", "{:.0f}"), Cell("sendfile", "cpu_s_per_gb", "{:.3f}")),
            ),
        ),
    ),
)


def render_tables(samples: Samples) -> str:
    """Render the tables in Markdown. Rows of other systems follow those of Barnabas."""
    return "\n".join(_render(table, samples) for table in TABLES)


def _render(table: Table, samples: Samples) -> str:
    width = len(table.columns)
    lines = [f"### {table.title}", "", _row(table.columns), _row(["---"] * width)]
    others = sorted({line.split(": ")[0] for line in samples if ": " in line})
    rows = list(table.rows)
    for other in others:
        rows += [
            (f"{other}: {name}", tuple(_of_system(other, cell) for cell in cells))
            for name, cells in table.rows
            if all(cell is None or f"{other}: {cell.line}" in samples for cell in cells)
        ]
    for name, cells in rows:
        texts = [_text(cell, samples) for cell in cells]
        lines.append(_row([name, *texts, *[""] * (width - 1 - len(texts))]))
    return "\n".join([*lines, ""])


def _of_system(name: str, cell: Cell | None) -> Cell | None:
    return None if cell is None else replace(cell, line=f"{name}: {cell.line}", goal="")


def _row(cells: tuple[str, ...] | list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _text(cell: Cell | None, samples: Samples) -> str:
    if cell is None:
        return ""
    values = [columns[cell.column] for columns in samples[cell.line]]
    low, middle, high = (cell.form.format(value) for value in (min(values), median(values), max(values)))
    goal = f"; goal {cell.goal}" if cell.goal else ""
    return f"**{middle}** ({low} - {high}){goal}"


def write_page(page: str, samples: Samples, machine: list[tuple[str, str]], command: str, rounds: int) -> str:
    """Replace the text between the two marks of `page` with the tables. Raises ValueError without the marks."""
    begin, end = "<!-- measured: begin -->\n", "<!-- measured: end -->"
    head, mark, rest = page.partition(begin)
    _, second_mark, tail = rest.partition(end)
    if not mark or not second_mark:
        raise ValueError("docs/performance.md lacks the marks around its measured part")
    about = "\n".join(f"- {what}: {value}" for what, value in machine)
    sentence = f"Measured with `{command}`, medians of {rounds} rounds (minimum - maximum), on:"
    text = f"{textwrap.fill(sentence, _PAGE_WIDTH, break_on_hyphens=False)}\n\n{about}\n\n"
    return head + mark + "\n" + text + render_tables(samples) + "\n" + second_mark + tail
