"""Replication: whether the standby is in time, and what that means for all partitions (standby.min.acks=1).

A standby is in time for a partition if it has fetched anything within replica.lag.time.max.ms and if no record that it
does not have is older than that. Only one standby counts: the one whose connection is the newest.

Metadata is written by one thread and synced before a change is applied; the offset that the standby asks for next tells
what it has. A change of metadata waits for a standby that is in time and for no other: a broker without a standby must
accept the change that turns the requirement off.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.partitions.standby_copy import Replicated, StandbyCopy
    from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

DEFAULT_LAG_SECONDS: Final = 30.0

_NEVER: Final = float("-inf")


class Poll(Protocol):
    """A fetch of the standby that waits."""

    def finish(self) -> None:
        """Answer now."""
        ...


class Replication:
    """One per broker. Event loop only."""

    def __init__(self, partitions: Callable[[], Iterable[Partition]]) -> None:
        """`partitions` returns all served partitions."""
        self._partitions = partitions
        self.is_required = False
        """Whether standby.min.acks is 1."""
        self._lag_seconds = DEFAULT_LAG_SECONDS
        self._first_high_watermarks: Mapping[TopicPartition, int] | None = None
        self._session: Session | None = None
        self._fetched_at = _NEVER
        self._metadata_fetched_at = _NEVER
        self._metadata_end = 0
        self._metadata_waits: list[tuple[int, asyncio.Future[None]]] = []
        self._released: list[Replicated] = []
        self._check_timer: asyncio.TimerHandle | None = None
        self._was_in_time = False
        self._stopped = False
        self.polls: set[Poll] = set()
        """The standby's fetches that wait."""

    # -- configuration

    def configure(self, *, is_required: bool, lag_seconds: float) -> None:
        """Use these values of standby.min.acks and replica.lag.time.max.ms from now on."""
        self._lag_seconds = lag_seconds
        if is_required == self.is_required:
            return
        self.is_required = is_required
        for partition in self._partitions():
            if is_required:
                self.attach(partition)
            else:
                partition.end_replication()
        if is_required:
            self._check()
        else:
            self._release_metadata(None)

    def begin_with(self, high_watermarks: Mapping[TopicPartition, int] | None) -> None:
        """Let the partitions that are added from now on begin with these high watermarks; None: with their log ends."""
        self._first_high_watermarks = high_watermarks

    def attach(self, partition: Partition) -> None:
        """Let the partition's high watermark wait for the standby, if that is required."""
        if not self.is_required or partition.writable_core is None:
            return
        from barnabas.broker.partitions.standby_copy import StandbyCopy  # here: most brokers have no standby

        core = partition.writable_core
        end = core.log_end_offset
        first = self._first_high_watermarks
        if first is not None:
            end = min(end, max(core.log_start_offset, first.get(core.topic_partition, 0)))
        partition.begin_replication(StandbyCopy(core, end, time.monotonic(), self._release))

    # -- the standby's requests

    def fetching(self, session: Session) -> bool:
        """Note a fetch of a standby; return whether it is the one that counts."""
        if session is not self._session:
            if session.is_replaced_standby:
                return False
            if self._session is not None:
                self._session.is_replaced_standby = True
            self._session = session
        self._fetched_at = time.monotonic()
        if self.is_required and not self._was_in_time:
            self._was_in_time = True
            logger.info("the standby is in time: acks=all is accepted, standby=%s", session.peer)
        return True

    def metadata_fetched(self, offset: int) -> None:
        """Note that the standby has the metadata below `offset`, and its logs follow it."""
        self._metadata_fetched_at = time.monotonic()
        if offset == self._metadata_end:
            return
        self._metadata_end = offset
        self._release_metadata(offset)
        for poll in list(self.polls):
            poll.finish()  # the next fetch has the partitions that the metadata has added

    def has_everything(self) -> None:
        """Note that the standby has all records: it has copied a frozen broker to its end."""
        for partition in self._partitions():
            partition.standby_fetched(partition.log.log_end_offset)

    # -- waiting for it

    @property
    def seconds_since_fetch(self) -> float | None:
        """Seconds since the standby's last fetch; None before the first. Any thread may read it."""
        return None if self._fetched_at == _NEVER else time.monotonic() - self._fetched_at

    @property
    def lag_records(self) -> int:
        """Offsets of all partitions that the standby does not have. Any thread may read it."""
        logs = [each.log for each in list(self._partitions()) if each.copy is not None]
        return sum(max(0, log.log_end_offset - log.high_watermark) for log in logs)

    @property
    def is_in_time(self) -> bool:
        """Whether the standby has fetched within replica.lag.time.max.ms. Any thread may read it."""
        return time.monotonic() - self._fetched_at <= self._lag_seconds

    def has_in_time(self, copy: StandbyCopy) -> bool:
        """Return whether the standby is in time for a partition."""
        if self._stopped:
            return False
        now = time.monotonic()
        oldest = copy.oldest_append
        return now - self._fetched_at <= self._lag_seconds and (oldest is None or now - oldest <= self._lag_seconds)

    def ensure_in_time(self, partition: Partition) -> None:
        """Raise BrokerError NOT_ENOUGH_REPLICAS if a record of the partition would wait for a standby in vain."""
        copy = partition.copy
        if copy is not None and not self.has_in_time(copy):
            raise BrokerError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"standby.min.acks=1, and no standby is in time for {partition.log.topic_partition}",
            )

    async def metadata_replicated(self, end_offset: int) -> None:
        """Return once the standby has the metadata below `end_offset`, or is not in time."""
        if not self.is_required or self._metadata_end >= end_offset or not self._has_metadata_in_time():
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._metadata_waits.append((end_offset, future))
        await future

    def fail(self, error: BrokerError) -> None:
        """Answer everything that waits with `error`: this broker is no longer the active one, or stops."""
        self._stopped = True
        if self._check_timer is not None:
            self._check_timer.cancel()
        for partition in self._partitions():
            if partition.copy is not None:
                partition.copy.give_up(error, is_final=True)
        self._release_metadata(None)

    def _has_metadata_in_time(self) -> bool:
        return not self._stopped and time.monotonic() - self._metadata_fetched_at <= self._lag_seconds

    def _release_metadata(self, end_offset: int | None) -> None:
        """Answer the changes of metadata below `end_offset`, with None all of them."""
        waits, self._metadata_waits = self._metadata_waits, []
        for wait in waits:
            if end_offset is not None and wait[0] > end_offset:
                self._metadata_waits.append(wait)
            elif not wait[1].done():
                wait[1].set_result(None)

    def _check(self) -> None:
        """Give up what waits for a standby that is out of time, again and again, as Kafka's isr-expiration task."""
        self._check_timer = None
        if not self.is_required or self._stopped:
            return
        # First: an error must not end the checks.
        self._check_timer = asyncio.get_running_loop().call_later(self._lag_seconds / 2, self._check)
        if self._was_in_time and not self.is_in_time:
            self._was_in_time = False
            logger.warning(
                "no standby has fetched for %g s: acks=all is refused (standby.min.acks=1)", self._lag_seconds
            )
        for partition in self._partitions():
            copy = partition.copy
            if copy is not None and copy.has_waits and not self.has_in_time(copy):
                message = f"standby.min.acks=1, and the standby has fallen behind in {partition.log.topic_partition}"
                copy.give_up(BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, message), is_final=False)
        if self._metadata_waits and not self._has_metadata_in_time():
            self._release_metadata(None)

    def _release(self, released: list[Replicated]) -> None:
        """Call what has waited in the next turn: it may serve further requests, which change partitions."""
        if not self._released:
            asyncio.get_running_loop().call_soon(self._call_released)
        self._released += released

    def _call_released(self) -> None:
        released, self._released = self._released, []
        for then in released:
            try:
                then(None)
            except Exception:
                logger.exception("a bug in what waited for the standby")
