"""The origin and the result of an append, and the end of a transaction as logs append it.

Source: Kafka AppendOrigin, LogAppendInfo.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from barnabas.protocol.records.end_marker import EndMarker, encode_marker_batch

INLINE_DECOMPRESSED_BYTES: Final = 2 * 1024 * 1024
"""The event loop decompresses batches up to this: some milliseconds. Clients' batches have at most 1 MiB by default."""


class LargeBatchError(Exception):
    """A client's batch decompresses to more than INLINE_DECOMPRESSED_BYTES; nothing was appended.

    Let a thread check it (`PartitionLog.check_client_batch`), and append it with the result.
    """


class AppendOrigin(Enum):
    """The writer of the records, which decides the rules that they must follow."""

    CLIENT = "client"
    """A producer: one batch, base offset 0, no control records, sequences checked, timestamps and sizes limited."""
    TRANSACTION = "transaction"
    """As CLIENT, in a request with a transactional id: the batch may be transactional."""
    COORDINATOR = "coordinator"
    """A coordinator of this broker: batches as built; offsets and epoch are stamped."""
    RAFT = "raft"
    """The metadata log's writer: as COORDINATOR, without a limit on a batch's size."""


class AppendResult(NamedTuple):
    """The offsets of appended records.

    log_append_time_ms   the timestamp of all records under LogAppendTime, else -1
    flush_due            flush.messages records are unsynced: acknowledge after the flusher's group commit
    is_duplicate         the producer sent this batch before: nothing was written, the offsets are the old ones
    opens_transaction    a transaction begins in this log with the first of these records
    """

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    size_bytes: int
    record_count: int
    flush_due: bool
    is_duplicate: bool = False
    opens_transaction: bool = False


class TransactionEnd:
    """The end of one producer's transaction, appended to the logs of all its partitions.

    producer_epoch       the marker's: with transaction.version 2 it is above the data's
    transaction_version  the client's when it began the transaction; see ProducerState.check_marker
    """

    __slots__ = ("_batch", "_encoded_as", "marker", "producer_epoch", "producer_id", "transaction_version")

    def __init__(self, producer_id: int, producer_epoch: int, marker: EndMarker, transaction_version: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.marker = marker
        self.transaction_version = transaction_version
        self._batch = bytearray()
        self._encoded_as: tuple[int, bool] | None = None

    def batch(self, timestamp_ms: int, *, log_append_time: bool) -> bytearray:
        """Return the marker's control batch; the caller stamps offset and leader epoch, which its CRC does not cover.

        Calls with equal arguments return the same buffer, so write it before the next call.
        """
        wanted = (timestamp_ms, log_append_time)
        if wanted != self._encoded_as:
            self._encoded_as = wanted
            self._batch = encode_marker_batch(
                self.producer_id, self.producer_epoch, self.marker, timestamp_ms, log_append_time=log_append_time
            )
        return self._batch
