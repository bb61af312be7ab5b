"""ServedSharePartition: a share partition with its log, its stored state, and the time of its locks.

    loading     its state is read from the share coordinator, which may have to load it first; fetches wait
    serving     members acquire and acknowledge
    ended       the state could not be read or written for good, or the partition is gone; a next fetch loads it again

Whoever waits for records of it is woken when some become available.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Final

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.printable import printable
from barnabas.broker.repeated_warnings import ANY_HOST, Event
from barnabas.broker.share.partition.acquisition import Fetched
from barnabas.broker.share.partition.reading import read_partition
from barnabas.broker.share.partition.share_partition import Change, SharePartition
from barnabas.broker.share.shard import StateChange
from barnabas.config.offset_reset import ResetTo
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.share.share_fetch import RECORD_LIMIT
from barnabas.protocol.share.state_records import UNINITIALIZED, ShareSnapshotValue

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from barnabas.broker.groups.share.settings import ShareGroupSettings
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.probes import ShareProbe
    from barnabas.broker.repeated_warnings import RepeatedWarnings
    from barnabas.broker.share.coordinator import ShareCoordinator
    from barnabas.broker.share.partition.share_partition import Acknowledgement
    from barnabas.protocol.messages.share.share_fetch import AcquiredRecords
    from barnabas.protocol.share.state_records import SharePartitionKey, StateBatch
    from barnabas.protocol.wire.pieces import RecordsPart

logger = logging.getLogger(__name__)

_FENCED: Final = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH)
_ENDING: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
"""Errors of a write after which the state has to be read again."""

_NOT_YET: Final = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)

_LOST_STATE_REMEDY: Final = (
    "; as in Apache Kafka nothing is delivered until `kafka-share-groups.sh --reset-offsets` says where it begins, "
    "while the group has no members"
)

LOAD_RETRY_S: Final = 0.1
"""Delay until a state is read again whose partition of the topic is being loaded."""

LINES_OF_SHARE_PARTITIONS: Final = 100
"""Share partitions whose lasting errors have log lines; those of further ones are counted."""


class _Phase(Enum):
    LOADING = "loading"
    SERVING = "serving"
    ENDED = "ended"


class ServedSharePartition:
    """See the module. Event loop only."""

    def __init__(
        self,
        key: SharePartitionKey,
        partition: Partition,
        coordinator: ShareCoordinator,
        settings: Callable[[], ShareGroupSettings],
        loop: asyncio.AbstractEventLoop,
        wall_ms: Callable[[], int],
        probe: ShareProbe,
        warnings: RepeatedWarnings,
        ended: Callable[[ServedSharePartition], None],
    ) -> None:
        """`ended` is called once, when the state of this object must not be used any more."""
        self.key = key
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.error: BrokerError | None = None
        self.state = SharePartition(settings)
        self._coordinator = coordinator
        self._settings = settings
        self._loop = loop
        self._wall_ms = wall_ms
        self._probe = probe
        self._warnings = warnings
        self._ended = ended
        self._phase = _Phase.LOADING
        self._state_epoch = 0
        self._waiters: dict[object, Callable[[], None]] = {}
        self._wakes = False
        self._timer: asyncio.TimerHandle | None = None
        self._load()

    @property
    def is_serving(self) -> bool:
        """Whether records may be acquired."""
        return self._phase is _Phase.SERVING

    @property
    def is_over(self) -> bool:
        """Whether this object must be replaced."""
        return self._phase is _Phase.ENDED or self.partition.is_retired

    # -- waiting

    def add_waiter(self, waiter: object, wake: Callable[[], None]) -> None:
        """Call `wake` when records may be available, until `remove_waiter`."""
        self._waiters[waiter] = wake

    def remove_waiter(self, waiter: object) -> None:
        """Stop waking. May be called repeatedly."""
        self._waiters.pop(waiter, None)

    def end(self, error: BrokerError | None = None) -> None:
        """Use this object no longer."""
        if self._phase is _Phase.ENDED:
            return
        self._phase = _Phase.ENDED
        self.error = error
        if self._timer is not None:
            self._timer.cancel()
        self._ended(self)
        self._wake_soon()

    def _wake_soon(self) -> None:
        if self._waiters and not self._wakes:
            self._wakes = True
            self._loop.call_soon(self._wake)

    def _wake(self) -> None:
        self._wakes = False
        for wake in list(self._waiters.values()):
            wake()

    # -- fetching

    def fetch(
        self,
        member_id: str,
        *,
        max_bytes: int,
        max_records: int,
        batch_size: int,
        acquire_mode: int,
        at_least_one_batch: bool,
        acquire: bool,
    ) -> tuple[int, RecordsPart | None, list[AcquiredRecords]]:
        """Return bytes that can be acquired; with `acquire` the records, which are the member's then.

        Raises BrokerError.
        """
        if not self.is_serving or not self.state.can_acquire:
            return 0, None, []
        offset = self.state.next_fetch_offset()
        if offset > self.partition.log.log_end_offset:
            # The records were deleted behind it, or a standby took over with fewer: nothing to read yet.
            return 0, None, []
        try:
            found = read_partition(
                self.partition,
                offset,
                max_bytes,
                committed_only=self._settings().reads_committed,
                at_least_one_batch=at_least_one_batch,
                in_flight_to=self.state.window.end_offset,
                most_new=self.state.most_new(max_records),
            )
        except BrokerError as error:
            if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            self.state.window.move_start(self.partition.log.log_start_offset)
            return (
                self.fetch(
                    member_id,
                    max_bytes=max_bytes,
                    max_records=max_records,
                    batch_size=batch_size,
                    acquire_mode=acquire_mode,
                    at_least_one_batch=at_least_one_batch,
                    acquire=acquire,
                )
                if self.state.next_fetch_offset() != offset
                else (0, None, [])
            )
        if found is None:
            return 0, None, []
        records, aborted = found
        if not acquire:
            return records.size, None, []
        fetched = Fetched(offset, [(each.first_offset, each.last_offset) for each in records.batches], aborted)
        acquired = self.state.acquire(
            member_id,
            fetched,
            batch_size=max(1, batch_size),
            max_records=max_records,
            is_limited=acquire_mode == RECORD_LIMIT,
            now_ms=self._now_ms(),
        )
        self._set_timer()
        if aborted:
            self._wake_soon()
        if not acquired:
            return 0, None, []
        part = records.part(acquired[0].first_offset, acquired[-1].last_offset)
        self._probe.acquired += sum(each.last_offset - each.first_offset + 1 for each in acquired)
        return part.size, part, acquired

    # -- changes

    def acknowledge(self, member_id: str, acknowledgements: Sequence[Acknowledgement]) -> Deferred[BrokerError | None]:
        """Carry out what a member acknowledges: all of it or nothing. Raises nothing: the answer carries the error."""
        answer: Deferred[BrokerError | None] = Deferred()
        if not self.is_serving:
            answer.resolve(BrokerError(ErrorCode.INVALID_RECORD_STATE, "the share partition is being loaded"))
            return answer
        try:
            change = self.state.acknowledge(member_id, acknowledgements, self._now_ms())
        except BrokerError as error:
            answer.resolve(error)
            return answer
        self._set_timer()
        return self._write(change)

    def release_member(self, member_id: str) -> Deferred[BrokerError | None]:
        """Release everything that a member has acquired."""
        if not self.is_serving:
            answer: Deferred[BrokerError | None] = Deferred()
            answer.resolve(None)
            return answer
        return self._write(self.state.release_member(member_id))

    def _write(self, change: Change) -> Deferred[BrokerError | None]:
        answer: Deferred[BrokerError | None] = Deferred()
        if not change.states:
            answer.resolve(None)
            return answer

        def written(error: BrokerError | None) -> None:
            self.state.complete(change, is_written=error is None, now_ms=self._now_ms())
            if error is None:
                for batch in change.batches:
                    self._count(batch)
            else:
                error = self._failed("store its acknowledgements", error)
            self._wake_soon()
            answer.resolve(error)

        self._send(change.batches).then(written)
        return answer

    def _count(self, batch: StateBatch) -> None:
        count = batch.last_offset - batch.first_offset + 1
        if batch.delivery_state == 0:
            self._probe.released += count
        elif batch.delivery_state == 2:
            self._probe.acknowledged += count
        else:
            self._probe.archived += count

    def _send(self, batches: Sequence[StateBatch]) -> Deferred[BrokerError | None]:
        window = self.state.window
        return self._coordinator.write(
            self.key,
            StateChange(
                self._state_epoch, self.leader_epoch, window.start_offset, batches, window.delivery_complete_count
            ),
        )

    def _failed(self, what: str, error: BrokerError) -> BrokerError:
        """Return the client's error for one of the share coordinator; end this object where it is fenced.

        An error that is none of Kafka's clients is logged, because they see only that the broker failed to do `what`.
        """
        if error.code in _FENCED:
            error = BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, error.message)
        elif error.code in _NOT_YET:
            error = BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message)
        elif error.code not in _ENDING:
            is_lost = error.code is ErrorCode.INVALID_REQUEST
            message = f"{error.message}{_LOST_STATE_REMEDY}" if is_lost else f"{error}"
            error = self._unusable(what, BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, message))
        if error.code in _ENDING or error.code is ErrorCode.UNKNOWN_SERVER_ERROR:
            self.end(error)
        return error

    def _unusable(self, what: str, error: BrokerError) -> BrokerError:
        """Log an error that does not go away, a line for each share partition, and return it: members try again."""
        name = f"{printable(self.key.group_id)} at {self.partition.log.topic_partition}"
        self._warnings.warn(
            logger,
            Event(ANY_HOST, "share partitions failed"),
            "share group %s cannot %s: %s",
            name,
            what,
            error.message,
            lines=LINES_OF_SHARE_PARTITIONS,
            level=logging.ERROR,
            distinct=name,
        )
        return error

    # -- time

    def _now_ms(self) -> float:
        return self._loop.time() * 1000

    def _set_timer(self) -> None:
        deadline_ms = self.state.next_deadline_ms
        if deadline_ms is None:
            return
        when = deadline_ms / 1000
        if self._timer is not None:
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if self._phase is not _Phase.SERVING:
            return
        # The timer may fire up to a clock tick early.
        batches = self.state.expire(self._now_ms() + 1)
        self._set_timer()
        if not batches:
            return
        self._probe.lock_timeouts += sum(each.last_offset - each.first_offset + 1 for each in batches)
        self._send(batches).then(self._expiry_written)
        self._wake_soon()

    def _expiry_written(self, error: BrokerError | None) -> None:
        if error is not None:
            logger.warning(
                "released locks of share group %s at %s are not stored: %s",
                printable(self.key.group_id),
                self.partition.log.topic_partition,
                error,
            )
            self._failed("store the ends of its locks", error)

    # -- loading

    def _load(self) -> None:
        self._timer = None
        self._coordinator.read(self.key, self.leader_epoch).then(self._loaded)

    def _loaded(self, state: ShareSnapshotValue | BrokerError) -> None:
        if self._phase is not _Phase.LOADING:
            return
        if isinstance(state, BrokerError) and state.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # As in Kafka fetches wait: its consumer stops with an exception at a code of a coordinator.
            self._timer = self._loop.call_later(LOAD_RETRY_S, self._load)
            return
        if isinstance(state, BrokerError):
            self.end(self._failed("begin", state))
            return
        try:
            start_offset = self._start_offset(state.start_offset)
            self.state.window.load(start_offset, state.state_batches)
        except (BrokerError, ValueError) as error:
            bad = error if isinstance(error, BrokerError) else BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{error}")
            self.end(self._unusable("begin with its stored state", bad))
            return
        self._state_epoch = state.state_epoch
        self._phase = _Phase.SERVING
        self._wake_soon()

    def _start_offset(self, stored: int) -> int:
        """Return where a group begins. Raises BrokerError."""
        if stored != UNINITIALIZED:
            return stored
        log = self.partition.log
        reset = self._settings().offset_reset
        if reset.to is ResetTo.EARLIEST:
            return log.log_start_offset
        if reset.to is ResetTo.BY_DURATION:
            found = log.offset_for_timestamp(self._wall_ms() - reset.duration_ms, upper_bound=log.high_watermark)
            if found is not None:
                return found.offset
        return log.high_watermark
