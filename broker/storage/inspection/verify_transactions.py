"""Check of a log's transaction indexes against the transactions in its batches, segment by segment.

- A row refers to an abort marker of its producer in the same segment. Its first offset is not above the first remaining
  data of the transaction (retention and the cleaner may have removed earlier data). Its last stable offset is at most
  the first offset of another open transaction, and at most the offset after the marker.
- An abort marker has a row if its transaction has data. A row without data is not reported, because the cleaner keeps a
  marker, and its row, longer than the data.
See transaction_index for the format. Source: Kafka ProducerStateManager, TransactionIndex.
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
    """Check of one log. Call for each segment in order: `begin`, `note` for every whole batch, `end`."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        """Producer id -> offset of the first data of its open transaction."""
        self._path = Path()
        self._rows: dict[int, tuple[int, AbortedTxn]] = {}
        """Marker offset -> (position, row) of rows whose marker was not found so far."""
        self._is_compared = False
        self._excused_from = 0

    def begin(self, path: Path, *, may_lag: bool) -> Iterator[Finding]:
        """Begin the next segment, with its `.txnindex` at `path`, which may be missing. Raises OSError.

        `may_lag`: a broker is writing, so rows and batches need not match at the end.
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
            yield Finding(path, None, f"{content.odd_bytes} bytes at the end are not a whole row")
        for slot, row in enumerate(content.entries):
            position = slot * ROW_BYTES
            if row.version != VERSION:
                yield Finding(path, position, f"row of version {row.version}, only {VERSION} is supported")
                self._is_compared = False
                break
            if not 0 <= row.first_offset <= row.last_offset or row.last_offset <= last_before:
                yield Finding(path, position, f"offsets {row.first_offset}..{row.last_offset} are out of order")
                self._is_compared = False
            last_before = row.last_offset
            self._rows[row.last_offset] = (position, row)
        self._excused_from = last_before + 1 if may_lag else 2**63

    def note(self, batch: RecordBatch) -> Iterator[Finding]:
        """Check the next batch, whose CRC is correct."""
        if not batch.is_transactional or batch.record_count <= 0:
            return
        if not batch.is_control:
            self._open.setdefault(batch.producer_id, batch.base_offset)
            return
        marker = _marker_of(batch)
        if marker is None:
            return  # ignored by the broker, too
        first = self._open.pop(batch.producer_id, None)
        if not marker.is_commit and self._is_compared:
            yield from self._check_abort(batch, first)

    def end(self, next_offset: int) -> Iterator[Finding]:
        """End the segment at `next_offset`, and report rows without a marker."""
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
            return  # the row stays in _rows and is reported by `end`
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
