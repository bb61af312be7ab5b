"""LogReader: records by offset and by timestamp, aborted transactions, leader epochs. Reads take no lock.

Reads use the immutable segment map and `LogCore.end`. A read of a segment that retention has just removed is
OFFSET_OUT_OF_RANGE, a failed disk takes the log directory offline, a damaged batch is CORRUPT_MESSAGE for that read
only. Segment files are renamed while reads go on (by the cleaner, by a move): a file that is missing under its name is
looked up once more under the lock, which the renamer holds. Source: Kafka UnifiedLog.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeVar

from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.file_records import FileSlice
from barnabas.broker.storage.files.leader_epoch import EpochEntry
from barnabas.broker.storage.index.transaction_index import AbortedTxn
from barnabas.broker.storage.log.aborted_transactions import (
    aborted_transactions,
    has_aborted_transactions,
    upper_bound_of,
)
from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.log.lookup import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    FoundOffset,
    find_by_timestamp,
    find_max_timestamp,
)
from barnabas.broker.storage.log.read import read_slice
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.segment.old_format_slice import OldFormatSlice
from barnabas.broker.storage.services.log_dir_failure import is_shortage
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.errors import CorruptRecordError

logger = logging.getLogger(__name__)

Found = TypeVar("Found")

_ONLINE = LogState.ONLINE


class LogReader:
    """Reads one log. Every method may raise BrokerError KAFKA_STORAGE_ERROR (56) or CORRUPT_MESSAGE (2)."""

    __slots__ = ("_core", "_on_disk_error")

    def __init__(self, core: LogCore, on_disk_error: Callable[[str, OSError], None]) -> None:
        """`on_disk_error(what, error)` is called when a read meets a failed disk."""
        self._core = core
        self._on_disk_error = on_disk_error

    def read(
        self, offset: int, max_bytes: int, *, upper_bound: int, at_least_one_batch: bool
    ) -> FileSlice | OldFormatSlice | None:
        """Return stored batches of one segment, from the batch that contains `offset` on; None if there are none.

        The slice ends before `upper_bound` and has at most `max_bytes`. The limit may cut its last batch, never its
        first: a first batch above the limit is returned whole if `at_least_one_batch`, and left out otherwise. An
        OldFormatSlice (messages of format 0 or 1) has to be converted, see `convert_old_format`. Raises
        BrokerError OFFSET_OUT_OF_RANGE (1), KAFKA_STORAGE_ERROR (56), CORRUPT_MESSAGE (2). Takes no lock.
        """
        core = self._core
        end = core.end
        end_offset = end.offset
        if offset < core.log_start_offset or offset > end_offset:
            self._refuse_offset(offset, end_offset)
        if offset >= upper_bound or offset == end_offset:
            return None
        if core.state is not _ONLINE:
            core.refuse_state()
        try:
            return read_slice(core.segments.view, end, offset, max_bytes, upper_bound, at_least_one_batch)
        except FileNotFoundError:
            return self._retry(offset, lambda: self._slice(offset, max_bytes, upper_bound, at_least_one_batch))
        except OSError as error:
            self._refuse_read(error)
        except (CorruptRecordError, CorruptFileError) as error:
            self._refuse_corrupt(offset, error)

    def _slice(
        self, offset: int, max_bytes: int, upper_bound: int, at_least_one_batch: bool
    ) -> FileSlice | OldFormatSlice | None:
        core = self._core
        return read_slice(core.segments.view, core.end, offset, max_bytes, upper_bound, at_least_one_batch)

    def convert_old_format(self, offset: int, records: OldFormatSlice, max_bytes: int) -> bytes:
        """Convert a slice that was read at `offset` to version 2, within `max_bytes`; empty if nothing fits.

        Kafka 3.9 and 4.x send old formats as stored, and Java's client reads them. Converted here, so that a client
        needs to know one format.
        """
        with self._reading(offset):
            return records.convert(min(max_bytes, records.max_bytes))

    def aborted_transactions(self, start_offset: int, upper_bound: int) -> list[AbortedTxn]:
        """Return the aborted transactions that overlap [start_offset, upper_bound). Takes no lock."""
        return self._look_up(
            start_offset, lambda: aborted_transactions(self._core.segments.view, start_offset, upper_bound)
        )

    def aborted_transactions_of(self, start_offset: int, records: FileSlice | OldFormatSlice) -> list[AbortedTxn]:
        """Return the aborted transactions that a consumer needs for `records`, which were read at `start_offset`."""

        def look_up() -> list[AbortedTxn]:
            view = self._core.segments.view
            if not has_aborted_transactions(view, start_offset):
                return []
            bound = upper_bound_of(view, self._core.log_end_offset, start_offset, records.size)
            return aborted_transactions(view, start_offset, bound)

        return self._look_up(start_offset, look_up)

    def offset_for_timestamp(self, timestamp: int, *, upper_bound: int | None = None) -> FoundOffset | None:
        """Return the first record at or after `timestamp` (ms).

        Special values: -1 latest, -2 earliest, -3 the maximum timestamp.
        Latest is `upper_bound` (the log end offset if None); a record at or above it is not found.
        """
        core = self._core
        bound = core.log_end_offset if upper_bound is None else min(upper_bound, core.log_end_offset)
        if timestamp == LATEST_TIMESTAMP:
            return FoundOffset(-1, bound, core.latest_epoch)
        if timestamp == EARLIEST_TIMESTAMP:
            first = core.epochs.earliest_entry
            start = core.log_start_offset
            return FoundOffset(-1, start, first.epoch if first is not None and first.start_offset <= start else -1)
        core.ensure_online()
        # With the end offset, so that retention cannot put the lookup out of range: `_find` begins at the start offset.
        found = self._look_up(core.log_end_offset, lambda: self._find(timestamp))
        return found if found is not None and found.offset < bound else None

    def _find(self, timestamp: int) -> FoundOffset | None:
        core = self._core
        view = core.segments.view
        try:
            if timestamp == MAX_TIMESTAMP:
                return find_max_timestamp(view)
            return find_by_timestamp(view, timestamp, core.log_start_offset)
        except (CorruptRecordError, CorruptFileError) as error:
            logger.error("cannot look up timestamp=%s in %s: %s", timestamp, core.topic_partition, error)
            raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{core.topic_partition}: {error}") from error

    def offset_for_max_timestamp(self) -> FoundOffset | None:
        """Return the first record that carries the log's largest timestamp."""
        return self.offset_for_timestamp(MAX_TIMESTAMP)

    def leader_epoch_for(self, offset: int) -> int:
        """Return the leader epoch that wrote `offset`, or -1."""
        return self._core.epochs.epoch_for(offset)

    def end_offset_for_epoch(self, epoch: int) -> EpochEntry | None:
        """Return the end of the greatest known leader epoch that is not above `epoch`."""
        return self._core.epochs.end_offset_for(epoch, self._core.log_end_offset)

    def diverging_epoch(self, epoch: int, offset: int) -> EpochEntry | None:
        """Return where this log differs from one that ends at `offset` with a batch of leader epoch `epoch`.

        That is the greatest known epoch that is not above `epoch`, and its end offset; None if the other log is a
        prefix of this one, or `epoch` is negative. Raises BrokerError OFFSET_OUT_OF_RANGE for an epoch above all of the
        log's, and for an offset below the log start. Source: Kafka Partition.readRecords.
        """
        if epoch < 0:
            return None
        core = self._core
        found = core.epochs.end_offset_for(epoch, core.log_end_offset)
        if found is None:
            raise BrokerError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{core.topic_partition}: the end of leader epoch {epoch} is not known"
            )
        if offset < core.log_start_offset:
            self._refuse_offset(offset, core.log_end_offset)
        return found if found.epoch < epoch or found.start_offset < offset else None

    def _look_up(self, start_offset: int, look_up: Callable[[], Found]) -> Found:
        """Call `look_up` for the records from `start_offset` on, twice if a file was renamed meanwhile."""
        with self._reading(start_offset):
            try:
                return look_up()
            except FileNotFoundError:
                return self._retry(start_offset, look_up)

    def _retry(self, start_offset: int, look_up: Callable[[], Found]) -> Found:
        """Repeat a lookup under the lock: whoever renames files of the map (the cleaner, a move) holds it meanwhile."""
        core = self._core
        if start_offset < core.log_start_offset:
            self._refuse_offset(start_offset, core.log_end_offset)  # retention was faster
        with self._reading(start_offset), core.lock:
            return look_up()

    @contextmanager
    def _reading(self, start_offset: int) -> Iterator[None]:
        """Turn the errors of a read from `start_offset` on into BrokerErrors."""
        core = self._core
        try:
            yield
        except FileNotFoundError as error:
            if start_offset < core.log_start_offset:
                self._refuse_offset(start_offset, core.log_end_offset)  # retention was faster
            self._refuse_missing(error)
        except OSError as error:
            self._refuse_read(error)
        except (CorruptRecordError, CorruptFileError) as error:
            self._refuse_corrupt(start_offset, error)
        if start_offset < core.log_start_offset:
            # A transaction index that retention removed meanwhile looks like one that never existed.
            self._refuse_offset(start_offset, core.log_end_offset)

    def _refuse_offset(self, offset: int, end_offset: int) -> NoReturn:
        core = self._core
        raise BrokerError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{core.topic_partition}: offset {offset} is outside of [{core.log_start_offset}, {end_offset}]",
        )

    def _refuse_missing(self, error: FileNotFoundError) -> NoReturn:
        """Refuse without blaming the disk: the topic's directory was just renamed, or the file removed by hand."""
        core = self._core
        if core.state is _ONLINE and core.directory.exists():
            logger.error("a file of %s is missing: %s", core.topic_partition, error)
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{core.topic_partition}: a file is gone") from error

    def _refuse_read(self, error: OSError) -> NoReturn:
        core = self._core
        if core.state is _ONLINE and not is_shortage(error):
            self._on_disk_error("cannot read", error)
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{core.topic_partition}: cannot read: {error}") from error

    def _refuse_corrupt(self, offset: int, error: CorruptRecordError | CorruptFileError) -> NoReturn:
        topic_partition = self._core.topic_partition
        logger.error("cannot read %s at offset=%s: %s", topic_partition, offset, error)
        raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{topic_partition}: offset {offset}: {error}") from error
