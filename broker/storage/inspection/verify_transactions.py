"""Checks the transaction indexes of one log against the transactions in its batches, segment by segment.

A row names an abort marker of its producer in its own segment, and a first offset that is not above the first data of
that transaction that is still there: retention and the cleaner may have taken what was before. An abort marker whose
transaction has data has its row. The last stable offset of a row is at most where another transaction was still open,
and at most the offset behind the marker. A row without data is none to be found: the cleaner keeps a marker, and its
row, longer than the data. See transaction_index for the format. Source: Kafka ProducerStateManager, TransactionIndex.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from barnabas.broker.storage.index.transaction_index import ROW_BYTES, VERSION, AbortedTxn
from barnabas.broker.storage.inspection.findings import Finding
from barnabas.broker.storage.inspection.index_entries import read_transaction_index
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.end_marker import EndMarker, decode_end_marker
from barnabas.protocol.records.reader import read_records


class TransactionsCheck:
    """The check of one log. Per segment, in order: `begin`, `note` for every whole batch, `end`."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        """Producer id -> the offset of the first data that was met of its open transaction."""
        self._path = Path()
        self._rows: dict[int, tuple[int, AbortedTxn]] = {}
        """Marker's offset -> (position, row), of the rows whose marker was not met yet."""
        self._is_compared = False
        self._excused_from = 0

    def begin(self, path: Path, *, may_lag: bool) -> Iterator[Finding]:
        """The next segment, whose `.txnindex` is at `path` or is not there. Raises OSError.

        `may_lag`: batches may be there whose rows are not read, and rows whose batches are not: a broker is writing.
        """
        self._path = path
        self._rows = {}
        self._is_compared = True
        last_before = -1
        try:
            content = read_transaction_index(path)
        except FileNotFoundError:
            self._excused_from = 0 if may_lag else 2**63
            return
        if content.odd_bytes:
            yield Finding(path, None, f"{content.odd_bytes} bytes at the end make no row")
        for slot, row in enumerate(content.entries):
            position = slot * ROW_BYTES
            if row.version != VERSION:
                yield Finding(path, position, f"row of version {row.version}, only {VERSION} is known")
                self._is_compared = False
                break
            if not 0 <= row.first_offset <= row.last_offset or row.last_offset <= last_before:
                yield Finding(path, position, f"offsets {row.first_offset}..{row.last_offset} are out of order")
                self._is_compared = False
            last_before = row.last_offset
            self._rows[row.last_offset] = (position, row)
        self._excused_from = last_before + 1 if may_lag else 2**63

    def note(self, batch: RecordBatch) -> Iterator[Finding]:
        """The next batch, whose CRC is right."""
        if not batch.is_transactional or batch.record_count <= 0:
            return
        if not batch.is_control:
            self._open.setdefault(batch.producer_id, batch.base_offset)
            return
        marker = _marker_of(batch)
        if marker is None:
            return  # the broker ignores it as well
        first = self._open.pop(batch.producer_id, None)
        if not marker.is_commit and self._is_compared:
            yield from self._check_abort(batch, first)

    def end(self, next_offset: int) -> Iterator[Finding]:
        """The segment's batches end at `next_offset`: what is left of its rows names no marker."""
        if not self._is_compared:
            return
        for position, row in self._rows.values():
            if row.last_offset < next_offset or self._excused_from == 2**63:
                yield Finding(
                    self._path,
                    position,
                    f"no marker at offset {row.last_offset} aborts a transaction of producer {row.producer_id}",
                )

    def _check_abort(self, batch: RecordBatch, first: int | None) -> Iterator[Finding]:
        offset = batch.base_offset
        position, row = self._rows.get(offset, (None, None))
        if row is None:
            if first is not None and offset < self._excused_from:
                yield Finding(
                    self._path,
                    None,
                    f"no row for the transaction of producer {batch.producer_id} that offset {offset} aborts",
                )
            return
        if row.producer_id != batch.producer_id:
            return  # stays in _rows: named at the end
        del self._rows[offset]
        if first is not None and row.first_offset > first:
            yield Finding(
                self._path,
                position,
                f"first offset {row.first_offset}, but producer {row.producer_id} has data of it at {first}",
            )
        stable = min([*self._open.values(), offset + 1])
        if row.last_stable_offset > stable:
            yield Finding(
                self._path, position, f"last stable offset {row.last_stable_offset}, it can be {stable} at most"
            )


def _marker_of(batch: RecordBatch) -> EndMarker | None:
    try:
        record = read_records(batch)[0]
        return decode_end_marker(record.key, record.value)
    except DecodeError:
        return None
