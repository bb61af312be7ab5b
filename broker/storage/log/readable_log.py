"""ReadableLog: the common base of PartitionLog and ReadOnlyLog: offsets, sizes and reads.

PartitionLog adds the changes; ReadOnlyLog adds nothing. The reader's methods are attributes bound once, so that a read
costs no extra Python call.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.log.reader import LogReader
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.log_segments import SegmentsView
from barnabas.config.log_config import LogConfig
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.protocol.messages.data.describe_producers import ActiveProducer


class ReadableLog:
    """The offsets, sizes and records of one log. Any thread may use it; nothing but `active_producers` takes a lock."""

    __slots__ = (
        "aborted_transactions",
        "aborted_transactions_of",
        "convert_old_format",
        "core",
        "diverging_epoch",
        "end_offset_for_epoch",
        "go_offline",
        "leader_epoch_for",
        "offset_for_max_timestamp",
        "offset_for_timestamp",
        "read",
        "topic_partition",
    )

    def __init__(self, core: LogCore, reader: LogReader) -> None:
        self.core = core
        """The shared state, for the parts of this log and for FutureLog."""
        self.topic_partition: TopicPartition = core.topic_partition
        self.go_offline = core.go_offline
        self.read = reader.read
        self.convert_old_format = reader.convert_old_format
        self.aborted_transactions = reader.aborted_transactions
        self.aborted_transactions_of = reader.aborted_transactions_of
        self.offset_for_timestamp = reader.offset_for_timestamp
        self.offset_for_max_timestamp = reader.offset_for_max_timestamp
        self.leader_epoch_for = reader.leader_epoch_for
        self.diverging_epoch = reader.diverging_epoch
        self.end_offset_for_epoch = reader.end_offset_for_epoch

    def __repr__(self) -> str:
        return repr(self.core)

    @property
    def topic_id(self) -> bytes | None:
        """The id in partition.metadata, or None without that file."""
        return self.core.topic_id

    @property
    def config(self) -> LogConfig:
        """The configuration in force."""
        return self.core.config

    @property
    def state(self) -> LogState:
        """Whether the log is online."""
        return self.core.state

    @property
    def directory(self) -> Path:
        """The directory of the log's files."""
        return self.core.directory

    @property
    def log_dir(self) -> Path:
        """The log directory (an entry of log.dirs) that holds `directory`."""
        return self.core.log_dir

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return self.core.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset of the next append."""
        return self.core.log_end_offset

    @property
    def high_watermark(self) -> int:
        """The end of what consumers see: the log end offset, or what the standby has where that is required."""
        return self.core.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The end of what read_committed consumers see: where the oldest open transaction begins, if not before."""
        core = self.core
        unstable = core.first_unstable_offset
        if unstable is None:
            return core.high_watermark
        return max(min(unstable, core.high_watermark), core.log_start_offset)

    @property
    def recovery_point(self) -> int:
        """Where recovery begins after a crash: everything below it is durable, indexes of sealed segments included."""
        return self.core.recovery_point

    @property
    def size_bytes(self) -> int:
        """Total size of the segments' `.log` files."""
        return self.core.segments.size_bytes

    @property
    def segment_count(self) -> int:
        """Number of segments."""
        return len(self.core.segments)

    @property
    def segments_view(self) -> SegmentsView:
        """The current segments with their base offsets; immutable."""
        return self.core.segments.view

    @property
    def segments(self) -> tuple[LogSegment, ...]:
        """The current segments, the active one last."""
        return self.core.segments.view.segments

    @property
    def latest_leader_epoch(self) -> int:
        """The newest leader epoch, or -1."""
        return self.core.latest_epoch

    @property
    def producer_count(self) -> int:
        """Number of producer ids in the producer state."""
        producers = self.core.producers
        return len(producers.producers) + len(producers.overdue)

    def active_producers(self) -> list[ActiveProducer]:
        """Return every producer of the producer state. Takes the lock. Raises BrokerError KAFKA_STORAGE_ERROR."""
        from barnabas.protocol.messages.data.describe_producers import ActiveProducer

        core = self.core
        core.ensure_online()
        with core.lock:
            return [
                ActiveProducer(
                    producer_id=entry.producer_id,
                    epoch=entry.epoch,
                    last_sequence=entry.last_sequence,
                    last_timestamp=entry.last_timestamp,
                    coordinator_epoch=entry.coordinator_epoch,
                    transaction_start_offset=entry.txn_first_offset,
                )
                for entry in (*core.producers.producers.values(), *core.producers.overdue.values())
            ]
