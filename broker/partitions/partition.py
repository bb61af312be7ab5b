"""One served partition: the only way from the event loop into its log.

Appends and reads run inline in the event loop (the page cache answers in microseconds; a thread hand-over costs six to
eleven times that). Three things wait: a fetch that found too little, until an append wakes it; a produce to a topic
with flush.messages, until the flusher's group commit; and with standby.min.acks=1 all that must not be lost, until the
standby has it (standby_copy.py).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NoReturn, Protocol

from barnabas.broker.metadata.mirrors.refusals import mirror_refusal
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.storage.log.append import AppendOrigin
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.producers.entry import NO_OFFSET
from barnabas.broker.storage.read_only.refusal import refuse_change
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.layout import NO_PARTITION_LEADER_EPOCH

if TYPE_CHECKING:
    import asyncio

    from barnabas.broker.partitions.standby_copy import StandbyCopy
    from barnabas.broker.probes import TopicProbe
    from barnabas.broker.storage.files.file_records import FileSlice
    from barnabas.broker.storage.log.append import AppendResult, TransactionEnd
    from barnabas.broker.storage.log.appending.validator import CheckedBatch
    from barnabas.broker.storage.log.core import LogCore
    from barnabas.broker.storage.log.readable_log import ReadableLog
    from barnabas.broker.storage.producers.entry import ProducerEntry
    from barnabas.broker.storage.segment.old_format_slice import OldFormatSlice


class Waiter(Protocol):
    """A fetch that waits for a partition's records."""

    def wake(self) -> None:
        """Check whether to answer: records were appended, or the partition is no longer available."""
        ...

    def finish(self) -> None:
        """Answer now, with the records available."""
        ...


class Partition:
    """A log, its leader epoch, and the fetches waiting for its next record."""

    __slots__ = (
        "_is_frozen",
        "_loop",
        "_retired",
        "_transaction_marks",
        "_wake_scheduled",
        "_waiters",
        "appended_bytes",
        "copy",
        "leader_epoch",
        "log",
        "mirror",
        "probe",
        "topic_id",
        "writable_log",
    )

    def __init__(
        self,
        log: ReadableLog,
        leader_epoch: int,
        topic_id: bytes,
        probe: TopicProbe,
        loop: asyncio.AbstractEventLoop,
        mirror: str | None = None,
    ) -> None:
        self.log = log
        self.mirror: str | None = None
        """The mirror that alone appends to the log; None for a partition that clients write."""
        self.writable_log: PartitionLog | None = None
        """The same log, for changes by clients; None if the broker only reads, or for a mirrored partition.

        The compiled request path leaves partitions without one to this class, which refuses the change."""
        self._is_frozen = False
        self.set_mirror(mirror)
        self.leader_epoch = leader_epoch
        self.topic_id = topic_id
        self.probe = probe
        self._loop = loop
        self._waiters: dict[Waiter, None] = {}
        self._wake_scheduled = False
        self._retired = False
        self.appended_bytes = 0
        """Grows with every append that consumers may read; a waiting fetch compares it with its min_bytes."""
        self.copy: StandbyCopy | None = None
        """What the standby has; None unless the high watermark waits for it."""
        self._transaction_marks: dict[int, int] = {}
        """First offset of an open transaction that began under this object -> `written_bytes` before it."""

    def set_mirror(self, mirror: str | None) -> None:
        """Make the partition read-only for clients because of a mirror, or writable again with None."""
        self.mirror = mirror
        is_writable = mirror is None and not self._is_frozen
        self.writable_log = self.log if is_writable and isinstance(self.log, PartitionLog) else None

    def freeze(self) -> None:
        """Refuse writes with NOT_LEADER_OR_FOLLOWER, because a standby takes over."""
        self._is_frozen = True
        self.set_mirror(self.mirror)

    def thaw(self) -> None:
        """Accept writes again."""
        self._is_frozen = False
        self.set_mirror(self.mirror)

    def check_client_batch(self, records: memoryview, *, in_transaction: bool) -> CheckedBatch:
        """Check a batch for `append` or `append_in_transaction`, on any thread. Raises BrokerError as they do."""
        log = self.writable_log
        if log is None:
            self._refuse_append()
        return log.check_client_batch(records, AppendOrigin.TRANSACTION if in_transaction else AppendOrigin.CLIENT)

    def append(self, records: memoryview, checked: CheckedBatch | None = None) -> AppendResult:
        """Append one client batch, which is patched in place. Raises BrokerError with the partition's code.

        Raises LargeBatchError for a batch that a thread must check first; `checked` is what that has found.
        """
        log = self.writable_log
        if log is None:
            self._refuse_append()
        result = log.append_as_leader(records, leader_epoch=self.leader_epoch, checked=checked)
        return result if result.is_duplicate else self._appended(result)

    def append_in_transaction(self, records: memoryview, checked: CheckedBatch | None = None) -> AppendResult:
        """Append one client batch that may be transactional, patched in place. Raises as `append` does.

        The transaction's coordinator must have admitted this partition.
        """
        log = self.writable_log
        if log is None:
            self._refuse_append()
        origin = AppendOrigin.TRANSACTION
        result = log.append_as_leader(records, leader_epoch=self.leader_epoch, origin=origin, checked=checked)
        if result.is_duplicate:
            return result
        if result.opens_transaction:
            self._transaction_marks[result.base_offset] = self.written_bytes
        return self._appended(result)

    def append_internal(self, records: memoryview) -> AppendResult:
        """Append whole batches of a coordinator of this broker, patched in place. Raises BrokerError."""
        log = self.writable_log
        if log is None:
            self._refuse_append()
        result = log.append_as_leader(records, leader_epoch=self.leader_epoch, origin=AppendOrigin.COORDINATOR)
        if result.opens_transaction:
            self._transaction_marks[result.base_offset] = self.written_bytes
        return self._appended(result)

    def append_marker(self, end: TransactionEnd) -> AppendResult:
        """End the producer's transaction in this partition, and wake the read_committed fetches that wait for that.

        Raises BrokerError: see MarkerAppender; nothing was appended then.
        """
        log = self.writable_log
        if log is None:
            self._refuse_append()
        entry = log.core.producers.producers.get(end.producer_id)
        first_offset = NO_OFFSET if entry is None else entry.txn_first_offset
        result = log.append_marker(end, leader_epoch=self.leader_epoch)
        self._transaction_marks.pop(first_offset, None)
        return self._appended(result)

    def note_copied(self, size_bytes: int, record_count: int, *, has_cut: bool) -> None:
        """Account for what a mirror has appended to the log on its thread, and wake waiting fetches.

        With `has_cut` records are gone: all waiting fetches are answered, since one at a dropped offset would wait for
        records that never come.
        """
        unstable = self.log.core.first_unstable_offset
        if unstable not in self._transaction_marks:
            # A new transaction begins somewhere in what was copied. Its mark is before all of that, so a fetch waits
            # longer than it must, and never for less.
            self._transaction_marks = {} if unstable is None else {unstable: self.written_bytes}
        if has_cut and self.copy is not None:
            self.appended_bytes += self.copy.forget_appends()
        self._count(size_bytes, self.log.log_end_offset)
        self.probe.bytes_in += size_bytes
        self.probe.records_in += record_count
        if has_cut:
            for waiter in list(self._waiters):
                waiter.finish()
        elif self._waiters:
            self.wake_all()

    def has_open_transaction(self, producer_id: int) -> bool:
        """Return whether records of the producer wait for a marker here."""
        entry = self.producer(producer_id)
        return entry is not None and entry.has_open_transaction

    def open_producers(self) -> list[int]:
        """Return the ids of the producers that have a transaction open here."""
        core = self.log.core
        if core.first_unstable_offset is None:
            return []
        entries = core.producers.producers.items()
        return [producer_id for producer_id, entry in entries if entry.has_open_transaction]

    def producer(self, producer_id: int) -> ProducerEntry | None:
        """Return the state of a producer in this log: a view, to be read in the event loop."""
        return self.log.core.producers.producers.get(producer_id)

    @property
    def stable_bytes(self) -> int:
        """`appended_bytes` up to the last stable offset, for fetches that wait under read_committed."""
        unstable = self.log.core.first_unstable_offset
        if unstable is None:
            return self.appended_bytes
        # A transaction without a mark began before this object: nothing after it is stable.
        return min(self._transaction_marks.get(unstable, 0), self.appended_bytes)

    @property
    def written_bytes(self) -> int:
        """`appended_bytes` with what only the standby may read yet."""
        copy = self.copy
        return self.appended_bytes if copy is None else self.appended_bytes + copy.unreplicated_bytes

    # -- the standby's copy

    @property
    def writable_core(self) -> LogCore | None:
        """The state of the log; None if the broker only reads it."""
        return self.log.core if isinstance(self.log, PartitionLog) else None

    def begin_replication(self, copy: StandbyCopy) -> None:
        """Let the high watermark wait for the standby. The compiled append leaves the partition to this class."""
        self.copy = copy
        if isinstance(self.log, PartitionLog):
            self.log.use_append_kernel(False)

    def end_replication(self) -> None:
        """Let the high watermark be the log end again; everything that waits for the standby is answered."""
        copy, self.copy = self.copy, None
        if copy is not None:
            self.appended_bytes += copy.end_requirement()
            if isinstance(self.log, PartitionLog):
                self.log.use_append_kernel(True)
            self._wake_soon()

    def standby_fetched(self, offset: int) -> None:
        """Note that the standby has everything below `offset`: consumers may read it."""
        if self.copy is not None and (visible := self.copy.fetched(offset)) is not None:
            self.appended_bytes += visible
            self._wake_soon()

    def when_replicated(
        self, end_offset: int, flushed: Deferred[BrokerError | None] | None
    ) -> Deferred[BrokerError | None] | None:
        """Return an answer that comes with `flushed` and once the standby has everything below `end_offset`.

        It has an error only if `flushed` has one, or if the broker stops. None: there is nothing to wait for.
        """
        copy = self.copy
        if copy is None or end_offset <= copy.end:
            return flushed
        answer: Deferred[BrokerError | None] = Deferred()

        def replicated(error: BrokerError | None) -> None:
            if flushed is None:
                answer.resolve(error)
            else:
                flushed.then(lambda failed: answer.resolve(failed or error))

        copy.wait(end_offset, replicated, gives_up=False)
        return answer

    def _count(self, size_bytes: int, end_offset: int) -> None:
        copy = self.copy
        if copy is None:
            self.appended_bytes += size_bytes
        elif size_bytes:
            self.appended_bytes += copy.appended(end_offset, size_bytes, time.monotonic())

    def _refuse_append(self) -> NoReturn:
        self.ensure_not_mirrored()
        self._ensure_not_frozen()
        refuse_change(f"nothing is appended to {self.log.topic_partition}")

    def _ensure_not_frozen(self) -> None:
        if self._is_frozen:
            name = self.log.topic_partition
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{name}: this broker hands over to its standby")

    def ensure_not_mirrored(self) -> None:
        """Raise BrokerError POLICY_VIOLATION for a partition that only a mirror may change."""
        if self.mirror is not None:
            raise mirror_refusal(self.log.topic_partition.topic, self.mirror)

    def _appended(self, result: AppendResult) -> AppendResult:
        self._count(result.size_bytes, result.last_offset + 1)
        probe = self.probe
        probe.bytes_in += result.size_bytes
        probe.records_in += result.record_count
        self._wake_soon()
        return result

    def _wake_soon(self) -> None:
        if self._waiters and not self._wake_scheduled:
            # Once per turn of the loop, for any number of appends, and after the producer has its response.
            self._wake_scheduled = True
            self._loop.call_soon(self._wake)

    def read(
        self, offset: int, max_bytes: int, *, committed_only: bool, at_least_one_batch: bool, to_end: bool = False
    ) -> FileSlice | OldFormatSlice | None:
        """Return stored batches, from the one that contains `offset`; None at the end of the log.

        `to_end`: also those beyond the high watermark, for a standby.

        Raises BrokerError: OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR. The latter also at the end of a log that is not
        online: a consumer there would otherwise wait forever.
        """
        log = self.log
        if to_end:
            upper_bound = log.log_end_offset
        else:
            upper_bound = log.last_stable_offset if committed_only else log.high_watermark
        records = log.read(offset, max_bytes, upper_bound=upper_bound, at_least_one_batch=at_least_one_batch)
        if records is None and log.state is not LogState.ONLINE:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.topic_partition} is {log.state.value}")
        return records

    @property
    def is_retired(self) -> bool:
        """Whether the topic was deleted."""
        return self._retired

    def ensure_current_epoch(self, leader_epoch: int) -> None:
        """Check a client's leader epoch (-1: unchecked).

        Raises BrokerError FENCED_LEADER_EPOCH where it is older, UNKNOWN_LEADER_EPOCH where it is newer.
        """
        if leader_epoch != self.leader_epoch and leader_epoch != NO_PARTITION_LEADER_EPOCH:
            older = leader_epoch < self.leader_epoch
            raise BrokerError(
                ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"leader epoch {leader_epoch} of {self.log.topic_partition} is not the current one,"
                f" {self.leader_epoch}",
            )

    @property
    def is_available(self) -> bool:
        """Whether the partition is still served and its log directory is online."""
        return not self._retired and self.log.state is LogState.ONLINE

    def delete_records(self, offset: int) -> int:
        """Delete the records below `offset` (-1: the high watermark); return the log start offset. Raises BrokerError.

        Answers all waiting fetches: one below the new start would otherwise wait for deleted records.
        """
        log = self.writable_log
        if log is None:
            self.ensure_not_mirrored()
            self._ensure_not_frozen()
            refuse_change(f"no records of {self.log.topic_partition} are deleted")
        before = log.log_start_offset
        start = log.delete_records(offset)
        if start != before:
            for waiter in list(self._waiters):
                waiter.finish()
        return start

    def add_waiter(self, waiter: Waiter) -> None:
        """Wake `waiter` after every append until `remove_waiter`."""
        self._waiters[waiter] = None

    def remove_waiter(self, waiter: Waiter) -> None:
        """Stop waking `waiter`. May be called repeatedly."""
        self._waiters.pop(waiter, None)

    def wake_all(self) -> None:
        """Wake all waiting fetches."""
        for waiter in list(self._waiters):
            waiter.wake()

    def retire(self) -> None:
        """Mark the partition as deleted, wake its waiting fetches, and answer what waits for the standby."""
        self._retired = True
        if self.copy is not None:
            message = f"{self.log.topic_partition} was deleted before the standby had all of it"
            self.copy.give_up(BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message), is_final=True)
        self.wake_all()

    def _wake(self) -> None:
        self._wake_scheduled = False
        self.wake_all()
