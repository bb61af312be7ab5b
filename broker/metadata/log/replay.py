"""Replay of the batches of a metadata log or snapshot, in order, into an image.

Records between BeginTransaction and EndTransaction apply together, at the end; after AbortTransaction, or if the log
ends within the transaction, not at all. That includes carried records: those of an aborted transaction must not
appear in our snapshots. Records below the offset that a snapshot covers are skipped. Records with a key that is not
served are carried: kept for Kafka unchanged. Unreadable data stops the start: a guess would lose topics.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.metadata.errors import (
    MetadataError,
    ReplayError,
    UnsupportedMetadataError,
    ensure_known_level,
)
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.image_builder import ImageBuilder
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.metadata.control import (
    ControlRecord,
    KRaftVersion,
    KRaftVoters,
    SnapshotFooter,
    SnapshotHeader,
    decode_control,
)
from barnabas.protocol.metadata.frame import FRAME_VERSION, SECURITY_KEYS, UnsupportedRecordError, decode_frame
from barnabas.protocol.metadata.identities import NO_OP_KEY
from barnabas.protocol.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
)
from barnabas.protocol.records import RecordBatch, iter_batches, read_records

_NO_OP_HEAD = bytes((FRAME_VERSION, NO_OP_KEY))


class Replayer:
    """Applies buffers of batches. `source` names the file or log in messages."""

    def __init__(self, source: str, start_image: MetadataImage | None = None) -> None:
        self._source = source
        self._builder = ImageBuilder(start_image or MetadataImage())
        self._transaction: list[MetadataRecord] | None = None
        self.next_offset = start_image.end_offset if start_image is not None else 0
        self.log_end_offset = 0
        self.last_epoch = -1
        self.kraft_version = 0
        self.voters: KRaftVoters | None = None
        self.last_timestamp = 0
        self.applied_bytes = 0
        self.has_header = False
        self.header_timestamp = 0
        self.has_footer = False
        self.change_count = 0

    @property
    def in_transaction(self) -> bool:
        """Whether the records so far end within an open transaction."""
        return self._transaction is not None

    @property
    def highest_levels(self) -> Mapping[str, int]:
        """The highest level of each feature at the start or in a replayed record."""
        return self._builder.highest_levels

    def replay(self, buffer: bytes | memoryview) -> int:
        """Apply the complete batches at the start of `buffer`; return their size in bytes. Raises MetadataError."""
        position = 0
        try:
            for batch in iter_batches(buffer):
                batch.ensure_valid()
                self._replay_batch(batch)
                position += batch.size_bytes
        except UnsupportedRecordError as error:
            unsupported = UnsupportedMetadataError(f"{self._source} was written by a newer Kafka: {error}")
            unsupported.hides_security = error.key in SECURITY_KEYS
            raise unsupported from error
        except (DecodeError, ReplayError) as error:
            raise MetadataError(f"{self._source} cannot be read at offset {self.next_offset}: {error}") from error
        return position

    def image(self) -> MetadataImage:
        """Return the state after the replay. Do not use the replayer afterwards. Raises MetadataError."""
        if self._builder.level is not None:
            ensure_known_level(self._builder.level, self._source)
        self._builder.move_to(self.next_offset)
        return self._builder.build()

    def _replay_batch(self, batch: RecordBatch) -> None:
        self.log_end_offset = batch.next_offset
        self.last_epoch = max(self.last_epoch, batch.partition_leader_epoch)
        if batch.last_offset < self.next_offset:
            return
        self.applied_bytes += batch.size_bytes
        self.last_timestamp = batch.max_timestamp
        for record in read_records(batch):
            if record.offset < self.next_offset:
                continue
            self.next_offset = record.offset
            if batch.is_control:
                self._note_control(decode_control(record.key, record.value))
            else:
                self._replay_value(record.value)
        self.next_offset = batch.last_offset + 1

    def _replay_value(self, value: bytes | None) -> None:
        if value is None:
            raise DecodeError("a metadata record has no value")
        if value[:2] == _NO_OP_HEAD:
            return  # a running Kafka writes two per second: not worth decoding
        record = decode_frame(value)
        match record:
            case BeginTransactionRecord():
                if self._transaction is not None:
                    raise ReplayError("a transaction begins within another")
                self._transaction = []
            case EndTransactionRecord():
                if self._transaction is None:
                    raise ReplayError("a transaction ends that never began")
                for pending in self._transaction:
                    self._apply(pending)
                self._transaction = None
            case AbortTransactionRecord():
                if self._transaction is None:
                    raise ReplayError("a transaction is aborted that never began")
                self._transaction = None
            case _ if self._transaction is not None:
                self._transaction.append(record)
            case _:
                self._apply(record)

    def _apply(self, record: MetadataRecord) -> None:
        self._builder.apply(record)
        self.change_count += 1

    def _note_control(self, record: ControlRecord) -> None:
        match record:
            case SnapshotHeader():
                self.has_header = True
                self.header_timestamp = record.last_contained_log_timestamp
            case SnapshotFooter():
                self.has_footer = True
            case KRaftVersion():
                self.kraft_version = record.level
            case KRaftVoters():
                self.voters = record
            case _:
                pass  # leader changes concern Raft only and mean nothing after their epoch
