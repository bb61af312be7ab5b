"""LogAppender: appends of clients and of this broker's own writers.

Order of an append: epoch cache, size check, producer check, roll, write, indexes, end offset. (Kafka rolls before the
producer check: there a repeated batch can leave an empty segment.) Source: Kafka UnifiedLog, LocalLog.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from barnabas.broker.storage.kernels.kernel import append_kernel
from barnabas.broker.storage.log.append import INLINE_DECOMPRESSED_BYTES, AppendOrigin, AppendResult
from barnabas.broker.storage.log.appending.trusted_appender import TrustedAppender, refuse_size
from barnabas.broker.storage.log.appending.validator import CheckedBatch, ClientBatchRules, stamp_again
from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.log.read import LogEnd
from barnabas.broker.storage.log.roller import LogRoller
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.producers.entry import BatchMetadata
from barnabas.config.log_config import LogConfig
from barnabas.protocol.records.layout import LOG_OVERHEAD

if TYPE_CHECKING:
    from barnabas.broker.storage.kernels._append import AppendKernel

_pack_placement = struct.Struct(">qii").pack_into
"""Writes base offset, length and partition leader epoch; offset and epoch are outside of the batch's CRC."""
_new_tuple = tuple.__new__

_ONLINE = LogState.ONLINE
_CLIENT = AppendOrigin.CLIENT
_TRANSACTION = AppendOrigin.TRANSACTION


class LogAppender:
    """Appends to one log."""

    __slots__ = (
        "_append_trusted",
        "_core",
        "_flush_messages",
        "_kernel",
        "_roller",
        "_rules",
        "_segment_bytes",
        "_transaction_rules",
    )

    def __init__(self, core: LogCore, roller: LogRoller) -> None:
        self._core = core
        self._roller = roller
        self._kernel = append_kernel(core)
        self._append_trusted = TrustedAppender(core, roller, self._kernel).append
        self.use_config(core.config)

    @property
    def kernel(self) -> AppendKernel | None:
        """The compiled common case, for callers that are compiled themselves; None without it."""
        return self._kernel

    def use_config(self, config: LogConfig) -> None:
        """Use another configuration for the next appends. After the constructor the lock is held."""
        self._rules = ClientBatchRules(self._core.topic_partition, config)
        self._transaction_rules = ClientBatchRules(self._core.topic_partition, config, allows_transactions=True)
        self._segment_bytes = config.segment_bytes
        self._flush_messages = config.flush_messages
        if self._kernel is not None:
            self._kernel.use_config(config)

    def check_client_batch(self, records: memoryview, origin: AppendOrigin) -> CheckedBatch:
        """Validate a batch that `append_as_leader` found too large for its caller's thread; patched in place.

        Raises BrokerError, as the append would. Thread-safe.
        """
        rules = self._transaction_rules if origin is _TRANSACTION else self._rules
        return rules.check(records, self._core.wall_ms())

    def append_as_leader(
        self,
        records: memoryview,
        *,
        leader_epoch: int,
        origin: AppendOrigin = _CLIENT,
        checked: CheckedBatch | None = None,
    ) -> AppendResult:
        """Append one client batch, or whole batches of another origin; `records` is patched in place.

        The buffer must not be reused before the return. The records are in the page cache on return; `flush_due` says
        that the answer must wait for a group commit. Raises BrokerError: the codes of validator.py,
        RECORD_LIST_TOO_LARGE (18) above segment.bytes, OUT_OF_ORDER_SEQUENCE_NUMBER (45) and INVALID_PRODUCER_EPOCH
        (47), INVALID_TXN_STATE (48), KAFKA_STORAGE_ERROR (56). Raises LargeBatchError for a client's batch that holds
        more than INLINE_DECOMPRESSED_BYTES, unless `checked` is what `check_client_batch` returned for it.
        """
        rules = self._rules
        if origin is not _CLIENT:
            if origin is not _TRANSACTION:
                return self._append_trusted(records, leader_epoch, origin)
            rules = self._transaction_rules
        core = self._core
        now_ms = core.wall_ms()
        kernel = self._kernel
        if checked is not None:
            checked = stamp_again(checked, now_ms)
        elif kernel is not None:
            appended = kernel.append_as_leader(records, leader_epoch, origin is _TRANSACTION, now_ms)
            if appended is not None:
                return appended
        (
            data,
            length,
            last_offset_delta,
            record_count,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            log_append_time_ms,
            is_transactional,
        ) = checked or rules.check(records, now_ms, INLINE_DECOMPRESSED_BYTES)
        size = length + LOG_OVERHEAD
        with core.lock:
            if core.state is not _ONLINE:
                core.refuse_state()
            base_offset = core.log_end_offset
            last_offset = base_offset + last_offset_delta
            try:
                if leader_epoch != core.latest_epoch:
                    core.assign_epoch(leader_epoch, base_offset)
                if size > self._segment_bytes:
                    refuse_size(core.topic_partition, size, self._segment_bytes)
                if producer_id >= 0:
                    repeated = core.producers.check_batch(
                        producer_id, producer_epoch, base_sequence, last_offset_delta, is_transactional
                    )
                    if repeated is not None:
                        return self._repeated_result(repeated, size)
                segment = core.active
                position = segment.log.size_bytes
                if segment.should_roll(size, last_offset, max_timestamp, now_ms, self._segment_bytes):
                    segment = self._roller.roll_at(base_offset)
                    position = 0
                _pack_placement(data, 0, base_offset, length, leader_epoch)
                segment.append(data, size, last_offset, max_timestamp)
            except OSError as error:
                core.refuse_append(error)
            opens_transaction = False
            if producer_id >= 0:
                opens_transaction = core.producers.note_batch(
                    producer_id,
                    producer_epoch,
                    base_sequence,
                    last_offset,
                    last_offset_delta,
                    max_timestamp,
                    is_transactional=is_transactional,
                    appended_ms=now_ms,
                )
                if opens_transaction:
                    # Before the end of the log: read_committed must not see a transaction that has just begun.
                    core.first_unstable_offset = core.producers.open_transactions.first_offset
            next_offset = last_offset + 1
            core.end = _new_tuple(LogEnd, (next_offset, segment, position + size, base_offset, position))
            core.log_end_offset = next_offset
            result: AppendResult = _new_tuple(
                AppendResult,
                (
                    base_offset,
                    last_offset,
                    log_append_time_ms,
                    core.log_start_offset,
                    size,
                    record_count,
                    next_offset - core.durable_offset >= self._flush_messages,
                    False,
                    opens_transaction,
                ),
            )
            return result

    def assign_epoch_start_offset(self, epoch: int, start_offset: int) -> None:
        """Record that leader `epoch` writes from `start_offset` on; durable on return. Raises BrokerError."""
        core = self._core
        with core.lock:
            core.ensure_online()
            try:
                core.assign_epoch(epoch, start_offset)
            except OSError as error:
                core.refuse_append(error)

    def _repeated_result(self, repeated: BatchMetadata, size: int) -> AppendResult:
        core = self._core
        return AppendResult(
            repeated.first_offset,
            repeated.last_offset,
            repeated.timestamp,  # under CreateTime, too, as in Kafka
            core.log_start_offset,
            size,
            repeated.offset_delta + 1,
            # The first answer may have been lost before its group commit: the repeat must not overtake it.
            self._flush_messages == 1 and repeated.last_offset >= core.durable_offset,
            is_duplicate=True,
        )
