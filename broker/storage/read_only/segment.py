"""ReadOnlySegment: a segment whose recovery (cut-off end, indexes, aborted transactions) stays in memory.

An index takes as much memory as its file would have bytes: 12 per time index entry, 8 per offset index entry.
"""

from __future__ import annotations

import logging
import os

from barnabas.broker.storage.files.file_names import LOG_SUFFIX, file_name
from barnabas.broker.storage.files.file_records import FileRecords
from barnabas.broker.storage.files.leader_epoch import LeaderEpochFile
from barnabas.broker.storage.index.time_index import NO_TIMESTAMP, TimestampOffset
from barnabas.broker.storage.index.transaction_index import AbortedTxn, TransactionIndex, encode_row
from barnabas.broker.storage.log.loading.producer_rebuild import note_stored_batch
from barnabas.broker.storage.producers.state import ProducerState
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.scan import scan_segment
from barnabas.broker.storage.services.services import StorageServices
from barnabas.config.log_config import LogConfig
from barnabas.protocol.records.kernels.scanned import ScanFault

logger = logging.getLogger(__name__)


class MemoryTransactionIndex(TransactionIndex):
    """The rows found by a recovery; kept as long as the segment."""

    __slots__ = ()

    @property
    def size_bytes(self) -> int:
        """Size that the rows would have in the file."""
        return len(self._content)

    def append(self, row: AbortedTxn) -> None:
        """Add a row."""
        self._content += encode_row(row)

    def forget(self) -> None:
        """Keep the rows: they are in no file to be read from again."""


class ReadOnlySegment(LogSegment):
    """A sealed segment; indexes that have to be rebuilt stay in memory."""

    __slots__ = ()

    @classmethod
    def open_read_only(
        cls, directory: str, base_offset: int, stage: str, config: LogConfig, services: StorageServices
    ) -> ReadOnlySegment:
        """Open the segment at `base_offset` whose files end with `stage`. Raises OSError."""
        size_bytes = os.stat(f"{directory}/{file_name(base_offset, LOG_SUFFIX, stage)}").st_size
        segment = cls._of(directory, base_offset, size_bytes, config, services)
        segment._indexes_trusted = False
        segment.change_stage_names(stage)
        return segment

    @classmethod
    def empty(cls, directory: str, base_offset: int, config: LogConfig, services: StorageServices) -> ReadOnlySegment:
        """Return a segment without batches and without files."""
        segment = cls._of(directory, base_offset, 0, config, services)
        segment.log.path = os.devnull  # can be opened and read like any other file
        segment._transaction_index = MemoryTransactionIndex("", base_offset)
        segment._largest = TimestampOffset(NO_TIMESTAMP, base_offset)
        segment.offset_index.replace(b"")
        segment.time_index.replace(b"")
        return segment

    @classmethod
    def _of(
        cls, directory: str, base_offset: int, size_bytes: int, config: LogConfig, services: StorageServices
    ) -> ReadOnlySegment:
        log = FileRecords(f"{directory}/{file_name(base_offset, LOG_SUFFIX)}", size_bytes, services.open_files)
        segment = cls(directory, base_offset, log, config, services.clock, services.open_files)
        segment.offset_index.in_memory = segment.time_index.in_memory = True
        return segment

    def recover_in_memory(self, state: ProducerState, epochs: LeaderEpochFile) -> int:
        """Recover as `recover_segment` does, in memory; return how many bytes at the end are not served.

        A batch beyond the reach of an index ends the segment too: Kafka, and a broker that may write, split it there.
        Raises OSError.
        """
        index = self._transaction_index = MemoryTransactionIndex(self.transaction_index.path, self.base_offset)
        file = self.log.handle()
        size_bytes = self.log.size_bytes
        scan = self.new_scan(check_crc=True, latest_epoch=epochs.latest_epoch)
        for batches in scan_segment(scan, file, size_bytes):
            for batch in batches:
                note_stored_batch(state, file, batch, index)
        if scan.fault not in (None, ScanFault.TORN):
            logger.warning("the batch at position=%s of %s %s", scan.position, self.log.path, scan.fault.value)
        for epoch, start_offset in scan.epochs:
            epochs.note_recovered(epoch, start_offset)
        state.map_end_offset = max(state.map_end_offset, scan.next_offset)
        self.log.size_bytes = scan.position
        self.replace_indexes(scan)
        return size_bytes - scan.position
