"""What a PartitionLog consists of, what may be asked of it at any time, and how it refuses.

The lowest layer, split for reading only: LogState (this file); on it LogReader and LogFlushing, on the latter LogWriter
(appends, rolls) and LogTruncation; PartitionLog (retention, the log's life) on all. The invariants are in log.py.
"""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path
from typing import NoReturn

from barnabas.broker.storage.files.durable_files import sync_directory
from barnabas.broker.storage.log.loader import LoadedLog
from barnabas.broker.storage.log.read import LogEnd
from barnabas.broker.storage.log.validator import ClientBatchRules
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.log_segments import SegmentsView
from barnabas.broker.storage.services.log_dir_failure import is_shortage
from barnabas.broker.storage.services.services import StorageServices
from barnabas.config.log_config import LogConfig
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.data.describe_producers import ActiveProducer
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

_QUIET_SECONDS = 30.0


class LogState:
    """The attributes of a log. Those without an underscore may be read by any thread without a lock."""

    def __init__(
        self,
        loaded: LoadedLog,
        *,
        topic_partition: TopicPartition,
        topic_id: bytes | None,
        directory: Path,
        config: LogConfig,
        services: StorageServices,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.directory = directory
        self.log_dir = directory.parent
        self.config = config
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        self.last_flush_ms = services.clock.wall_ms()
        self.state = "online"
        """online, offline (its directory failed) or closed."""
        self._services = services
        self._wall_ms = services.clock.wall_ms
        self._quiet_until = 0.0
        self._lock = threading.Lock()
        self._segments = loaded.segments
        self._active = loaded.segments.last
        self._epochs = loaded.leader_epochs
        self._latest_epoch = loaded.leader_epochs.latest_epoch
        self._producers = loaded.producer_state
        self._first_unstable_offset = loaded.producer_state.first_unstable_offset
        self.durable_offset = loaded.recovery_point
        """Batches below this are synced."""
        self.truncations = 0
        """How often the end was cut off: what was synced before such a moment says nothing about what came after."""
        self._unsynced_sealed: list[LogSegment] = [
            segment
            for segment in loaded.segments.view.overlapping(loaded.recovery_point, loaded.log_end_offset)
            if segment is not self._active
        ]
        """Sealed segments whose indexes, or bytes, may not be on the disk yet. Changed under the lock."""
        self._rules = ClientBatchRules(topic_partition, config)
        self._segment_bytes = config.segment_bytes
        self._flush_messages = config.flush_messages
        size = self._active.size_bytes
        self._end = LogEnd(self.log_end_offset, self._active, size, -1, size)
        """What readers go by; replaced as a whole by each append and roll."""

    def __repr__(self) -> str:
        return f"PartitionLog({self.topic_partition}, {self.log_start_offset}..{self.log_end_offset}, {self.directory})"

    @property
    def high_watermark(self) -> int:
        """The end of what consumers see: on a single node everything that is written."""
        return self.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """The end of what read_committed consumers see: where the oldest open transaction begins, or everything."""
        unstable = self._first_unstable_offset
        if unstable is None:
            return self.log_end_offset
        return max(min(unstable, self.log_end_offset), self.log_start_offset)

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments' batches."""
        return self._segments.size_bytes

    @property
    def segment_count(self) -> int:
        """How many segments there are."""
        return len(self._segments)

    def wall_ms(self) -> int:
        """The log's clock."""
        return self._wall_ms()

    def report_failure(self, what: str, error: OSError) -> None:
        """Somebody who works on the log's files has met a failed disk: the log stops, its directory goes offline."""
        self._fail(what, error)

    @property
    def segments_view(self) -> SegmentsView:
        """The segments at this moment with their base offsets."""
        return self._segments.view

    @property
    def segments(self) -> tuple[LogSegment, ...]:
        """The segments at this moment, the active one last."""
        return self._segments.view.segments

    @property
    def index_entries(self) -> int:
        """Offset index entries of the active segment."""
        return max(self._active.offset_index.entries, 0)

    @property
    def latest_leader_epoch(self) -> int:
        """The epoch that writes now, or -1."""
        return self._latest_epoch

    @property
    def producer_count(self) -> int:
        """How many producer ids are remembered."""
        return len(self._producers.producers) + len(self._producers.overdue)

    def active_producers(self) -> list[ActiveProducer]:
        """Every remembered producer as it stands. Raises BrokerError KAFKA_STORAGE_ERROR."""
        self._ensure_online()
        with self._lock:
            return [
                ActiveProducer(
                    entry.producer_id,
                    entry.epoch,
                    entry.last_sequence,
                    entry.last_timestamp,
                    entry.coordinator_epoch,
                    entry.txn_first_offset,
                )
                for entry in (*self._producers.producers.values(), *self._producers.overdue.values())
            ]

    @property
    def unflushed_records(self) -> int:
        """Offsets that a crash of the machine could take."""
        return self.log_end_offset - self.durable_offset

    @property
    def is_retired(self) -> bool:
        """Whether it is out of service although its directory works: its topic was deleted."""
        return self.state == "offline" and not self._services.failures.is_offline(self.log_dir)

    def _rename(self, name: str) -> None:
        """Rename the log's directory within its data directory; open files go on. The lock is held. Raises OSError."""
        target = self.log_dir / name
        os.rename(self.directory, target)
        self.directory = target
        for segment in self._segments:
            segment.move_to(os.fspath(target))
        self._epochs.move_to(target)
        self._producers.move_to(target)
        sync_directory(self.log_dir)

    def _exchange_files(self, other: LogState) -> None:
        """Change directory and files with a log that holds the same records; what is known of them stays.

        Both locks are held. Readers take `_end` before the segments, so these come first.
        """
        self.log_dir, other.log_dir = other.log_dir, self.log_dir
        self.directory, other.directory = other.directory, self.directory
        self._epochs.move_to(self.directory)
        other._epochs.move_to(other.directory)
        self._producers.exchange_files(other._producers)
        self._segments, other._segments = other._segments, self._segments
        self._active, other._active = other._active, self._active
        self._unsynced_sealed, other._unsynced_sealed = other._unsynced_sealed, self._unsynced_sealed
        self._end, other._end = other._end, self._end
        self.durable_offset, other.durable_offset = other.durable_offset, self.durable_offset
        self.recovery_point, other.recovery_point = other.recovery_point, self.recovery_point
        self.recovery_point = max(self.recovery_point, self.log_start_offset)

    def _ensure_online(self) -> None:
        if self.state != "online":
            self._refuse_state()

    def _refuse_state(self) -> NoReturn:
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic_partition} is {self.state}")

    def _refuse_size(self, size: int) -> NoReturn:
        raise BrokerError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{self.topic_partition}: the batch has {size} bytes, segment.bytes is {self._segment_bytes}",
        )

    def _refuse_offset(self, offset: int, end_offset: int) -> NoReturn:
        raise BrokerError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{self.topic_partition}: offset {offset} is outside of [{self.log_start_offset}, {end_offset}]",
        )

    def _refuse_append(self, error: OSError) -> NoReturn:
        if not is_shortage(error):
            self._fail("cannot append", error)
        elif self._services.clock.monotonic() >= self._quiet_until:
            # A full disk refuses thousands of appends in a second: one line is enough for a while.
            self._quiet_until = self._services.clock.monotonic() + _QUIET_SECONDS
            logger.warning("appends to %s are refused until there is room: %s", self.topic_partition, error)
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic_partition}: cannot append: {error}") from error

    def _refuse_missing(self, error: FileNotFoundError) -> NoReturn:
        """A file is gone: the topic's directory was just renamed, or somebody removed it. The disk is not to blame."""
        if self.state == "online" and self.directory.exists():
            logger.error("a file of %s is missing: %s", self.topic_partition, error)
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic_partition}: a file is gone") from error

    def _refuse_read(self, error: OSError) -> NoReturn:
        if self.state == "online" and not is_shortage(error):
            self._fail("cannot read", error)
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic_partition}: cannot read: {error}") from error

    def _fail(self, what: str, error: OSError) -> None:
        """The disk has failed: this log stops at once, the others of its directory as soon as the handler runs."""
        if self.state == "online":
            self.state = "offline"
        self._services.failures.report(self.log_dir, f"{what} ({self.topic_partition})", error)
