"""ShareConsumer: records of topics as a queue, each of which goes to one member of the group and is acknowledged.

    async with ShareConsumer(ShareConsumerConfig(bootstrap="127.0.0.1:9092", group="packers")) as queue:
        await queue.subscribe(["orders"])
        async for record in queue:          # asking for the next record accepts this one
            await pack(record.value)

With acknowledgement="explicit" every record is acknowledged by a call, in any order, by any task:

        async for record in queue:
            try:
                await pack(record.value)
            except Busy:
                await queue.release(record)     # delivered again, to any member
            except ValueError:
                await queue.reject(record)      # done, and not processed
            else:
                await queue.ack(record)

A record whose lock runs out before that, or whose member is lost, is delivered again, with a higher `delivery_count`.

This class is the public API and the read loop. Its parts: ShareMembership (heartbeats), SubscribedTopics (ids and
leaders), LeaderRequests (fetches and acknowledgements at one broker), HeldRecords (locks).
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Final, Self

from barnabas.clients.config import ShareConsumerConfig
from barnabas.clients.errors import ClientError, ClosedError
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.records import ShareRecord
from barnabas.clients.share.acknowledgements import Acknowledgement, Outcome, Pending
from barnabas.clients.share.held_records import HeldRecord, HeldRecords
from barnabas.clients.share.leader_requests import LeaderRequests
from barnabas.clients.share.share_membership import ShareMembership
from barnabas.clients.share.subscribed_topics import SubscribedTopics
from barnabas.protocol.topic_partition import TopicPartition

DEFAULT_POLL_TIMEOUT_MS: Final = 1_000

_RECORDS_BETWEEN_YIELDS: Final = 500
"""After this many records the iteration yields to the event loop, so that heartbeats go on."""


class ShareConsumer:
    """Use it as an async context manager, or call `start` and `close`. In one event loop.

    One reader at a time, unless the acknowledgement is explicit: then several tasks may read.
    """

    def __init__(self, config: ShareConsumerConfig) -> None:
        self.config = config
        self.member_id: Final = str(uuid.uuid4())
        """This member's name in the group, as `barnabas group describe` shows it."""
        self._cluster = Cluster(config)
        self._topics = SubscribedTopics(self._cluster, config, self._distribute)
        self._membership = ShareMembership(self._cluster, config, self.member_id, self._distribute)
        self._held = HeldRecords()
        self._leaders: dict[int, LeaderRequests] = {}
        self._buffer: deque[ShareRecord] = deque()
        self._handed_out: list[ShareRecord] = []  # with implicit acknowledgement, since the last read
        self._faults: deque[ClientError] = deque()
        self._arrived = asyncio.Event()
        self._waiting = 0
        self._since_yield = 0
        self._is_started = False
        self._is_closed = False

    async def start(self) -> None:
        """Connect to a broker. Raises BrokerConnectionError immediately when none of the bootstrap list answers."""
        self._ensure_not_closed()
        try:
            await self._cluster.load([])
        except BaseException:
            await self._cluster.close()
            raise
        self._is_started = True

    async def close(self, *, accept: bool = True) -> None:
        """Leave the group and close the connections. A waiting read raises ClosedError. Idempotent.

        With implicit acknowledgement the records handed out are accepted first, unless `accept` is False. Everything
        else that this member has is released, so that other members get it at once.
        """
        if self._is_closed:
            return
        if accept:
            self._accept_handed_out()
        self._is_closed = True
        self._arrived.set()
        try:
            await self._topics.end()
            await asyncio.gather(*(leader.end() for leader in self._leaders.values()))
            await self._membership.leave()
        finally:
            await self._cluster.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close(accept=error is None)  # after an error the last records may not have been processed

    # topics

    async def subscribe(self, topics: Iterable[str]) -> None:
        """Read these topics, shared with the group's other members. They replace those of an earlier call.

        Raises UnknownTopicError, with nothing changed, when one does not exist.
        """
        self._ensure_open()
        names = tuple(dict.fromkeys([topics] if isinstance(topics, str) else topics))
        if not names:
            raise ValueError("subscribe to at least one topic")
        await self._topics.subscribe(names)
        self._ensure_open()
        self._membership.subscribe(names)

    @property
    def subscription(self) -> tuple[str, ...]:
        """The topics of `subscribe`."""
        return self._topics.names

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        """The partitions from which this member gets records. Other members may have the same ones."""
        return tuple(
            TopicPartition(self._topics.by_id[topic_id], number)
            for topic_id, numbers in self._membership.assignment.items()
            if topic_id in self._topics.by_id
            for number in numbers
        )

    # records

    async def poll(
        self, max_records: int | None = None, timeout_ms: float = DEFAULT_POLL_TIMEOUT_MS
    ) -> list[ShareRecord]:
        """Return up to `max_records` (default: max_poll_records), waiting at most `timeout_ms` for the first.

        Returns [] if none came. With implicit acknowledgement, accepts the records of the poll before. Raises the
        errors of the membership and of partitions: RefusedError, CorruptBatchError, BrokerConnectionError when the
        group's coordinator was unreachable for api_timeout_ms.
        """
        limit = self.config.max_poll_records if max_records is None else max_records
        if limit < 1:
            raise ValueError(f"max_records={limit} is not positive")
        if timeout_ms <= 0:
            raise ValueError(f"timeout_ms={timeout_ms} is not positive: records are fetched while a read waits")
        self._accept_handed_out()
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._until_arrived()
        except TimeoutError:
            return []
        records: list[ShareRecord] = []
        while len(records) < limit and (record := self._next_held()) is not None:
            records.append(record)
        return self._hand_out(records)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ShareRecord:
        self._accept_handed_out()
        self._since_yield += 1
        if self._since_yield >= _RECORDS_BETWEEN_YIELDS:
            self._since_yield = 0
            await asyncio.sleep(0)
        while True:
            await self._until_arrived()
            record = self._next_held()
            if record is not None:
                return self._hand_out([record])[0]

    # acknowledgements

    async def ack(self, *records: ShareRecord) -> None:
        """Accept records: they are done. Returns when the broker has stored it.

        Raises LockLostError for a record that this member does not have any more, with nothing sent if that is known
        before. Of records that are sent together, those of one partition succeed or fail together.
        """
        await self._acknowledge(Acknowledgement.ACCEPT, records)

    async def release(self, *records: ShareRecord) -> None:
        """Give records back: they are delivered again, to any member. Raises as `ack`."""
        await self._acknowledge(Acknowledgement.RELEASE, records)

    async def reject(self, *records: ShareRecord) -> None:
        """Archive records: they are done, and were not processed. Raises as `ack`."""
        await self._acknowledge(Acknowledgement.REJECT, records)

    async def renew(self, *records: ShareRecord) -> None:
        """Extend the locks of records, for work that takes longer. Acknowledge them later.

        Raises as `ack`; RefusedError if the group's share.renew.acknowledge.enable is false, or the broker is older
        than Kafka 4.2.
        """
        await self._acknowledge(Acknowledgement.RENEW, records)

    # called by the parts (leader_requests.Reader)

    @property
    def wants_records(self) -> bool:
        """Whether a read waits, and nothing is there for it."""
        return self._waiting > 0 and not self._buffer

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of a topic that is, or was, subscribed to."""
        return self._topics.by_id.get(topic_id)

    def arrived(self, records: Sequence[ShareRecord]) -> None:
        """Take fetched records."""
        self._buffer.extend(records)
        self._arrived.set()

    def failed(self, error: ClientError) -> None:
        """Raise an error with the next read."""
        self._faults.append(error)
        self._arrived.set()

    def leaders_changed(self) -> None:
        """Load the metadata again."""
        self._topics.refresh_soon()

    # steps

    def _distribute(self) -> None:
        """Tell the leaders which partitions they have; wake the reader for an error of the membership."""
        if self._is_closed:
            return
        partitions, is_stale = self._topics.by_leader(self._membership.assignment)
        for node_id in partitions.keys() - self._leaders.keys():
            leader = LeaderRequests(node_id, self.member_id, self._cluster, self.config, self._held, self)
            self._leaders[node_id] = leader
            leader.begin()
        for node_id, leader in self._leaders.items():
            leader.partitions = partitions.get(node_id, frozenset())
            leader.wake()
        if is_stale:
            self._topics.refresh_soon()
        if self._membership.failure is not None or self._membership.trouble is not None:
            self._arrived.set()

    async def _until_arrived(self) -> None:
        """Wait for records that this member still has. Raises what the reader has to know."""
        while True:
            self._ensure_open()
            if self._membership.failure is not None:
                raise self._membership.failure
            if not self._topics.names:
                raise ClientError("the share consumer has no topics: subscribe first")
            self._drop_lost()
            if self._buffer:
                return
            if self._faults:
                raise self._faults.popleft()
            if self._membership.trouble is not None:
                trouble, self._membership.trouble = self._membership.trouble, None
                raise trouble
            self._arrived.clear()
            self._waiting += 1
            for leader in self._leaders.values():
                leader.wake()
            try:
                await self._arrived.wait()
            finally:
                self._waiting -= 1

    def _drop_lost(self) -> None:
        """Drop buffered records up to the first that is still this member's."""
        now = asyncio.get_running_loop().time()
        while self._buffer and self._held.get(self._buffer[0], now) is None:
            self._buffer.popleft()

    def _next_held(self) -> ShareRecord | None:
        self._drop_lost()
        return self._buffer.popleft() if self._buffer else None

    def _hand_out(self, records: list[ShareRecord]) -> list[ShareRecord]:
        if self.config.is_implicit:
            self._handed_out += records
        return records

    def _accept_handed_out(self) -> None:
        """Accept what was handed out before, except what the reader acknowledged by itself."""
        if not self._handed_out:
            return
        now = asyncio.get_running_loop().time()
        for record in self._handed_out:
            held = self._held.get(record, now)
            if held is not None:
                self._send(Pending(Acknowledgement.ACCEPT, held, None))
        self._handed_out = []

    async def _acknowledge(self, kind: Acknowledgement, records: Sequence[ShareRecord]) -> None:
        self._ensure_open()
        if not records:
            return
        now = asyncio.get_running_loop().time()
        held = {id(each): each for each in (self._held.require(record, now) for record in records)}.values()
        outcome = Outcome(len(held))
        for each in held:
            self._send(Pending(kind, each, outcome))
        await outcome.future

    def _send(self, pending: Pending) -> None:
        held: HeldRecord = pending.held
        if pending.kind is not Acknowledgement.RENEW:
            self._held.remove(held)
        leader: LeaderRequests = held.owner
        leader.acknowledge(pending)

    def _ensure_open(self) -> None:
        self._ensure_not_closed()
        if not self._is_started:
            raise ClosedError("the consumer is not started: use async with")

    def _ensure_not_closed(self) -> None:
        if self._is_closed:
            raise ClosedError("the consumer is closed")
