"""TransactionLog: the only writer of `__transaction_state`, and what replaying it gives.

A state is encoded, appended, and then put into memory by the same function that a start uses. A null value deletes an
id. At transaction.version 0 the record has version 0, which has no room for what later versions need.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.coordinator_log.log import Appended, CoordinatorLog
from barnabas.broker.coordinator_log.parts import LogParts
from barnabas.broker.metadata.own_topics import TRANSACTION_STATE
from barnabas.broker.printable import printable
from barnabas.broker.repeated_warnings import ANY_HOST, Event, RepeatedWarnings
from barnabas.broker.transactions.metadata import TransactionMetadata
from barnabas.broker.transactions.records import encode_metadata
from barnabas.broker.transactions.state import TransactionState
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.builder import RecordBatchBuilder
from barnabas.protocol.records.kernels.kernel import one_record_batch
from barnabas.protocol.transactions.records import TransactionLogKey

if TYPE_CHECKING:
    from barnabas.broker.coordinator_log.log import Encode
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.storage.log.append import AppendResult

logger = logging.getLogger(__name__)

TRANSACTION_VERSION: Final = "transaction.version"
"""Name of the feature."""

_TOO_LARGE: Final = Event(ANY_HOST, "states of transactional ids could not be written")


class TransactionLog:
    """Transactional ids and their states, in the event loop. See CoordinatorLog for what is not described here."""

    def __init__(self, parts: LogParts) -> None:
        self.coordinator_log = CoordinatorLog(TRANSACTION_STATE, parts)
        self.states: dict[str, TransactionMetadata] = {}
        self.open_ids: set[str] = set()
        """Ids whose transaction is open: those in state Ongoing."""
        self._store = parts.store
        self._warnings = RepeatedWarnings(parts.loop)
        self._wall_ms = parts.wall_ms

    @property
    def version(self) -> int:
        """The cluster's transaction.version."""
        return self._store.image.features.get(TRANSACTION_VERSION, 0)

    def version_for(self, client_version: int) -> int:
        """Return the transaction.version that a request uses: the client's, at most the cluster's."""
        return min(client_version, self.version)

    def open_since_ms(self) -> list[int]:
        """Return the start times of open transactions. May be called by any thread."""
        found = (self.states.get(each) for each in list(self.open_ids))
        return [metadata.start_ms for metadata in found if metadata is not None]

    def append(self, metadata: TransactionMetadata) -> Appended:
        """Append a state and replay it. Raises nothing: the answer carries the error."""
        transactional_id = metadata.transactional_id

        def replay() -> None:
            self.replay(transactional_id, metadata)

        return self.coordinator_log.append(transactional_id, self._encoding(metadata), replay)

    def forget(self, number: int, transactional_ids: Sequence[str]) -> Appended:
        """Append tombstones of ids in one partition, and replay them."""

        def write(partition: Partition) -> AppendResult:
            return partition.append_internal(memoryview(self._tombstones(transactional_ids, partition)))

        def replay() -> None:
            for each in transactional_ids:
                self.replay(each, None)

        return self.coordinator_log.append_to(number, write, replay)

    def replay(self, transactional_id: str, metadata: TransactionMetadata | None) -> None:
        """Put a state into memory; None removes the id."""
        if metadata is None:
            self.states.pop(transactional_id, None)
        else:
            self.states[transactional_id] = metadata
        if metadata is not None and metadata.state is TransactionState.ONGOING:
            self.open_ids.add(transactional_id)
        else:
            self.open_ids.discard(transactional_id)

    def forget_all(self) -> None:
        """Forget all ids after the topic was deleted."""
        self.states.clear()
        self.open_ids.clear()
        self.coordinator_log.forget_topic()

    def _encoding(self, metadata: TransactionMetadata) -> Encode:
        def encode(max_bytes: int) -> bytearray:
            try:
                key = TransactionLogKey(metadata.transactional_id).to_bytes()
                value = encode_metadata(metadata, self.version)
            except ValueError as error:
                raise BrokerError(ErrorCode.INVALID_REQUEST, f"{error}") from error
            batch = one_record_batch(self._wall_ms(), key, value)
            if len(batch) > max_bytes:
                message = f"the record of {len(batch)} bytes does not fit max.message.bytes={max_bytes}"
                text = "the state of transactional.id=%s could not be written: %s"
                self._warnings.warn(logger, _TOO_LARGE, text, printable(metadata.transactional_id), message)
                raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, message)
            return batch

        return encode

    def _tombstones(self, transactional_ids: Iterable[str], partition: Partition) -> bytearray:
        """Encode tombstones into as many batches as they need."""
        now_ms, max_bytes = self._wall_ms(), partition.log.config.max_message_bytes
        batches = bytearray()
        builder = RecordBatchBuilder(max_bytes=max_bytes)
        for transactional_id in transactional_ids:
            key = TransactionLogKey(transactional_id).to_bytes()
            if not builder.append(now_ms, key, None):
                batches += builder.build()
                builder = RecordBatchBuilder(max_bytes=max_bytes)
                builder.append(now_ms, key, None)
        batches += builder.build()
        return batches
