"""ActiveSide: what an active broker has for its standby: its identity, its metadata, and the planned switch.

A planned switch has two steps. `freeze` refuses every write and returns the ends of all logs; the standby copies up to
them. `retire` is final: this broker stops, and its directory is marked, so that it is not served again. The standby
takes over only after the answer to `retire`. If it fails before, the broker thaws when the time of `freeze` is over.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from barnabas.broker.metadata.directories.standby_state import Role, StandbyState, read_state, write_state
from barnabas.broker.metadata.log.feed import MetadataFeed
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.cluster.standby import PartitionEnd, SnapshotName, StandbyIdentity, StandbyResponse

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor
    from pathlib import Path

    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.metadata.store import MetadataStore
    from barnabas.broker.mirrors.broker_mirrors import BrokerMirrors
    from barnabas.broker.partitions.registry import PartitionRegistry

T = TypeVar("T")

logger = logging.getLogger(__name__)


class ActiveSide:
    """One per broker that can write. Event loop only."""

    def __init__(
        self,
        store: MetadataStore,
        partitions: PartitionRegistry,
        metadata_log_dir: Path,
        blocking_io: Executor,
        mirrors: BrokerMirrors,
        on_retired: Callable[[], None],
    ) -> None:
        """`on_retired` stops the broker."""
        self._mirrors = mirrors
        self._store = store
        self._partitions = partitions
        self._directory = metadata_log_dir
        self._blocking_io = blocking_io
        self._on_retired = on_retired
        self._loop = asyncio.get_running_loop()
        self._feed = MetadataFeed(store.log)
        self._changed: asyncio.Event | None = None
        """Set by a metadata change; None until a standby waits for the first time."""
        self._frozen_for: int | None = None
        """The number of the switch that has frozen this broker."""
        self._thaw_timer: asyncio.TimerHandle | None = None
        self._is_retired = False

    async def identity(self) -> StandbyIdentity:
        """Return what a standby's directory needs to be a copy. Raises MetadataError, OSError."""
        store, directory = self._store, self._directory
        state = await self._blocking(lambda: read_state(directory))
        checkpoint = await self._blocking(self._feed.bootstrap_checkpoint)
        others = [each for path, each in store.directory_ids.items() if path != directory]
        ids = (store.directory_ids[directory], *others)
        return StandbyIdentity(store.cluster_id, store.node_id, ids, state.number, checkpoint)

    async def metadata(self, offset: int, last_crc: int | None, max_wait_ms: int) -> StandbyResponse:
        """Return metadata from `offset` on, see MetadataFeed.read; wait for a change at the end. Raises BrokerError."""
        if self._changed is None:
            self._changed = asyncio.Event()
            self._store.add_listener(self._image_changed)
        self._partitions.replication.metadata_fetched(offset)
        deadline = self._loop.time() + max_wait_ms / 1000
        while True:
            self._changed.clear()
            end_offset = self._store.image.end_offset
            if offset != end_offset or self._loop.time() >= deadline:
                return await self._blocking(partial(self._feed.read, offset, last_crc, end_offset))
            try:
                async with asyncio.timeout_at(deadline):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def snapshot(self, snapshot: SnapshotName, position: int) -> bytes:
        """Return bytes of a snapshot, see MetadataFeed.read_snapshot. Raises BrokerError."""
        return await self._blocking(lambda: self._feed.read_snapshot(snapshot, position))

    async def freeze(self, number: int, max_wait_ms: int) -> StandbyResponse:
        """Refuse writes for `max_wait_ms` and return the ends of all logs. Raises BrokerError INVALID_REQUEST."""
        expected = 1 + (await self._blocking(lambda: read_state(self._directory))).number
        if number != expected:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"the next switch of this broker is {expected}, not {number}")
        self._ensure_not_retired()
        if self._frozen_for is not None:  # two switches must not share one: the first one's ends would be outdated
            raise BrokerError(ErrorCode.INVALID_REQUEST, "another planned switch is under way: try again later")
        self._frozen_for = number
        # Metadata first: no partition is created once this returns.
        await self._blocking(lambda: self._store.pause("this broker hands over to its standby"))
        await self._mirrors.hold()  # they append beside the partitions' own door
        self._ensure_not_retired()
        if self._frozen_for != number:
            await self._blocking(self._store.resume)  # the pause may have come after the thaw
            self._mirrors.release()
            raise BrokerError(ErrorCode.INVALID_REQUEST, "the switch was given up meanwhile")
        self._partitions.freeze()
        self._thaw_timer = self._loop.call_later(max_wait_ms / 1000, self._thaw)
        logger.info("writes are refused for up to %d ms: a standby is taking over, number=%d", max_wait_ms, number)
        ends = [
            PartitionEnd(*key, partition.log.log_end_offset) for key, partition in self._partitions.served().items()
        ]
        return StandbyResponse(end_offset=self._store.image.end_offset, ends=ends)

    def unfreeze(self) -> None:
        """Accept writes again: the switch is given up. Raises BrokerError if the standby has taken over."""
        self._ensure_not_retired()
        self._thaw()

    async def retire(self, number: int) -> None:
        """Hand over for good and stop. Raises BrokerError INVALID_REQUEST unless frozen for this switch, OSError."""
        self._ensure_not_retired()
        if self._frozen_for != number:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"this broker is not frozen for switch {number}: start again")
        await self._retire(number)
        self._partitions.replication.has_everything()
        logger.warning("handed over to the standby, stopping: number=%d", number)

    async def fence(self, number: int) -> None:
        """Stop for good: a standby has taken over as `number` without a plan. Nothing is acknowledged any more.

        Raises BrokerError INVALID_REQUEST for a number that is not higher than this broker's, OSError.
        """
        own = (await self._blocking(lambda: read_state(self._directory))).number
        if number <= own:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"this broker has number {own}: {number} does not replace it")
        self._ensure_not_retired()
        self._is_retired = True  # before the first wait: nothing thaws this broker any more
        self._cancel_timer()
        self._partitions.freeze()
        message = "a standby has taken over from this broker"
        self._partitions.replication.fail(BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, message))
        try:
            await self._blocking(lambda: self._store.pause("a standby has taken over from this broker"))
        finally:
            await self._retire(number)
        logger.error("a standby has taken over from this broker, stopping: number=%d", number)

    async def _retire(self, number: int) -> None:
        self._is_retired = True
        self._cancel_timer()
        state = StandbyState(Role.RETIRED, number)
        try:
            await self._blocking(lambda: write_state(self._directory, state))
        except OSError as error:
            # The mark may be on the disk nevertheless, so this broker stops and does not thaw.
            logger.error("%s may lack the mark that it was handed over: do not serve it: %s", self._directory, error)
            raise
        finally:
            # The answer leaves before the stop closes its connection.
            self._loop.call_later(0, self._on_retired)

    def _ensure_not_retired(self) -> None:
        if self._is_retired:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "this broker has handed over already")

    def _thaw(self) -> None:
        self._cancel_timer()
        if self._frozen_for is not None:
            self._frozen_for = None
            self._store.resume()
            self._partitions.thaw()
            self._mirrors.release()
            logger.warning("writes are accepted again: the standby has not taken over")

    def _cancel_timer(self) -> None:
        if self._thaw_timer is not None:
            self._thaw_timer.cancel()
            self._thaw_timer = None

    def _image_changed(self, before: MetadataImage, after: MetadataImage) -> None:
        assert self._changed is not None, "the listener is added after it"
        self._loop.call_soon_threadsafe(self._changed.set)

    async def _blocking(self, work: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._blocking_io, work)
