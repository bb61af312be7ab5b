"""Applies the batches of a metadata log or snapshot, in order, and says what state they give.

Records between BeginTransaction and EndTransaction apply together, at the end; after AbortTransaction, or when the log
ends before either, not at all. Records below the offset that a snapshot covers are skipped. A record of a key that is
not ours is counted and stays where it is. Anything that cannot be read stops the start: a guess would lose topics.
"""

from __future__ import annotations

from barnabas.broker.metadata.errors import MetadataError, UnsupportedMetadataError, ensure_known_level
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.image_builder import ImageBuilder, ReplayError
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.metadata.control import (
    ControlRecord,
    KRaftVersion,
    SnapshotFooter,
    SnapshotHeader,
    decode_control,
)
from barnabas.protocol.metadata.frame import SERVED_KEYS, UnsupportedRecordError, decode_frame
from barnabas.protocol.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
)
from barnabas.protocol.records import RecordBatch, iter_batches, read_records

_ONE_BYTE_VARINT_LIMIT = 0x80


class Replayer:
    """Takes buffers of whole batches; `image` gives the state. `source` names the file or log in messages."""

    def __init__(self, source: str, start_image: MetadataImage | None = None) -> None:
        self._source = source
        self._builder = ImageBuilder(start_image or MetadataImage())
        self._transaction: list[MetadataRecord] | None = None
        self.next_offset = start_image.end_offset if start_image is not None else 0
        self.log_end_offset = 0
        self.last_epoch = -1
        self.kraft_version = 0
        self.has_header = False
        self.has_footer = False
        self.record_count = 0

    @property
    def in_transaction(self) -> bool:
        """Whether the records so far end within a transaction that neither ended nor was aborted."""
        return self._transaction is not None

    def replay(self, buffer: bytes | memoryview) -> int:
        """Applies the whole batches at the front of `buffer`; returns how many bytes that was. Raises MetadataError."""
        position = 0
        try:
            for batch in iter_batches(buffer):
                batch.ensure_valid()
                self._replay_batch(batch)
                position += batch.size_bytes
        except UnsupportedRecordError as error:
            raise UnsupportedMetadataError(f"{self._source} was written by a newer Kafka: {error}") from error
        except (DecodeError, ReplayError) as error:
            raise MetadataError(f"{self._source} cannot be read at offset {self.next_offset}: {error}") from error
        return position

    def image(self) -> MetadataImage:
        """The state after everything that was replayed; the replayer is used up. Raises MetadataError."""
        if self._builder.level is not None:
            ensure_known_level(self._builder.level, self._source)
        self._builder.move_to(self.next_offset)
        return self._builder.build()

    def _replay_batch(self, batch: RecordBatch) -> None:
        self.log_end_offset = batch.next_offset
        self.last_epoch = max(self.last_epoch, batch.partition_leader_epoch)
        if batch.last_offset < self.next_offset:
            return
        for record in read_records(batch):
            if record.offset < self.next_offset:
                continue
            self.next_offset = record.offset
            if batch.is_control:
                self._note_control(decode_control(record.key, record.value))
            else:
                self._replay_value(record.value)
            self.record_count += 1
        self.next_offset = batch.last_offset + 1

    def _replay_value(self, value: bytes | None) -> None:
        if value is None:
            raise DecodeError("a metadata record has no value")
        if len(value) > 1 and value[0] == 1 and value[1] < _ONE_BYTE_VARINT_LIMIT and value[1] not in SERVED_KEYS:
            self._builder.count_unserved(value[1])  # a running Kafka writes two NoOps a second: not worth decoding
            return
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
                    self._builder.apply(pending)
                self._transaction = None
            case AbortTransactionRecord():
                if self._transaction is None:
                    raise ReplayError("a transaction is aborted that never began")
                self._transaction = None
            case _ if self._transaction is not None:
                self._transaction.append(record)
            case _:
                self._builder.apply(record)

    def _note_control(self, record: ControlRecord) -> None:
        match record:
            case SnapshotHeader():
                self.has_header = True
            case SnapshotFooter():
                self.has_footer = True
            case KRaftVersion():
                self.kraft_version = record.level
            case _:
                pass  # leader changes and voters: Raft's own, kept in the log
