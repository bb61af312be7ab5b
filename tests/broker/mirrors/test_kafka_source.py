"""The source through Kafka's protocol, at a running broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas import Admin, AdminConfig, Producer, ProducerConfig
from barnabas.broker.mirrors.kafka_source import KafkaSource, KafkaSourceNode
from barnabas.broker.mirrors.partition_copier import EpochEnd, FetchedPartition
from barnabas.broker.mirrors.source import FetchFrom, SourceMetadata
from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import BrokerConnectionError, ClosedError
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.connection import Connection
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.fetch import FetchRequest
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.wire.structures import Request
from tests.support.daemon import Daemon, start_daemon

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
KEYS = (T0, T1, U0)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("broker"), "auto.create.topics.enable=false") as running:
        yield running


@pytest.fixture(autouse=True)
async def topics(daemon: Daemon) -> AsyncIterator[Admin]:
    async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
        await admin.create_topic("t", partitions=2, configs={"retention.ms": "123456"})
        await admin.create_topic("u", partitions=1)
        yield admin
        for name in ("t", "u"):
            await admin.delete_topic(name)


@asynccontextmanager
async def source_at(daemon: Daemon) -> AsyncIterator[KafkaSource]:
    source = KafkaSource(Cluster(ClientConfig(bootstrap=daemon.bootstrap)))
    try:
        yield source
    finally:
        await source.close()


async def produce(daemon: Daemon, *keys: TopicPartition) -> None:
    async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
        for key in keys:
            await producer.send_and_wait(key.topic, b"value", partition=key.partition)


def leader_of(metadata: SourceMetadata) -> int:
    (leader,) = {each.leader for topic in metadata.topics.values() for each in topic.partitions.values()}
    return leader


def wanted(
    metadata: SourceMetadata, offsets: Mapping[TopicPartition, int], *, by_id: bool = True
) -> dict[TopicPartition, FetchFrom]:
    return {
        key: FetchFrom(
            metadata.topics[key.topic].topic_id if by_id else None,
            offset,
            metadata.topics[key.topic].partitions[key.partition].leader_epoch,
            -1,
            1 << 20,
        )
        for key, offset in offsets.items()
    }


async def test_topics_partitions_and_the_configs_that_are_set(daemon: Daemon) -> None:
    async with source_at(daemon) as source:
        metadata = await source.metadata()
        assert metadata.cluster_id
        found = metadata.topics["t"]
        assert (found.error, found.is_internal, sorted(found.partitions)) == (ErrorCode.NONE, False, [0, 1])
        assert len(found.topic_id or b"") == 16
        assert set((await source.metadata(["t", "missing"])).topics) == {"t"}
        configs = await source.topic_configs(["t", "u", "missing"])
        assert configs == {"t": {"retention.ms": "123456"}, "u": {}}


@pytest.mark.parametrize("by_id", [True, False])
async def test_a_fetch_answers_what_has_changed(daemon: Daemon, by_id: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second request contains one partition, and its answer one; the broker keeps the others."""
    sent: list[tuple[int, int]] = []
    request = Connection.request

    def counted(self: Connection, query: Request[Any], **options: Any) -> asyncio.Future[Any]:
        if isinstance(query, FetchRequest):
            sent.append((query.session_epoch, sum(len(each.partitions) for each in query.topics)))
        return request(self, query, **options)

    monkeypatch.setattr(Connection, "request", counted)
    await produce(daemon, *KEYS)
    async with source_at(daemon) as source:
        metadata = await source.metadata()
        node = await source.node(leader_of(metadata))
        offsets = dict.fromkeys(KEYS, 0)
        found = await fetched(node, wanted(metadata, offsets, by_id=by_id))
        assert set(found) == set(KEYS)
        for each in found.values():
            assert (each.error, each.high_watermark, each.log_start_offset) == (ErrorCode.NONE, 1, 0)
            assert RecordBatch(each.records, 0).base_offset == 0
        offsets = dict.fromkeys(KEYS, 1)
        assert await fetched(node, wanted(metadata, offsets, by_id=by_id)) == {}
        await produce(daemon, T1)
        found = await fetched(node, wanted(metadata, offsets, by_id=by_id))
        assert [(key, each.high_watermark) for key, each in found.items()] == [(T1, 2)]
        assert sent == [(0, 3), (1, 3), (2, 0)]


async def fetched(
    node: KafkaSourceNode, partitions: Mapping[TopicPartition, FetchFrom], max_wait_ms: int = 0
) -> Mapping[TopicPartition, FetchedPartition]:
    return await node.fetch(partitions, max_wait_ms=max_wait_ms, max_bytes=1 << 23)


async def test_a_topic_that_was_created_again_is_an_error_of_its_partitions(daemon: Daemon, topics: Admin) -> None:
    await produce(daemon, *KEYS)
    async with source_at(daemon) as source:
        metadata = await source.metadata()
        node = await source.node(leader_of(metadata))
        assert set(await fetched(node, wanted(metadata, dict.fromkeys(KEYS, 0)))) == set(KEYS)
        await topics.delete_topic("u")
        await topics.create_topic("u", partitions=1)
        found = await fetched(node, wanted(metadata, {T0: 0, U0: 0}))
        assert found[U0].error in (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID)


async def test_a_lost_connection_is_followed_by_a_full_request(daemon: Daemon) -> None:
    await produce(daemon, *KEYS)
    async with source_at(daemon) as source:
        metadata = await source.metadata()
        node = await source.node(leader_of(metadata))
        await fetched(node, wanted(metadata, dict.fromkeys(KEYS, 0)))
        node.close()
        with pytest.raises(ClosedError):
            await fetched(node, wanted(metadata, dict.fromkeys(KEYS, 0)))
        node = await source.node(leader_of(metadata))
        assert set(await fetched(node, wanted(metadata, dict.fromkeys(KEYS, 0)))) == set(KEYS)
        with pytest.raises(BrokerConnectionError, match="node 77 is not among the brokers"):
            await source.node(77)


async def test_offsets_and_ends_of_epochs(daemon: Daemon) -> None:
    await produce(daemon, T0, T0, U0)
    async with source_at(daemon) as source:
        metadata = await source.metadata()
        node = await source.node(leader_of(metadata))
        ranges = await node.offset_ranges(KEYS)
        assert {key: (each.start, each.end) for key, each in ranges.items()} == {T0: (0, 2), T1: (0, 0), U0: (0, 1)}
        missing = TopicPartition("missing", 0)
        assert (await node.offset_ranges([missing]))[missing].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        at = await node.offsets_at(KEYS, 1)
        assert {key: each.start for key, each in at.items()} == {T0: 0, T1: -1, U0: 0}
        epoch = metadata.topics["t"].partitions[0].leader_epoch
        ends = await node.epoch_ends({T0: epoch, missing: 0}, {T0: epoch})
        assert ends == {T0: EpochEnd(epoch, 2), missing: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert await node.epoch_ends({T0: epoch}, {T0: epoch + 9}) == {T0: ErrorCode.UNKNOWN_LEADER_EPOCH}
