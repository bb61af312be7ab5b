"""Writes rows to Parquet files, one for each topic, partition and hour, on the executor that has the rows.

A file is written below the archive's temporary directory. Its final name is

    <topic>/date=2024-02-29/hour=13/<topic>-<partition>-<first offset>-<last offset>.parquet     (offsets in 20 digits)

to which it is moved when its micro-batch is committed (archive/manifest.py). A file has the columns of the rows except
date and hour, which are in its path. Offsets ascend within a file. At most OPEN_FILES are open at a time: the least
recently written is closed, and a later row of its hour starts another file.
"""

from __future__ import annotations

import datetime
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from barnabas.pipeline.durability import make_durable

OPEN_FILES: Final = 64
ROW_GROUP_ROWS: Final = 128 * 1024
ROW_GROUP_BYTES: Final = 32 << 20
_DAYS_IN_400_YEARS: Final = 146_097
_DAYS_TO_1970: Final = datetime.date(1970, 1, 1).toordinal() - 1
_PLACE: Final = ("topic", "partition", "date", "hour")


class ArchivedFile(NamedTuple):
    """A complete file, moved from `temporary` to `final`; both paths are relative to the archive."""

    temporary: str
    final: str
    topic: str
    partition: int
    first_offset: int
    last_offset: int
    records: int
    size_bytes: int


class _Place(NamedTuple):
    topic: str
    partition: int
    date: str
    hour: int


@dataclass(slots=True)
class _OpenFile:
    temporary: str
    writer: pq.ParquetWriter
    pending: list[pa.RecordBatch]
    pending_rows: int
    pending_bytes: int
    first_offset: int
    last_offset: int
    records: int


class ArchiveFileWriter:
    """Writes the files of one task. `directory` is below the archive and used by this task only."""

    def __init__(self, file_system: fs.FileSystem, root: str, directory: str) -> None:
        self._file_system = file_system
        self._root = root
        self._directory = directory
        self._open: OrderedDict[_Place, _OpenFile] = OrderedDict()
        self._done: list[ArchivedFile] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Write rows with topic, partition, offset, date and hour among their columns. Raises OSError."""
        for place, rows in _by_place(batch):
            self._append(place, rows.drop_columns(["date", "hour"]))

    def finish(self) -> list[ArchivedFile]:
        """Close and sync all files; return them. Raises OSError."""
        while self._open:
            self._close_oldest()
        if isinstance(self._file_system, fs.LocalFileSystem):
            make_durable([f"{self._root}/{file.temporary}" for file in self._done])
        return self._done

    def _append(self, place: _Place, rows: pa.RecordBatch) -> None:
        offsets = rows.column("offset")
        first, last = offsets[0].as_py(), offsets[len(offsets) - 1].as_py()
        file = self._open.get(place)
        if file is None:
            if len(self._open) == OPEN_FILES:
                self._close_oldest()
            file = self._open[place] = self._begin(rows.schema, first)
        self._open.move_to_end(place)
        file.last_offset = last
        file.records += rows.num_rows
        file.pending.append(rows)
        file.pending_rows += rows.num_rows
        file.pending_bytes += rows.nbytes
        if file.pending_rows >= ROW_GROUP_ROWS or file.pending_bytes >= ROW_GROUP_BYTES:
            _flush(file)

    def _begin(self, schema: pa.Schema, first_offset: int) -> _OpenFile:
        self._file_system.create_dir(f"{self._root}/{self._directory}", recursive=True)
        temporary = f"{self._directory}/{uuid.uuid4().hex}.parquet"
        writer = pq.ParquetWriter(f"{self._root}/{temporary}", schema, filesystem=self._file_system, compression="zstd")
        return _OpenFile(temporary, writer, [], 0, 0, first_offset, first_offset, 0)

    def _close_oldest(self) -> None:
        place, file = self._open.popitem(last=False)
        _flush(file)
        file.writer.close()
        path = f"{self._root}/{file.temporary}"
        name = f"{place.topic}-{place.partition}-{file.first_offset:020d}-{file.last_offset:020d}.parquet"
        self._done.append(
            ArchivedFile(
                file.temporary,
                f"{place.topic}/date={place.date}/hour={place.hour:02d}/{name}",
                place.topic,
                place.partition,
                file.first_offset,
                file.last_offset,
                file.records,
                self._file_system.get_file_info(path).size,
            )
        )


def _flush(file: _OpenFile) -> None:
    if file.pending:
        file.writer.write_table(pa.Table.from_batches(file.pending))
        file.pending, file.pending_rows, file.pending_bytes = [], 0, 0


def _by_place(batch: pa.RecordBatch) -> Iterator[tuple[_Place, pa.RecordBatch]]:
    """Split a batch by topic, partition and hour, each part in the batch's order."""

    def parts(rows: pa.RecordBatch, names: tuple[str, ...], found: tuple[Any, ...]) -> Iterator[Any]:
        if not names:
            topic, partition, date, hour = found
            yield _Place(topic, partition, _date_text(date), hour), rows
            return
        column = rows.column(names[0])
        values = pc.unique(column)
        for value in values:
            chosen = rows if len(values) == 1 else rows.filter(pc.equal(column, value))
            yield from parts(chosen, names[1:], (*found, value.value if names[0] == "date" else value.as_py()))

    if batch.num_rows:
        yield from parts(batch, _PLACE, ())


def _date_text(days: int) -> str:
    """Format `days` since 1970 as 2024-02-29, for any year: nanoseconds read as ms are 50 million years ahead.

    Python's dates end at year 9999; the calendar repeats every 400 years.
    """
    cycles = (days + _DAYS_TO_1970) // _DAYS_IN_400_YEARS
    date = datetime.date.fromordinal(_DAYS_TO_1970 + days - cycles * _DAYS_IN_400_YEARS + 1)
    return f"{date.year + 400 * cycles:04d}-{date.month:02d}-{date.day:02d}"
