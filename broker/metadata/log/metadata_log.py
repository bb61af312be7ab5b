"""The metadata log as the writer sees it: a PartitionLog in `<metadata.log.dir>/__cluster_metadata-0`.

Its settings are fixed and independent of the topics' defaults: small segments must not split the metadata, and
retention never deletes it. Every open recovers it, as in Kafka: it is small. The replay before read the same bytes, so
both must find the same end.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.storage.files.durable_files import sync_directory
from barnabas.broker.storage.log.append import AppendOrigin
from barnabas.protocol.topic_name import CLUSTER_METADATA_TOPIC
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.uuids import METADATA_TOPIC_UUID

if TYPE_CHECKING:
    from barnabas.broker.metadata.log.log_replay import ReplayedLog
    from barnabas.broker.storage.log.partition_log import PartitionLog
    from barnabas.broker.storage.log_manager import LogManager
    from barnabas.config import LogConfig

TOPIC_PARTITION = TopicPartition(CLUSTER_METADATA_TOPIC, 0)

_SEGMENT_BYTES = 1024 * 1024 * 1024
_SEGMENT_MS = 7 * 24 * 60 * 60 * 1000
_INDEX_INTERVAL_BYTES = 4096
_INDEX_BYTES = 10 * 1024 * 1024
_NEVER = 2**63 - 1


class MetadataLog:
    """Log of the metadata writer. Raft's rules apply to appends: several batches, control batches, no size limit."""

    def __init__(self, log: PartitionLog) -> None:
        self._log = log

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return self._log.log_end_offset

    def append(self, batches: bytes, leader_epoch: int) -> None:
        """Append whole batches, all or none. Raises BrokerError KAFKA_STORAGE_ERROR."""
        self._log.append_as_leader(memoryview(bytearray(batches)), leader_epoch=leader_epoch, origin=AppendOrigin.RAFT)

    def sync(self) -> None:
        """Make all appended batches durable. Raises StorageError."""
        self._log.flush()

    def append_copied(self, batches: memoryview) -> None:
        """Append whole batches of another broker's log as they are. Raises BrokerError, CorruptFileError."""
        from barnabas.broker.storage.log.appending.follower import FollowerAppender  # here: only a standby's use

        FollowerAppender(self._log.core, self._log.roller).append_as_follower(batches)

    def read(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Return stored bytes from the batch with `offset` on, below `end_offset`, a batch boundary.

        The first batch is whole, the last one may be cut. Empty at the end. Raises BrokerError.
        """
        found = self._log.read(offset, max_bytes, upper_bound=end_offset, at_least_one_batch=True)
        return b"" if found is None else bytes(found.read())

    def restart_at(self, offset: int) -> None:
        """Drop all batches; the log begins again at `offset`. Raises BrokerError, OSError."""
        self._log.truncate_fully_and_start_at(offset)
        sync_directory(self._log.directory)  # for the same reason as in `roll`

    def roll(self) -> None:
        """Begin a segment at the end offset, so that earlier ones can be deleted as files. Raises BrokerError, OSError.

        The name of its `.log` is on disk before its indexes are created: a start takes an index without a `.log` for
        the rest of a lost segment, and is refused.
        """
        self._log.roll()
        sync_directory(self._log.directory)

    def trim_to(self, offset: int) -> int:
        """Drop the segments entirely below `offset`; return their number. Raises BrokerError."""
        self._log.delete_records(offset)
        return self._log.delete_old_segments()

    @property
    def start_offset(self) -> int:
        """The offset of the first record."""
        return self._log.log_start_offset

    @property
    def size_bytes(self) -> int:
        """Size of all segments."""
        return self._log.size_bytes

    @property
    def directory(self) -> Path:
        """The directory of the log."""
        return self._log.directory

    def close(self) -> None:
        """Sync, trim and close the files, unless they are closed. Raises StorageError."""
        self._log.close()


def open_metadata_log(log_manager: LogManager, replayed: ReplayedLog, defaults: LogConfig) -> MetadataLog:
    """Open or create the log, without its torn tail. `replayed` was read from the same directory.

    A log that ends before its newest snapshot restarts at the snapshot's end offset: the snapshot covers everything
    before. Raises MetadataError if the log's end differs from the replay's, and StorageError.
    """
    end_offset = replayed.image.end_offset
    log = log_manager.open_metadata_log(
        TOPIC_PARTITION,
        METADATA_TOPIC_UUID,
        _log_config(defaults),
        log_start_offset=end_offset if replayed.log_end_offset < end_offset else 0,
    )
    if log.log_end_offset != end_offset:
        raise MetadataError(
            f"{log.directory} ends at offset {log.log_end_offset}, but its snapshots and records were read up to "
            f"offset {end_offset}"
        )
    return MetadataLog(log)


def _log_config(defaults: LogConfig) -> LogConfig:
    return replace(
        defaults,
        segment_bytes=_SEGMENT_BYTES,
        segment_ms=_SEGMENT_MS,
        segment_jitter_ms=0,
        index_interval_bytes=_INDEX_INTERVAL_BYTES,
        segment_index_bytes=_INDEX_BYTES,
        preallocate=False,
        compact=False,
        delete=False,
        retention_ms=-1,
        retention_bytes=-1,
        flush_messages=_NEVER,
        flush_ms=_NEVER,
        flush_acks_all=False,
    )
