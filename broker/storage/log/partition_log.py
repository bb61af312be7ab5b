"""PartitionLog: the records of one partition, and the invariants that hold for them.

    log_start_offset <= recovery_point <= log_end_offset
    high_watermark = log_end_offset: a single node commits what it has written. With standby.min.acks=1 it is at most
    what the standby has (LogCore.replicated_end).

- Offsets are assigned in the order of appends; a batch is stored whole or not at all.
- Everything below the recovery point is durable. The indexes of the segment that contains it need not be, because
  recovery begins there. A roll makes the old segment and its indexes durable in the background.
- One lock serializes appends and changes of the segment map. It is never held across a scan, an unlink or an fsync of
  records; a new leader epoch and a truncation, which are rare, are synced under it. Reads take no lock: they use the
  immutable map and `LogCore.end`, which an append replaces as a whole when it is done.
- An I/O error takes the log directory offline; a full disk does not: the half batch is cut off again and the next
  append tries once more.

PartitionLog is composed of parts that share one LogCore, each with one concern:

    core         LogCore          segments, offsets, epochs, producers, lock, config
    reading      LogReader        records by offset and timestamp (from ReadableLog)
    appending    LogAppender      client batches and the broker's own
                 MarkerAppender   end markers of transactions
    rolling      LogRoller        a new active segment
    flushing     LogFlusher       durability
    retention    LogRetainer      old segments, log start offset, expired producers
    compaction   SegmentReplacer  cleaned segments instead of old ones
    truncation   LogTruncation    the end of the log cut off

Source: Kafka UnifiedLog, LocalLog.
"""

from __future__ import annotations

import contextlib

from barnabas.broker.storage.files.durable_files import sync_directory
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.files.partition_metadata_file import write_partition_metadata
from barnabas.broker.storage.log.appending.appender import LogAppender
from barnabas.broker.storage.log.appending.marker_appender import MarkerAppender
from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.log.flusher import LogFlusher
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.log.reader import LogReader
from barnabas.broker.storage.log.replacer import SegmentReplacer
from barnabas.broker.storage.log.retainer import LogRetainer
from barnabas.broker.storage.log.roller import LogRoller
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.log.truncation import LogTruncation
from barnabas.broker.storage.producers.entry import LastRecord
from barnabas.broker.storage.services.log_dir_failure import is_shortage
from barnabas.config.log_config import LogConfig


class PartitionLog(ReadableLog):
    """One log that can be changed. The parts' methods are attributes bound once: an append costs no extra call."""

    __slots__ = (
        "_appender",
        "append_as_leader",
        "append_kernel",
        "append_marker",
        "assign_epoch_start_offset",
        "check_client_batch",
        "create_segment",
        "delete_old_segments",
        "delete_records",
        "flush",
        "remove_expired_producers",
        "replace_segments",
        "report_failure",
        "retainer",
        "roll",
        "roller",
        "truncate_fully_and_start_at",
        "truncate_to",
        "wall_ms",
    )

    def __init__(self, core: LogCore, replacer: SegmentReplacer | None = None) -> None:
        """`replacer` stands in for the one that changes files, in a dry run of the cleaner."""
        super().__init__(core, LogReader(core, core.fail))
        flusher = LogFlusher(core)
        self.roller = LogRoller(core, flusher)
        self.retainer = LogRetainer(core, self.roller)
        self._appender = LogAppender(core, self.roller)
        self.append_kernel = self._appender.kernel
        """The compiled common case of `append_as_leader`, for compiled callers; None without it, or if it is unused."""
        replacer = replacer or SegmentReplacer(core)
        truncation = LogTruncation(core)
        self.wall_ms = core.wall_ms
        self.report_failure = core.fail
        self.append_as_leader = self._appender.append_as_leader
        self.check_client_batch = self._appender.check_client_batch
        self.append_marker = MarkerAppender(core, self.roller, self.append_kernel).append_marker
        self.assign_epoch_start_offset = self._appender.assign_epoch_start_offset
        self.flush = flusher.flush
        self.roll = self.roller.roll
        self.delete_old_segments = self.retainer.delete_old_segments
        self.delete_records = self.retainer.delete_records
        self.remove_expired_producers = self.retainer.remove_expired_producers
        self.create_segment = replacer.create_segment
        self.replace_segments = replacer.replace_segments
        self.truncate_to = truncation.truncate_to
        self.truncate_fully_and_start_at = truncation.truncate_fully_and_start_at

    @property
    def durable_offset(self) -> int:
        """Batches below this are synced."""
        return self.core.durable_offset

    @property
    def recovery_begin(self) -> int:
        """The offset for the recovery-point checkpoint: in the first segment whose batches or indexes are not on disk.

        A flush of the active segment leaves its indexes out. If the recovery point is the log's end and the log rolls
        there, the new segment contains it, and a recovery from there on would not rebuild the old one's indexes. So
        it is one less here until those are synced.
        """
        core = self.core
        with core.lock:
            recovery_point = core.recovery_point
            if core.state is LogState.CLOSED:
                return recovery_point
            begin = recovery_point
            if core.active.base_offset < recovery_point == core.log_end_offset:
                begin -= 1
            for segment in core.unsynced_sealed:
                begin = min(begin, segment.base_offset)
            return max(begin, 0)

    @property
    def last_flush_ms(self) -> int:
        """When a flush last moved the recovery point, by the wall clock; the time of loading before that."""
        return self.core.last_flush_ms

    @property
    def is_retired(self) -> bool:
        """Whether the log is out of service although its directory works: its topic was deleted."""
        core = self.core
        return core.state is LogState.OFFLINE and not core.services.failures.is_offline(core.log_dir)

    def use_append_kernel(self, is_used: bool) -> None:
        """Offer the compiled append to compiled callers, or leave all appends to `append_as_leader`'s."""
        self.append_kernel = self._appender.kernel if is_used else None

    def last_records(self) -> dict[int, LastRecord]:
        """Return each producer's last batch, by producer id; compaction must not lose these."""
        with self.core.lock:
            return self.core.producers.last_records()

    def update_config(self, config: LogConfig) -> None:
        """Use another configuration from now on; index sizes and the index interval hold for new segments."""
        core = self.core
        with core.lock:
            core.config = config
            self._appender.use_config(config)
            if core.state is LogState.ONLINE:
                try:
                    core.active.update_segment_ms(config.max_segment_ms)
                except OSError as error:
                    core.fail("cannot read the first batch", error)

    def close(self) -> None:
        """Make everything durable, write a producer snapshot, trim and close all files. Raises StorageError.

        Does nothing unless the log is online.
        """
        core = self.core
        if core.state is not LogState.ONLINE:
            return
        self.flush()
        with core.lock:
            try:
                core.producers.map_end_offset = core.log_end_offset
                core.producers.take_snapshot(durably=True)
                core.active.seal()
                # The clean-shutdown marker says that indexes can be trusted, so they must be on disk before it.
                core.active.sync(with_indexes=True)
                sync_directory(core.directory)
            except OSError as error:
                core.state = LogState.OFFLINE
                if not is_shortage(error):
                    core.fail("cannot close the log", error)
                raise StorageError(core.directory, f"cannot close {core.topic_partition}: {error}") from error
            else:
                core.state = LogState.CLOSED
            finally:
                core.release_files()

    def assign_topic_id(self, topic_id: bytes) -> None:
        """Write partition.metadata for a log without it. Raises OSError, StorageError if the log has another id."""
        core = self.core
        if core.topic_id is None:
            write_partition_metadata(core.directory, topic_id)
            core.topic_id = topic_id
        elif core.topic_id != topic_id:
            raise StorageError(core.directory, f"{core.topic_partition} belongs to another topic id")

    def rename_directory(self, name: str) -> None:
        """Rename the log's directory within its log directory; open files stay open. Raises OSError."""
        with self.core.lock:
            self.core.rename(name)

    def delete_directory(self) -> None:
        """Remove the directory with all files; the log was taken out of service before. Raises OSError."""
        import shutil  # late: it loads five modules for compression

        self.go_offline()
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.directory)
            sync_directory(self.log_dir)
