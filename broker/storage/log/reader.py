"""How records are read from a log: by offset, by timestamp, and what goes with them. No lock is taken.

Reads go by the immutable map of segments and by `_end`. A segment that retention has just removed is out of range, a
failed disk takes the directory offline, a damaged batch is CORRUPT_MESSAGE for this read. Source: Kafka UnifiedLog.
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
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.errors import CorruptRecordError

logger = logging.getLogger(__name__)

Found = TypeVar("Found")


class LogReader(LogState):
    """The reading half of a PartitionLog."""

    def read(
        self, offset: int, max_bytes: int, *, upper_bound: int, at_least_one_batch: bool
    ) -> FileSlice | OldFormatSlice | None:
        """Stored batches from the one that contains `offset` on, of one segment; None when there are none to read.

        The slice ends before `upper_bound` and has at most `max_bytes`, which may cut its last batch, but never its
        first: that one comes whole if `at_least_one_batch`, and else, if it does not fit, nothing comes. With messages
        of an old format it has to be converted, see `convert_old_format`. Raises
        BrokerError OFFSET_OUT_OF_RANGE (1), KAFKA_STORAGE_ERROR (56), CORRUPT_MESSAGE (2). Takes no lock.
        """
        end = self._end
        end_offset = end.offset
        if offset < self.log_start_offset or offset > end_offset:
            self._refuse_offset(offset, end_offset)
        if offset >= upper_bound or offset == end_offset:
            return None
        if self.state != "online":
            self._refuse_state()
        try:
            return read_slice(
                self._segments.view,
                end,
                offset,
                max_bytes,
                upper_bound=upper_bound,
                at_least_one_batch=at_least_one_batch,
            )
        except FileNotFoundError:
            return self._again(offset, lambda: self._slice(offset, max_bytes, upper_bound, at_least_one_batch))
        except OSError as error:
            self._refuse_read(error)
        except (CorruptRecordError, CorruptFileError) as error:
            self._refuse_corrupt(offset, error)

    def _slice(
        self, offset: int, max_bytes: int, upper_bound: int, at_least_one_batch: bool
    ) -> FileSlice | OldFormatSlice | None:
        return read_slice(
            self._segments.view,
            self._end,
            offset,
            max_bytes,
            upper_bound=upper_bound,
            at_least_one_batch=at_least_one_batch,
        )

    def convert_old_format(self, offset: int, records: OldFormatSlice, max_bytes: int) -> bytes:
        """What was read from `offset`, as version 2, within `max_bytes`; empty where nothing fits. Raises as `read`."""
        with self._reading(offset):
            return records.convert(min(max_bytes, records.max_bytes))

    def aborted_transactions(self, start_offset: int, upper_bound: int) -> list[AbortedTxn]:
        """The aborted transactions that overlap with [start_offset, upper_bound). Raises BrokerError. Takes no lock."""
        return self._steady(start_offset, lambda: aborted_transactions(self._segments.view, start_offset, upper_bound))

    def aborted_transactions_of(self, start_offset: int, records: FileSlice | OldFormatSlice) -> list[AbortedTxn]:
        """Those that a consumer must know of for `records`, which were read from `start_offset`. Errors as there."""

        def look_up() -> list[AbortedTxn]:
            view = self._segments.view
            if not has_aborted_transactions(view, start_offset):
                return []
            bound = upper_bound_of(view, self.log_end_offset, start_offset, records.size)
            return aborted_transactions(view, start_offset, bound)

        return self._steady(start_offset, look_up)

    def offset_for_timestamp(self, timestamp: int, *, upper_bound: int | None = None) -> FoundOffset | None:
        """The first record at or after `timestamp` (ms), or a special value: -1 latest, -2 earliest, -3 maximum.

        Latest is `upper_bound` (the high watermark if None); a record at or above it is not found. Raises BrokerError.
        """
        bound = self.log_end_offset if upper_bound is None else min(upper_bound, self.log_end_offset)
        if timestamp == LATEST_TIMESTAMP:
            return FoundOffset(-1, bound, self._latest_epoch)
        if timestamp == EARLIEST_TIMESTAMP:
            first = self._epochs.earliest_entry
            start = self.log_start_offset
            return FoundOffset(-1, start, first.epoch if first is not None and first.start_offset <= start else -1)
        self._ensure_online()
        # Retention never makes a lookup by time out of range: it begins at the log's start as it is then.
        found = self._steady(self.log_end_offset, lambda: self._find(timestamp))
        return found if found is not None and found.offset < bound else None

    def _find(self, timestamp: int) -> FoundOffset | None:
        view = self._segments.view
        try:
            if timestamp == MAX_TIMESTAMP:
                return find_max_timestamp(view)
            return find_by_timestamp(view, timestamp, self.log_start_offset)
        except (CorruptRecordError, CorruptFileError) as error:
            logger.error("cannot look up timestamp=%s in %s: %s", timestamp, self.topic_partition, error)
            raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{self.topic_partition}: {error}") from error

    def offset_for_max_timestamp(self) -> FoundOffset | None:
        """The first record that carries the largest timestamp. Raises BrokerError."""
        return self.offset_for_timestamp(MAX_TIMESTAMP)

    def leader_epoch_for(self, offset: int) -> int:
        """The leader epoch that wrote `offset`, or -1."""
        return self._epochs.epoch_for(offset)

    def end_offset_for_epoch(self, epoch: int) -> EpochEntry | None:
        """Where a leader epoch ended (the greatest known one not above it)."""
        return self._epochs.end_offset_for(epoch, self.log_end_offset)

    def _steady(self, start_offset: int, look_up: Callable[[], Found]) -> Found:
        """What is found from that offset on; looked up again where a file was renamed meanwhile. Raises BrokerError."""
        with self._reading(start_offset):
            try:
                return look_up()
            except FileNotFoundError:
                return self._again(start_offset, look_up)

    def _again(self, start_offset: int, look_up: Callable[[], Found]) -> Found:
        """A file was not found under its name: whoever renames one (the cleaner, a move) holds the lock as long."""
        if start_offset < self.log_start_offset:
            self._refuse_offset(start_offset, self.log_end_offset)  # retention was faster
        with self._reading(start_offset), self._lock:
            return look_up()

    @contextmanager
    def _reading(self, start_offset: int) -> Iterator[None]:
        """Turns what goes wrong in a read from that offset on into a BrokerError."""
        try:
            yield
        except FileNotFoundError as error:
            if start_offset < self.log_start_offset:
                self._refuse_offset(start_offset, self.log_end_offset)  # retention was faster
            self._refuse_missing(error)
        except OSError as error:
            self._refuse_read(error)
        except (CorruptRecordError, CorruptFileError) as error:
            self._refuse_corrupt(start_offset, error)
        if start_offset < self.log_start_offset:
            # An index that retention removed meanwhile looks like one that never was.
            self._refuse_offset(start_offset, self.log_end_offset)

    def _refuse_corrupt(self, offset: int, error: CorruptRecordError | CorruptFileError) -> NoReturn:
        logger.error("cannot read %s at offset=%s: %s", self.topic_partition, offset, error)
        raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{self.topic_partition}: offset {offset}: {error}") from error
