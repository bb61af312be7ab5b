"""Members and administrators of share groups on a store's logs, without sockets, threads or time.

clients = ShareClients(bench.opened)
clients.join("group", "member", ["orders"])
held = clients.fetch("group", "member", ("orders", 0))         # deliveries by offset
clients.acknowledge("group", "member", ("orders", 0), {0: ACCEPT})

Each call returns once it is answered. Flushes are served at once, on the caller's thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TypeVar, cast

from barnabas.broker.groups.client import JoiningClient
from barnabas.broker.groups.coordinator import GroupCoordinator
from barnabas.broker.groups.share.group import ShareGroup
from barnabas.broker.metadata_changes import MetadataChanges
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.probes import ApiProbe, GroupProbe, ShareProbe
from barnabas.broker.share.coordinator import ShareCoordinator
from barnabas.broker.share.partition.served import ServedSharePartition
from barnabas.broker.share.partition.share_partition import Acknowledgement
from barnabas.broker.share.partitions import SharePartitions
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.share_group_heartbeat import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from barnabas.protocol.messages.groups.share_group_offsets import NewOffset, TopicToAlter
from barnabas.protocol.messages.share.share_fetch import RECORD_LIMIT
from barnabas.protocol.share.state_records import SharePartitionKey, ShareSnapshotValue
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.manual_loop import InlineExecutor, ManualLoop
from tests.support.storage.bench import read_batches
from tests.support.storage.metadata_store import Opened
from tests.torture.crash_states.coordinators import Place, log_parts

_CLIENT = JoiningClient("campaign", "/127.0.0.1")
_LOCK_MS = 30_000
_MANY = 1 << 20
_MOST_TURNS = 30
_HEARTBEATS = 6
T = TypeVar("T")


class ShareClients:
    """The coordinators of share groups and of their states, started and loaded, and their clients."""

    def __init__(self, opened: Opened) -> None:
        self.loop = ManualLoop()
        self._opened = opened
        self._age_ms = 0
        parts = log_parts(opened, self.loop, cast(MetadataChanges, self))  # all topics exist: none is created with it
        self._parts = parts._replace(wall_ms=lambda: parts.wall_ms() + self._age_ms)
        executor = InlineExecutor()
        self._share = ShareCoordinator(self._parts, blocking_io=executor)
        self._groups = GroupCoordinator(
            self._parts, blocking_io=executor, probe=GroupProbe(), share_coordinator=lambda: self._share
        )
        self._partitions = SharePartitions(self._parts, self._share, ShareProbe())
        self.loop.run(self._groups.start)
        self.loop.run(self._share.start)
        self.loop.settle()

    def close(self) -> None:
        """End the tasks."""
        self.loop.run_until_complete(self._stop())
        self.loop.close()

    async def _stop(self) -> None:
        self._groups.refuse_members()
        await self._groups.stop()
        await self._share.stop()

    # -- members

    def join(self, group: str, member: str, topics: Collection[str]) -> None:
        """Join, and send heartbeats until the member has all partitions of the topics."""
        image = self._opened.store.image
        wanted = {image.topics[name].topic_id: sorted(image.topics[name].partitions) for name in topics}
        epoch = JOIN_EPOCH
        for _ in range(_HEARTBEATS):
            answer = self._heartbeat(group, member, epoch, sorted(topics))
            told = answer.assignment
            if told is not None and {each.topic_id: list(each.partitions) for each in told.topics} == wanted:
                return
            epoch = answer.member_epoch
            self.loop.pass_time(200)
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{member} of share group {group} gets {answer.assignment}")

    def leave(self, group: str, member: str) -> None:
        """Release what the member has, and leave. Its group has no other member with a session."""
        for served in self._served_of(group):
            self._ensure(self._answer(lambda served=served: served.release_member(member)))  # type: ignore[misc]
        self.close_sessions(group)
        self._heartbeat(group, member, LEAVE_EPOCH, None)

    def fetch(self, group: str, member: str, place: Place, *, max_records: int = 500) -> dict[int, int]:
        """Acquire records; return how often each has been delivered now, by its offset."""
        served = self._served(group, place)
        _, _, acquired = self.loop.run(
            lambda: served.fetch(
                member,
                max_bytes=_MANY,
                max_records=max_records,
                batch_size=max_records,
                acquire_mode=RECORD_LIMIT,
                at_least_one_batch=True,
                acquire=True,
            )
        )
        return {
            offset: each.delivery_count
            for each in acquired
            for offset in range(each.first_offset, each.last_offset + 1)
        }

    def acknowledge(self, group: str, member: str, place: Place, kinds: Mapping[int, int]) -> None:
        """Acknowledge offsets, each in its way."""
        served = self._served(group, place)
        given = [Acknowledgement(offset, offset, [kind]) for offset, kind in sorted(kinds.items())]
        self._ensure(self._answer(lambda: served.acknowledge(member, given)))

    def close_sessions(self, group: str) -> None:
        """Let go of the share partitions of a group, as the end of its last session does."""
        for served in self._served_of(group):
            self.loop.run(served.end)

    def let_locks_expire(self) -> None:
        """Let time pass until no member has a lock."""
        self.loop.pass_time(_LOCK_MS + 1)

    # -- administrators

    def begin_at(self, group: str, offsets: Mapping[Place, int]) -> None:
        """Let a group without members begin anew at these offsets."""
        topics: dict[str, list[NewOffset]] = {}
        for (topic, number), offset in offsets.items():
            topics.setdefault(topic, []).append(NewOffset(partition=number, start_offset=offset))
        rows = [TopicToAlter(topic=topic, partitions=partitions) for topic, partitions in topics.items()]
        for altered in self._awaited(self._groups.share.offsets.alter(group, rows)):
            for each in altered.partitions:
                self._ensure_none(each.error)

    def delete_offsets(self, group: str, topic: str) -> None:
        """Delete a group's states of a topic."""
        for each in self._awaited(self._groups.share.offsets.delete(group, [topic])):
            self._ensure_none(each.error)

    def delete_group(self, group: str) -> None:
        """Delete a group with its states."""
        self._ensure(self._answer(lambda: self._groups.delete_group(group)))

    # -- upkeep

    def age(self, milliseconds: int) -> None:
        """Let wall time pass, in which nothing happens."""
        self._age_ms += milliseconds

    def write_cold_states(self) -> None:
        """Write states again that have not changed for a while, as the upkeep does."""
        self.loop.run(lambda: self._share._upkeep.snapshot_cold(0))
        self.loop.settle()

    @property
    def needed_from(self) -> int:
        """The offset below which records of the states are not needed."""
        return self._share.log.shard(0).needed.below_is_redundant or 0

    def prune(self) -> None:
        """Delete the records of states that are not needed, as the upkeep does."""
        if 0 in self._share.log.shards:
            self.loop.run(lambda: self._share._upkeep.prune(0))
            self.loop.settle()

    # -- what is known

    def group(self, group: str) -> ShareGroup | None:
        """Return a share group."""
        return self._groups.share.get(group)

    def state(self, group: str, place: Place) -> ShareSnapshotValue | None:
        """Return the state of a share partition."""
        key = self._key(group, place)
        return self._share.log.shard(self._share.log.number_of(key)).states.get(key)

    def start_offset(self, group: str, place: Place) -> int:
        """Return where members of a group begin at present."""
        return self._served(group, place).state.window.start_offset

    def present(self, place: Place) -> set[int]:
        """Return the offsets of the records that a partition has."""
        log = self._opened.log_manager.get(TopicPartition(*place))
        assert log is not None, place
        batches = read_batches(log, log.log_start_offset)
        return {offset for batch in batches for offset in range(batch.base_offset, batch.next_offset)}

    def _served_of(self, group: str) -> list[ServedSharePartition]:
        return [served for key, served in self._partitions._served.items() if key.group_id == group]

    def _served(self, group: str, place: Place) -> ServedSharePartition:
        key = self._key(group, place)
        served = self.loop.run(lambda: self._partitions.get(group, place[0], key.topic_id, place[1]))
        self.loop.settle()
        if served.error is not None:
            raise served.error
        assert served.is_serving, key
        return served

    def _key(self, group: str, place: Place) -> SharePartitionKey:
        return SharePartitionKey(group, self._opened.store.image.topics[place[0]].topic_id, place[1])

    def _heartbeat(
        self, group: str, member: str, epoch: int, topics: Sequence[str] | None
    ) -> ShareGroupHeartbeatResponse:
        request = ShareGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, topic_names=topics)
        answer = self._answer(lambda: self._groups.share.heartbeat(request, _CLIENT, ApiProbe()))
        if answer.error is not ErrorCode.NONE:
            raise BrokerError(answer.error, answer.message or "")
        self.loop.settle()  # the initialization that it has begun
        self.loop.settle()
        assert isinstance(answer, ShareGroupHeartbeatResponse)
        return answer

    def _answer(self, serve: Callable[[], Deferred[T]]) -> T:
        found: list[T] = []
        self.loop.run(serve).then(found.append)
        for _ in range(_MOST_TURNS):
            if found:
                return found[0]
            self.loop.settle()
        raise AssertionError("a request is not answered")

    def _awaited(self, work: Awaitable[T]) -> T:
        async def wait() -> T:
            return await work

        return self.loop.run_until_complete(asyncio.wait_for(wait(), None))

    @staticmethod
    def _ensure(error: BrokerError | None) -> None:
        if error is not None:
            raise error

    @staticmethod
    def _ensure_none(error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            raise BrokerError(error, "a share group's offsets are not changed")
