"""The cleaner: one round over one log, in two passes.

    1. fill the offset map with the last offset of each key in the dirty part (map_building)
    2. rewrite every segment from the log's start to the map's end without the records that have a later one in the map
       (segment_cleaning), a group of segments into one (segment_groups), and swap each group in before the next one is
       written (segment.replacement)

Offsets never change. If a round ends early, the log still has the last record of every key: each group is either as it
was or cleaned. Groups that were swapped in stay, and the next round reads them again. Source: Kafka Cleaner.
"""

from __future__ import annotations

import contextlib
import logging
import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from barnabas.broker.storage.cleaning.errors import CleaningAborted, CleaningOutOfRoom, UncleanableLogError
from barnabas.broker.storage.cleaning.rewriting.batch_filter import BatchFilter
from barnabas.broker.storage.cleaning.rewriting.cleaned_transactions import CleanedTransactions
from barnabas.broker.storage.cleaning.rewriting.cleaner_stats import CleanerStats
from barnabas.broker.storage.cleaning.rewriting.map_building import MapBuilder
from barnabas.broker.storage.cleaning.rewriting.offset_map import OffsetMap, max_entries_of
from barnabas.broker.storage.cleaning.rewriting.segment_cleaning import SegmentCleaner
from barnabas.broker.storage.cleaning.rewriting.segment_groups import group_segments
from barnabas.broker.storage.cleaning.rewriting.segment_reading import IoBuffers
from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.failpoints import failpoint
from barnabas.broker.storage.files.file_names import CLEANED_SUFFIX
from barnabas.broker.storage.log.aborted_transactions import aborted_transactions
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.producers.entry import LastRecord
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.replacement import SegmentsChangedError, remove_staged
from barnabas.broker.storage.services.log_dir_failure import is_shortage
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records.kernels.cleaned import HASH_MASK, FilterRules
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class Throttler(Protocol):
    """Keeps the cleaners' reads and writes together below log.cleaner.io.max.bytes.per.second."""

    def note(self, size_bytes: int) -> None:
        """Account for `size_bytes` read or written; sleep if that was too fast."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LogToClean:
    """A log that was chosen for cleaning, and the offsets [first dirty, first uncleanable) for the map.

    `first_uncleanable_offset` is the base offset of a segment, as in Kafka's LogToClean: the active segment is never
    cleaned. `now_ms` is the wall clock for setting and comparing delete horizons.
    """

    log: PartitionLog
    first_dirty_offset: int
    first_uncleanable_offset: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class CleanResult:
    """Result of a round. `next_dirty_offset` goes into the cleaner checkpoint: everything below it is clean."""

    next_dirty_offset: int
    stats: CleanerStats


class Cleaner:
    """Cleaner of one thread, for one log after the other; not thread-safe."""

    def __init__(
        self,
        *,
        offset_map_bytes: int,
        load_factor: float,
        io_buffer_bytes: int,
        throttler: Throttler,
        check_done: Callable[[TopicPartition], None],
        hash_mask: int = HASH_MASK,
    ) -> None:
        """Create a cleaner; it allocates no memory before a round.

        `offset_map_bytes`: log.cleaner.dedupe.buffer.size / threads, at most 2^31 - 1. `io_buffer_bytes`: size of the
        read buffer and of the write buffer, log.cleaner.io.buffer.size / threads / 2. `check_done` is called often and
        raises CleaningAborted to end the round. `hash_mask` is for tests. Raises ValueError if the map has no space for
        a single key.
        """
        if max_entries_of(offset_map_bytes, load_factor) < 1:
            raise ValueError(
                f"the offset map of {offset_map_bytes} bytes has no space for a key, so no log would ever be clean: "
                "raise log.cleaner.dedupe.buffer.size or lower log.cleaner.threads"
            )
        self._offset_map_bytes = offset_map_bytes
        self._load_factor = load_factor
        self._hash_mask = hash_mask
        self._buffers = IoBuffers(io_buffer_bytes)
        self._throttler = throttler
        self._check_done = check_done

    def clean(self, cleanable: LogToClean) -> CleanResult:
        """Clean one log. If a segment fails, those that were swapped in before stay, which is safe.

        Raises CleaningAborted, CleaningOutOfRoom (retry after the back-off), UncleanableLogError (mark the partition),
        OSError (the disk failed; the log's directory was reported and goes offline).
        """
        log = cleanable.log
        work = _Round(cleanable, self._buffers, self._throttler, self._check_done)
        self._buffers.restore()
        try:
            offset_map = OffsetMap(
                self._offset_map_bytes,
                self._load_factor,
                most_keys=cleanable.first_uncleanable_offset - cleanable.first_dirty_offset,
                hash_mask=self._hash_mask,
            )
            try:
                return work.run(offset_map)
            finally:
                offset_map.close()
        except SegmentsChangedError as error:
            raise CleaningAborted(str(error)) from error
        except FileNotFoundError as error:
            # If the topic is being deleted, its directory was renamed. Otherwise a file is missing for good.
            if log.state is not LogState.ONLINE or not log.directory.exists():
                raise CleaningAborted(f"{log.topic_partition} is {log.state.value}") from error
            raise UncleanableLogError(log.directory, f"a file is missing: {error}") from error
        except OSError as error:
            if is_shortage(error):
                raise CleaningOutOfRoom(log.directory, f"cannot clean {log.topic_partition} now: {error}") from error
            log.report_failure("cannot clean the log", error)
            raise
        finally:
            self._buffers.release()


class _Round:
    """One round over one log."""

    def __init__(
        self,
        cleanable: LogToClean,
        buffers: IoBuffers,
        throttler: Throttler,
        check_done: Callable[[TopicPartition], None],
    ) -> None:
        self._cleanable = cleanable
        self._log = cleanable.log
        self._config = cleanable.log.config
        self._buffers = buffers
        self._throttler = throttler
        self._wall_ms = cleanable.log.wall_ms
        self._check_done_of = check_done
        self._stats = CleanerStats(start_time_ms=self._wall_ms())
        self._transactions = CleanedTransactions()

    def run(self, offset_map: OffsetMap) -> CleanResult:
        cleanable = self._cleanable
        view = self._log.segments_view
        first_dirty = cleanable.first_dirty_offset
        clean_segments = view.overlapping(0, first_dirty)
        legacy_horizon_ms = (
            clean_segments[-1].last_modified_ms() - self._config.delete_retention_ms if clean_segments else 0
        )
        self._fill(offset_map)
        self._stats.map_complete_time_ms = self._wall_ms()
        end_offset = max(offset_map.latest_offset + 1, first_dirty)
        logger.info(
            "cleaning %s: dirty from offset=%s, the map holds keys=%s up to offset=%s",
            self._log.topic_partition,
            first_dirty,
            offset_map.table.entries,
            end_offset,
        )
        if offset_map.latest_offset >= 0:
            groups = group_segments(
                view.overlapping(0, end_offset),
                max_bytes=self._config.segment_bytes,
                max_index_bytes=self._config.segment_index_bytes,
                first_uncleanable_offset=cleanable.first_uncleanable_offset,
            )
            for group in groups:
                self._clean_group(group, offset_map, legacy_horizon_ms)
        self._stats.map_utilization = offset_map.utilization
        return CleanResult(end_offset, self._stats)

    def _check_done(self) -> None:
        self._check_done_of(self._log.topic_partition)

    def _fill(self, offset_map: OffsetMap) -> None:
        """Fill the map: the first pass."""
        start, end = self._cleanable.first_dirty_offset, self._cleanable.first_uncleanable_offset
        view = self._log.segments_view
        builder = MapBuilder(offset_map, self._buffers, self._stats, self._throttler.note, start_offset=start)
        dirty = view.overlapping(start, end) if end > start else ()
        with _as_uncleanable(self._log.directory / "txnindex"):
            builder.prepare(view, end)
        for index, segment in enumerate(dirty):
            next_base = dirty[index + 1].base_offset if index + 1 < len(dirty) else end
            self._check_done()
            with _as_uncleanable(segment.log.path):
                builder.add_segment(segment, next_base, self._check_done)
            if builder.is_full:
                return

    def _clean_group(self, group: Sequence[LogSegment], offset_map: OffsetMap, legacy_horizon_ms: int) -> None:
        """Clean a group of segments into one and swap it in: the second pass."""
        cleaned = self._log.create_segment(group[0].base_offset, CLEANED_SUFFIX)
        try:
            failpoint("cleaner.created")
            self._transactions.write_aborted = cleaned.transaction_index.append
            last_records = self._log.last_records()
            cleaner = SegmentCleaner(cleaned, offset_map.table, self._buffers, self._stats, self._throttler.note)
            rules = FilterRules(
                offset_map.latest_offset,
                self._cleanable.now_ms,
                self._cleanable.now_ms + self._config.delete_retention_ms,
                self._cleanable.first_uncleanable_offset,
                _packed(last_records),
            )
            for index, source in enumerate(group):
                with _as_uncleanable(source.log.path):
                    upper = group[index + 1].base_offset if index + 1 < len(group) else source.read_next_offset()
                    view = self._log.segments_view
                    self._transactions.add_aborted(aborted_transactions(view, source.base_offset, upper))
                    batch_filter = BatchFilter(
                        offset_map.table,
                        rules,
                        self._transactions,
                        last_records,
                        retains_legacy_tombstones=source.last_modified_ms() > legacy_horizon_ms,
                    )
                    cleaner.clean(source, rules, batch_filter, self._check_done)
            failpoint("cleaner.written")
            cleaned.seal()
            cleaned.sync(with_indexes=True)
            cleaned.set_last_modified(group[-1].last_modified_ms())
            failpoint("cleaner.sealed")
            self._check_done()
        except BaseException:
            # The disk may have failed: files that cannot be removed now are removed at the next start.
            cleaned.release()
            with contextlib.suppress(OSError):
                remove_staged(self._log.directory, group[0].base_offset, CLEANED_SUFFIX)
            raise
        self._log.replace_segments((cleaned,), group)


@contextlib.contextmanager
def _as_uncleanable(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors in the content of a file into UncleanableLogError with its path."""
    try:
        yield
    except (DecodeError, CorruptFileError) as error:
        raise UncleanableLogError(os.fspath(path), f"cannot be cleaned: {error}") from error


def _packed(last_records: dict[int, LastRecord]) -> bytes:
    """Encode last data offsets and producer ids for the kernel, as pairs of int64 sorted by offset."""
    pairs = sorted((last.last_data_offset, producer_id) for producer_id, last in last_records.items())
    return array("q", [number for pair in pairs if pair[0] >= 0 for number in pair]).tobytes()
