"""The input: every flight that left New York in 2013, one CSV line each, ordered by scheduled hour.

A record's key is the aircraft's tail number (`NA`: unknown), its value the unchanged line, its timestamp the column
`time_hour`.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

DATA_FILE = Path(__file__).with_name("flights.csv.xz")

_TAIL_NUMBER_COLUMN = b"tailnum"
_HOUR_COLUMN = b"time_hour"


class Flight(NamedTuple):
    """One record to send."""

    key: bytes
    value: bytes
    timestamp_ms: int


def load_flights(rows: int | None = None, path: Path = DATA_FILE) -> list[Flight]:
    """Load the first `rows` lines of the file (None: all), sorted by `time_hour`; equal hours keep the file's order."""
    with lzma.open(path, "rb") as file:
        head = file.readline().rstrip(b"\n").split(b",")
        flights = list(_flights(islice(file, rows), head.index(_TAIL_NUMBER_COLUMN), head.index(_HOUR_COLUMN)))
    flights.sort(key=attrgetter("timestamp_ms"))
    return flights


def _flights(lines: Iterator[bytes], key_column: int, hour_column: int) -> Iterator[Flight]:
    hours: dict[bytes, int] = {}
    for raw_line in lines:
        line = raw_line.rstrip(b"\n")
        fields = line.split(b",")
        hour = fields[hour_column]
        timestamp_ms = hours.get(hour)
        if timestamp_ms is None:
            timestamp_ms = hours[hour] = int(datetime.fromisoformat(hour.decode("ascii")).timestamp() * 1000)
        yield Flight(fields[key_column], line, timestamp_ms)
