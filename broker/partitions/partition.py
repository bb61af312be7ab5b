"""One partition as the daemon sees it: the one async door into its log.

Appends and reads run inline in the event loop (the page cache answers in microseconds; a hand-over to a thread costs
six to eleven times that). What waits: a fetch that found too little, until an append wakes it; a produce whose topic
wants its records flushed (flush.messages), until the flusher's group commit reached them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, Protocol

from barnabas.broker.storage.log.append import AppendOrigin
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.read_only.refusal import refuse_change
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.layout import NO_PARTITION_LEADER_EPOCH

if TYPE_CHECKING:
    import asyncio

    from barnabas.broker.probes import TopicProbe
    from barnabas.broker.storage.files.file_records import FileSlice
    from barnabas.broker.storage.log.append import AppendResult
    from barnabas.broker.storage.log.readable_log import ReadableLog
    from barnabas.broker.storage.segment.old_format_slice import OldFormatSlice


class Waiter(Protocol):
    """Who waits for a partition's records: a fetch."""

    def wake(self) -> None:
        """There are more records, or there will never be any: see whether that is enough."""
        ...

    def finish(self) -> None:
        """End the waiting, whatever there is."""
        ...


class Partition:
    """A log, its leader epoch, and the fetches that wait for its next record."""

    __slots__ = (
        "_loop",
        "_retired",
        "_wake_scheduled",
        "_waiters",
        "appended_bytes",
        "leader_epoch",
        "log",
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
    ) -> None:
        self.log = log
        self.writable_log = log if isinstance(log, PartitionLog) else None
        """The same log, for changes; None if the broker only reads."""
        self.leader_epoch = leader_epoch
        self.topic_id = topic_id
        self.probe = probe
        self._loop = loop
        self._waiters: dict[Waiter, None] = {}
        self._wake_scheduled = False
        self._retired = False
        self.appended_bytes = 0
        """Grows with every append; what a waiting fetch measures its min_bytes by."""

    def append(self, records: memoryview) -> AppendResult:
        """Append one client batch, which is stamped in place. Raises BrokerError with the partition's code."""
        log = self.writable_log
        if log is None:
            self._refuse_append()
        result = log.append_as_leader(records, leader_epoch=self.leader_epoch)
        return result if result.is_duplicate else self._appended(result)

    def append_internal(self, records: memoryview) -> AppendResult:
        """Append whole batches of a coordinator of this broker, stamped in place. Raises BrokerError."""
        log = self.writable_log
        if log is None:
            self._refuse_append()
        return self._appended(
            log.append_as_leader(records, leader_epoch=self.leader_epoch, origin=AppendOrigin.COORDINATOR)
        )

    def _refuse_append(self) -> NoReturn:
        refuse_change(f"nothing is appended to {self.log.topic_partition}")

    def _appended(self, result: AppendResult) -> AppendResult:
        self.appended_bytes += result.size_bytes
        probe = self.probe
        probe.bytes_in += result.size_bytes
        probe.records_in += result.record_count
        if self._waiters and not self._wake_scheduled:
            # Once per turn of the loop, however many appends it brings, and after the producer has its answer.
            self._wake_scheduled = True
            self._loop.call_soon(self._wake)
        return result

    def read(
        self, offset: int, max_bytes: int, *, committed_only: bool, at_least_one_batch: bool
    ) -> FileSlice | OldFormatSlice | None:
        """Stored batches from the one that contains `offset`.

        Raises BrokerError: OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR. The latter also where nothing is left to be read:
        a consumer at the end of a log whose disk has failed would else wait for ever.
        """
        log = self.log
        upper_bound = log.last_stable_offset if committed_only else log.high_watermark
        records = log.read(offset, max_bytes, upper_bound=upper_bound, at_least_one_batch=at_least_one_batch)
        if records is None and log.state is not LogState.ONLINE:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.topic_partition} is {log.state.value}")
        return records

    @property
    def is_retired(self) -> bool:
        """Whether the partition is gone: its topic was deleted."""
        return self._retired

    def ensure_current_epoch(self, leader_epoch: int) -> None:
        """Raises BrokerError FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH when a client believes in another epoch.

        -1 is that of a client that believes in none.
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
        """Whether it is still served, and its log directory works."""
        return not self._retired and self.log.state is LogState.ONLINE

    def delete_records(self, offset: int) -> int:
        """Drop what lies below `offset` (-1: the high watermark); the log start offset then. Raises BrokerError.

        Fetches that wait are answered: one that waits below the new start would else wait for records that are gone.
        """
        log = self.writable_log
        if log is None:
            refuse_change(f"no records of {self.log.topic_partition} are deleted")
        before = log.log_start_offset
        start = log.delete_records(offset)
        if start != before:
            for waiter in list(self._waiters):
                waiter.finish()
        return start

    def add_waiter(self, waiter: Waiter) -> None:
        """Wake it after the next append, and after every one until `remove_waiter`."""
        self._waiters[waiter] = None

    def remove_waiter(self, waiter: Waiter) -> None:
        """Any number of times."""
        self._waiters.pop(waiter, None)

    def wake_all(self) -> None:
        """Whoever waits shall look again."""
        for waiter in list(self._waiters):
            waiter.wake()

    def retire(self) -> None:
        """The partition has gone: whoever waits for its records is told so."""
        self._retired = True
        self.wake_all()

    def _wake(self) -> None:
        self._wake_scheduled = False
        self.wake_all()
