"""The coordinators of groups and transactions on a store's logs, without sockets, threads or time.

clients = Coordinators(bench.opened)
clients.commit("group", {("orders", 0): 7})       # returns once the offsets are as durable as the topic demands

A group commit syncs at once, on the caller's thread, so a recording is the same each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from barnabas.broker.coordinator_log.parts import LogParts
from barnabas.broker.groups.coordinator import GroupCoordinator
from barnabas.broker.groups.offsets.checks import accept_partitions
from barnabas.broker.live_config import LiveConfig
from barnabas.broker.metadata_changes import MetadataChanges
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.partitions.flush_waits import FlushWaits
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.partitions.registry import PartitionRegistry
from barnabas.broker.probes import GroupProbe, TopicProbe, TransactionProbe
from barnabas.broker.producer_ids import ProducerIds
from barnabas.broker.storage.group_commit import FlushRequest, GroupCommitFlusher
from barnabas.broker.transactions.checks import ProducerIdAndEpoch
from barnabas.broker.transactions.coordinator import TransactionCoordinator
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.groups.offset_commit import (
    OffsetCommitRequest,
)
from barnabas.protocol.messages.transactions.end_txn import EndTxnRequest
from barnabas.protocol.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
    TxnOffsetCommitTopic,
)
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.manual_loop import InlineExecutor, ManualLoop
from tests.support.storage.bench import START_MS
from tests.support.storage.metadata_store import Opened

Place = tuple[str, int]
"""Topic and partition."""


class Producer(NamedTuple):
    """A transactional producer."""

    transactional_id: str
    producer_id: int
    epoch: int


class Coordinators:
    """Both coordinators, started and loaded. They decide nothing by themselves: the time of their timers stands."""

    def __init__(self, opened: Opened) -> None:
        self.loop = ManualLoop()
        parts = log_parts(opened, self.loop, cast(MetadataChanges, self))
        executor = InlineExecutor()
        self._image = opened.store.image
        self.groups = GroupCoordinator(parts, blocking_io=executor, probe=GroupProbe(), share_coordinator=_no_share)
        self.transactions = TransactionCoordinator(
            parts,
            offsets=self.groups,
            producer_ids=ProducerIds(cast(MetadataChanges, self), lambda: 0),
            blocking_io=executor,
            probe=TransactionProbe(),
        )
        self.loop.run(self.groups.start)
        self.loop.run(self.transactions.start)
        self.loop.settle()

    async def take_producer_id_block(self) -> range:
        """Return the ids of a workload, as MetadataChanges does."""
        return range(1000, 2000)

    def close(self) -> None:
        """End the tasks."""
        self.loop.run_until_complete(asyncio.wait_for(self._stop(), None))
        self.loop.close()

    async def _stop(self) -> None:
        await self.transactions.stop()
        await self.groups.stop()

    def commit(self, group: str, offsets: Mapping[Place, int]) -> None:
        """Commit a group's offsets."""
        response = self._answer(
            lambda: self.groups.offsets.commit(OffsetCommitRequest(group_id=group, topics=_topics(offsets)))
        )
        _ensure_none([each.error for topic in response.topics for each in topic.partitions])

    def delete_group(self, group: str) -> None:
        """Delete a group with its offsets."""
        error = self._answer(lambda: self.groups.delete_group(group))
        assert error is None, error

    def initialize(self, transactional_id: str) -> Producer:
        """Begin to use a transactional id."""
        response = self._answer(
            lambda: self.transactions.initialize(InitProducerIdRequest(transactional_id=transactional_id))
        )
        _ensure_none([response.error])
        return Producer(transactional_id, response.producer_id, response.producer_epoch)

    def begin(self, producer: Producer, partitions: Sequence[Place]) -> None:
        """Add partitions to the producer's transaction."""
        identity = ProducerIdAndEpoch(producer.producer_id, producer.epoch)
        error = self._answer(
            lambda: self.transactions.add_partitions(producer.transactional_id, identity, partitions, version=0)
        )
        assert error is None, error

    def commit_in_transaction(self, producer: Producer, group: str, offsets: Mapping[Place, int]) -> None:
        """Commit a group's offsets with the producer's transaction, which has the group's partition."""
        request = TxnOffsetCommitRequest(
            transactional_id=producer.transactional_id,
            group_id=group,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            topics=_topics(offsets),
        )
        _, accepted = accept_partitions(self._image, request.topics)
        error = self._answer(lambda: self.groups.transactional_offsets.commit(request, accepted))
        assert error is None, error

    def end(self, producer: Producer, *, is_commit: bool) -> None:
        """End the producer's transaction."""
        request = EndTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            is_commit=is_commit,
            version=4,
        )
        _ensure_none([self._answer(lambda: self.transactions.end(request)).error])

    def offset_of(self, group: str, topic_partition: TopicPartition) -> int | None:
        """Return a committed offset, None without one."""
        found = self.groups.offsets.committed.of(group).get(topic_partition)
        return None if found is None else found.offset

    def _answer(self, serve: Callable[[], Any]) -> Any:
        answer = self.loop.run(serve)
        if not isinstance(answer, Deferred):
            return answer
        found: list[Any] = []
        answer.then(found.append)
        for _ in range(4):  # a decision, its markers and the completed state are synced one after the other
            self.loop.settle()
        assert found, "a request is not answered"
        return found[0]


def log_parts(opened: Opened, loop: ManualLoop, changes: MetadataChanges) -> LogParts:
    """Return the parts of a coordinator's log on a store, whose flushes are served at once."""
    store = opened.store
    registry = PartitionRegistry()
    for log in opened.log_manager.logs():
        topic = store.image.topics[log.topic_partition.topic]
        partition = Partition(log, max(log.latest_leader_epoch, 0), topic.topic_id, TopicProbe(), loop)
        registry.add(log.topic_partition, partition)
    flush_waits = FlushWaits(loop)
    flush_waits.flusher = _InlineFlusher(flush_waits._deliver)
    began = loop.time()
    return LogParts(
        partitions=registry,
        store=store,
        changes=changes,
        config=LiveConfig(opened.config, store.node_id, store.image),
        flush_waits=flush_waits,
        wall_ms=lambda: START_MS + round((loop.time() - began) * 1000),
        loop=loop,
    )


class _InlineFlusher(GroupCommitFlusher):
    """Serves each request at once."""

    def request(self, requests: Sequence[FlushRequest]) -> None:
        for each in requests:
            self._serve(each.log, [each])


def _topics(offsets: Mapping[Place, int]) -> list[TxnOffsetCommitTopic]:
    return [
        TxnOffsetCommitTopic(name=topic, partitions=[TxnOffsetCommitPartition(partition=number, offset=offset)])
        for (topic, number), offset in offsets.items()
    ]


def _ensure_none(errors: Sequence[ErrorCode]) -> None:
    for error in errors:
        if error is not ErrorCode.NONE:
            raise BrokerError(error, "a coordinator refuses a request")


def _no_share() -> Any:
    raise AssertionError("these groups share nothing")
