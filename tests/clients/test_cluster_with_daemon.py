"""The client of Kafka's dialect at a running broker: metadata, leaders, coordinators, records, logins, back-off."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from barnabas import Producer, ProducerConfig
from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import AuthenticationError, BrokerConnectionError, ClosedError
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.connection import Connection
from barnabas.clients.security.settings import SecuritySettings
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.configs import (
    TOPIC_RESOURCE,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.data.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.data.list_offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.data.offset_for_leader_epoch import (
    EpochPartition,
    EpochTopic,
    OffsetForLeaderEpochRequest,
)
from barnabas.protocol.messages.groups.find_coordinator import GROUP_KEY, TRANSACTION_KEY
from barnabas.protocol.messages.nodes import BrokerAddress, LeaderAndEpoch
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.daemon import Daemon, start_daemon

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
LOGIN = (
    "sasl.enabled.mechanisms=PLAIN",
    f'listener.name.sasl_plaintext.plain.sasl.jaas.config={MODULE} required user_alice="pencil";',
    "connection.failed.authentication.delay.ms=0",
    "listeners=SASL_PLAINTEXT://127.0.0.1:0",
    "connections.max.reauth.ms=1200",
)
PARTITION = TopicPartition("t", 0)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("broker")) as running:
        running.create_topic("t", partitions=2)
        asyncio.run(produce_two(running))
        yield running


async def produce_two(daemon: Daemon) -> None:
    async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
        for value in (b"first", b"second"):
            await producer.send_and_wait("t", value, partition=0)


@asynccontextmanager
async def cluster_at(bootstrap: str, **settings: Any) -> AsyncIterator[Cluster]:
    cluster = Cluster(ClientConfig(bootstrap=bootstrap, **settings))
    try:
        yield cluster
    finally:
        await cluster.close()


def closed_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
        return port


async def test_records_are_fetched_from_the_leader_as_stored(daemon: Daemon) -> None:
    async with cluster_at(daemon.bootstrap) as cluster:
        assert cluster.leader_of(PARTITION) is None
        (topic,) = (await cluster.load(["t"])).topics
        leader = cluster.leader_of(PARTITION)
        assert leader is not None
        assert topic.topic_id != bytes(16)
        assert leader.node_id in cluster.node_ids
        assert len(topic.partitions) == 2
        connection = await cluster.connections.connect(leader.node_id, "fetch")
        assert connection is await cluster.connections.connect(leader.node_id, "fetch")
        assert connection is not await cluster.connections.connect(leader.node_id)
        for highest in (12, None):
            wanted = FetchPartition(partition=0, offset=0, max_bytes=1 << 20, current_leader_epoch=leader.epoch)
            query = FetchRequest(
                max_wait_ms=500,
                min_bytes=1,
                max_bytes=1 << 20,
                topics=[FetchTopic(name="t", topic_id=topic.topic_id, partitions=[wanted])],
            )
            answer = await connection.request(query, highest=highest)
            assert answer.error is ErrorCode.NONE
            (partition,) = answer.topics[0].partitions
            assert (partition.error, partition.high_watermark, partition.log_start_offset) == (ErrorCode.NONE, 2, 0)
            assert RecordBatch(partition.data, 0).base_offset == 0
            assert partition.diverging is None


async def test_a_fetch_beyond_the_epoch_of_the_source_diverges(daemon: Daemon) -> None:
    async with cluster_at(daemon.bootstrap) as cluster:
        topic_id = (await cluster.load(["t"])).topics[0].topic_id
        leader = cluster.leader_of(PARTITION)
        assert leader is not None
        end = await offset(cluster, leader.node_id, LATEST_TIMESTAMP)
        wanted = FetchPartition(
            partition=0,
            offset=end,
            max_bytes=1 << 20,
            current_leader_epoch=leader.epoch,
            last_fetched_epoch=leader.epoch,
        )
        connection = await cluster.connections.connect(leader.node_id, "fetch")
        topics = [FetchTopic(name="t", topic_id=topic_id, partitions=[wanted])]
        answer = await connection.request(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=topics))
        assert answer.topics[0].partitions[0].error is ErrorCode.NONE
        request = OffsetForLeaderEpochRequest(
            topics=[EpochTopic(name="t", partitions=[EpochPartition(partition=0, leader_epoch=leader.epoch)])]
        )
        found = (await cluster.ask(leader.node_id, request)).topics[0].partitions[0]
        assert (found.leader_epoch, found.end_offset) == (leader.epoch, end)


async def offset(cluster: Cluster, node_id: int, timestamp: int) -> int:
    request = ListOffsetsRequest(
        isolation=0,
        topics=[ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition=0, timestamp=timestamp)])],
    )
    answer = await cluster.ask(node_id, request)
    (found,) = answer.topics[0].partitions
    assert found.error is ErrorCode.NONE
    result: int = found.offset
    return result


async def test_offsets_configs_and_coordinators(daemon: Daemon) -> None:
    async with cluster_at(daemon.bootstrap) as cluster:
        metadata = await cluster.load([])
        assert metadata.topics == []
        node_id = metadata.brokers[0].node_id
        assert await offset(cluster, node_id, EARLIEST_TIMESTAMP) == 0
        resource = DescribeConfigsResource(type=TOPIC_RESOURCE, name="t", names=["cleanup.policy"])
        answer = await cluster.ask_any(DescribeConfigsRequest(resources=[resource]))
        (described,) = answer.results
        assert [(each.name, each.value) for each in described.entries] == [("cleanup.policy", "delete")]
        for key_type in (GROUP_KEY, TRANSACTION_KEY):
            found = await eventually_coordinator(cluster, key_type)
            assert found is await cluster.connections.connect(node_id)


async def eventually_coordinator(cluster: Cluster, key_type: int) -> Connection:
    async with asyncio.timeout(20):
        while True:
            try:
                return await cluster.coordinator(key_type, "a")
            except Exception as error:
                if getattr(error, "code", None) is not ErrorCode.COORDINATOR_NOT_AVAILABLE:
                    raise
                await asyncio.sleep(0.05)


async def test_a_missing_topic_is_an_error_and_is_not_created(daemon: Daemon) -> None:
    async with cluster_at(daemon.bootstrap) as cluster:
        for _ in range(2):
            (topic,) = (await cluster.load(["missing"])).topics
            assert topic.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert cluster.leader_of(TopicPartition("missing", 0)) is None
        assert "missing" not in [each.name for each in (await cluster.load(None)).topics]


async def test_a_leader_of_a_fetch_answer_counts_if_its_epoch_is_newer_and_its_address_known(daemon: Daemon) -> None:
    async with cluster_at(daemon.bootstrap) as cluster:
        await cluster.load(["t"])
        known = cluster.leader_of(PARTITION)
        assert known is not None
        new = LeaderAndEpoch(node_id=known.node_id + 1, epoch=known.epoch + 1)
        assert not cluster.note_leader(PARTITION, new, [])
        assert not cluster.note_leader(PARTITION, LeaderAndEpoch(node_id=-1, epoch=known.epoch + 1), [])
        address = BrokerAddress(new.node_id, "127.0.0.1", closed_port())
        assert not cluster.note_leader(PARTITION, LeaderAndEpoch(node_id=new.node_id, epoch=known.epoch), [address])
        assert cluster.note_leader(PARTITION, new, [address])
        assert cluster.leader_of(PARTITION) == new
        with pytest.raises(BrokerConnectionError, match=str(address.port)):
            await cluster.connections.connect(new.node_id)
        await cluster.load(["t"])  # of an older epoch
        assert cluster.leader_of(PARTITION) == new


async def test_the_bootstrap_list_is_tried_until_one_answers(daemon: Daemon) -> None:
    dead = f"127.0.0.1:{closed_port()}"
    async with cluster_at(f"{dead},{daemon.bootstrap}") as cluster:
        assert (await cluster.load([])).brokers
    async with cluster_at(f"{dead},127.0.0.1:{closed_port()}") as cluster:
        with pytest.raises(
            BrokerConnectionError,
            match=f"none of 2 brokers can be reached: cannot connect to {dead}: .*; cannot connect to 127",
        ):
            await cluster.load([])


async def test_attempts_at_a_broker_that_is_down_are_spaced() -> None:
    attempts = 0

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal attempts
        attempts += 1
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with cluster_at(f"127.0.0.1:{port}", reconnect_backoff_ms=50, reconnect_backoff_max_ms=60_000) as cluster:
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                while True:
                    with pytest.raises(BrokerConnectionError):
                        await cluster.load([])
    server.close()
    assert 2 <= attempts <= 6  # at 0, 0.05, 0.15, 0.35 and 0.75 s, give or take the jitter


async def test_nothing_is_sent_after_close(daemon: Daemon) -> None:
    async with cluster_at(daemon.bootstrap) as cluster:
        await cluster.load([])
        await cluster.close()
        with pytest.raises(ClosedError):
            await cluster.load([])
        with pytest.raises(ClosedError):
            await cluster.connections.connect(cluster.node_ids[0])


def login(password: str) -> SecuritySettings:
    return SecuritySettings.from_properties(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": password,
        }
    )


async def test_a_session_that_ends_is_renewed_on_its_connection(tmp_path_factory: pytest.TempPathFactory) -> None:
    with start_daemon(tmp_path_factory.mktemp("broker"), *LOGIN) as secure:
        async with cluster_at(secure.bootstrap, security=login("pencil")) as cluster:
            (node,) = (await cluster.load([])).brokers
            first = await cluster.connections.connect(node.node_id)
            ends = asyncio.get_running_loop().time() + 2.6  # the broker closes a session after 1.2 s
            while asyncio.get_running_loop().time() < ends:
                await cluster.load([])
                await asyncio.sleep(0.05)
            assert await cluster.connections.connect(node.node_id) is first
        async with cluster_at(secure.bootstrap, security=login("wrong")) as cluster:
            with pytest.raises(AuthenticationError, match="refuses the PLAIN login"):
                await cluster.load([])
