"""Transactions during a cleaner's pass: which data is dropped, and when markers may be dropped.

Data of aborted transactions is dropped. A marker stays until all data of its transaction is gone; then it gets a delete
horizon, like a tombstone, and is dropped when that has passed. An aborted transaction with data in this pass gets a row
in the `.txnindex` of the cleaned segment with its marker. Source: Kafka CleanedTransactionMetadata.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable

from barnabas.broker.storage.index.transaction_index import AbortedTxn
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.errors import InvalidRecordError
from barnabas.protocol.records.reader import read_records

_ABORT, _COMMIT = 0, 1
_CONTROL_KEY_BYTES = 4
"""int16 version, int16 type."""


class CleanedTransactions:
    """Transactions of one pass over a log in offset order.

    `write_aborted` is called with each row for the cleaned segment's transaction index.
    """

    def __init__(self) -> None:
        self.write_aborted: Callable[[AbortedTxn], object] = lambda _: None
        self._pending: list[tuple[int, int, AbortedTxn]] = []
        """Aborted transactions that the pass has not reached, a heap by first offset."""
        self._known: set[tuple[int, int]] = set()
        self._aborted: dict[int, AbortedTxn] = {}
        """Open aborted transactions by producer id."""
        self._with_data: set[int] = set()
        """Producer ids of open aborted transactions with a batch in this pass."""
        self._committed: set[int] = set()
        """Producer ids of other open transactions with a batch in this pass."""

    def add_aborted(self, transactions: Iterable[AbortedTxn]) -> None:
        """Add aborted transactions that overlap the next segment; repeated ones are ignored."""
        for aborted in transactions:
            key = (aborted.first_offset, aborted.producer_id)
            if key not in self._known:
                self._known.add(key)
                heapq.heappush(self._pending, (*key, aborted))

    def on_data_batch(self, batch: RecordBatch) -> bool:
        """Process a data batch; return whether it belongs to an aborted transaction and must be dropped."""
        self._open_up_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        if batch.producer_id in self._aborted:
            self._with_data.add(batch.producer_id)
            return True
        self._committed.add(batch.producer_id)
        return False

    def on_control_batch(self, batch: RecordBatch) -> bool:
        """Process a control batch; return whether no data is left that needs it. Raises DecodeError."""
        self._open_up_to(batch.last_offset)
        records = read_records(batch)
        if not records:
            return True  # emptied by an earlier round
        key = records[0].key
        if key is None or len(key) < _CONTROL_KEY_BYTES:
            raise InvalidRecordError(0, "its key is not a control record's")
        kind = int.from_bytes(key[2:4], "big", signed=True)
        producer_id = batch.producer_id
        if kind == _ABORT:
            aborted = self._aborted.pop(producer_id, None)
            if aborted is not None and producer_id in self._with_data:
                self._with_data.discard(producer_id)
                self.write_aborted(aborted)
                return False
            return True
        if kind == _COMMIT:
            had_data = producer_id in self._committed
            self._committed.discard(producer_id)
            return not had_data
        return False

    def _open_up_to(self, offset: int) -> None:
        while self._pending and self._pending[0][0] <= offset:
            aborted = heapq.heappop(self._pending)[2]
            self._aborted.setdefault(aborted.producer_id, aborted)
