"""Our client of Kafka's protocol at Apache Kafka: one broker of two versions, a cluster of three, and SASL_SSL."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.broker.mirrors.following.source_groups import GroupOffset, SourceGroups
from barnabas.broker.mirrors.kafka_source import KafkaSource
from barnabas.broker.mirrors.partition_copier import EpochEnd, FetchedPartition
from barnabas.broker.mirrors.source import FetchFrom, SourceMetadata
from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import AuthenticationError, ClientError
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.security.settings import SecuritySettings
from barnabas.commands.main import main
from barnabas.config.properties_file import parse_properties
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.describe_producers import DescribeProducersRequest, DescribeProducersTopic
from barnabas.protocol.messages.groups.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.groups.find_coordinator import TRANSACTION_KEY
from barnabas.protocol.messages.transactions.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.transactions.list_transactions import ListTransactionsRequest
from barnabas.protocol.records import iter_batches, read_records
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.daemon import start_daemon
from tests.support.free_ports import free_port
from tests.support.kafka.apache_kafka import Kafka, need_kafka
from tests.support.mirrors.copies import MIRROR, admin_of, has_copied, segments, until

pytestmark = pytest.mark.timeout(300)

NOT_LEADING_YET = (ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def create(bootstrap: str, name: str, partitions: int, replicas: int, **configs: str) -> None:
    topic = NewTopic(
        name, partitions, replicas, config={key.replace("_", "."): value for key, value in configs.items()}
    )
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (created,) = admin.create_topics([topic]).values()
    created.result(60)


def create_unclean(bootstrap: str, name: str, replicas: list[int]) -> None:
    """Create a topic of one partition that any replica may lead."""
    configs = {"unclean.leader.election.enable": "true"}
    topic = NewTopic(name, 1, replica_assignment=[replicas], config=configs)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (created,) = admin.create_topics([topic]).values()
    created.result(60)


def produce(producer: Producer, partition: int, count: int, topic: str = "t") -> None:
    for number in range(count):
        producer.produce(topic, f"{partition}-{number}".encode(), partition=partition)
    assert producer.flush(60) == 0


def values(path: Path) -> list[bytes | None]:
    """Return the values of the records in a file of a segment's format."""
    return [record.value for found in iter_batches(memoryview(path.read_bytes())) for record in read_records(found)]


def fetch_from(metadata: SourceMetadata, key: TopicPartition, offset: int, epoch: int = -1) -> FetchFrom:
    topic = metadata.topics[key.topic]
    return FetchFrom(topic.topic_id, offset, topic.partitions[key.partition].leader_epoch, epoch, 1 << 20)


def stored(directory: Path, key: TopicPartition) -> bytes:
    return (directory / str(key) / "00000000000000000000.log").read_bytes()


@pytest.mark.parametrize("version", ["3.9.1", "4.3.0"])
async def test_batches_offsets_epochs_groups_and_transactions_of_a_broker(tmp_path: Path, version: str) -> None:
    kafka = Kafka(version, tmp_path / "data", tmp_path / "scratch")
    kafka.format()
    with kafka.running() as broker:
        await asyncio.to_thread(fill, broker.bootstrap)
        cluster = Cluster(ClientConfig(bootstrap=broker.bootstrap))
        source = KafkaSource(cluster)
        metadata = await source.metadata()
        assert metadata.topics["__consumer_offsets"].is_internal
        assert await source.topic_configs(["t"]) == {"t": {"retention.ms": "-1"}}
        node = await source.node(1)
        wanted = {key: fetch_from(metadata, key, 0) for key in (T0, T1)}
        found = await node.fetch(wanted, max_wait_ms=500, max_bytes=1 << 23)
        for key in (T0, T1):
            assert found[key].error is ErrorCode.NONE
            assert bytes(found[key].records) == stored(tmp_path / "data", key)
        ends = {key: each.end for key, each in (await node.offset_ranges([T0, T1])).items()}
        assert ends == {T0: found[T0].high_watermark, T1: found[T1].high_watermark}
        wanted = {key: fetch_from(metadata, key, ends[key], 0) for key in (T0, T1)}
        assert await node.fetch(wanted, max_wait_ms=0, max_bytes=1 << 23) == {}
        # An offset beyond the end of its epoch diverges; for an epoch beyond the latest one Kafka knows no end.
        wanted = {T0: fetch_from(metadata, T0, ends[T0] + 5, 0), T1: fetch_from(metadata, T1, 5, 7)}
        answer = await node.fetch(wanted, max_wait_ms=0, max_bytes=1 << 23)
        assert answer[T0].diverging == EpochEnd(0, ends[T0])
        assert answer[T1].error is ErrorCode.OFFSET_OUT_OF_RANGE
        assert await node.epoch_ends({T0: 0}, {T0: 0}) == {T0: EpochEnd(0, ends[T0])}
        assert (await node.offsets_at([T0], 1))[T0].start == 0
        await check_groups(cluster)
        await check_transactions(cluster, T1)
        await source.close()


def fill(bootstrap: str) -> None:
    """Records in all codecs, an aborted, a committed and an open transaction, and the offsets of a group."""
    create(bootstrap, "t", 2, 1, retention_ms="-1")
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        produce(Producer({"bootstrap.servers": bootstrap, "compression.type": codec}), 0, 20)
    for number, end in enumerate((Producer.abort_transaction, Producer.commit_transaction, None)):
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"x-{number}", "log_level": 0})
        producer.init_transactions(60)
        producer.begin_transaction()
        produce(producer, 1, 3)
        if end is not None:
            end(producer, 60)
        else:
            OPEN.append(producer)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "followed", "enable.auto.commit": False})
    offset = ConfluentPartition("t", 0, 7, metadata="note", leader_epoch=0)
    consumer.commit(offsets=[offset], asynchronous=False)
    consumer.close()


OPEN: list[Producer] = []
"""Producers whose transactions stay open: a producer that is collected aborts its transaction."""


async def check_groups(cluster: Cluster) -> None:
    groups = SourceGroups(cluster, ["follow.*"])
    assert await groups.matching() == {1: ["followed"]}
    found = await groups.offsets(1, ["followed", "missing"])
    note = found["followed"][T0].metadata  # type: ignore[index]
    assert note.rstrip("\0") == "note"  # librdkafka sends a zero byte after it
    assert found == {"followed": {T0: GroupOffset(7, 0, note)}, "missing": {}}
    described = await cluster.ask(1, DescribeGroupsRequest(groups=["followed"]))
    assert [(each.group_id, each.error, each.state) for each in described.groups] == [
        ("followed", ErrorCode.NONE, "Empty")
    ]


async def check_transactions(cluster: Cluster, written: TopicPartition) -> None:
    coordinator = await cluster.coordinator(TRANSACTION_KEY, "x-2")
    listed = (await coordinator.request(ListTransactionsRequest(states=["Ongoing"]))).transactions
    assert [each.transactional_id for each in listed] == ["x-2"]
    described = await coordinator.request(DescribeTransactionsRequest(transactional_ids=["x-1", "x-2", "x-3"]))
    assert [(each.state, each.error) for each in described.transactions] == [
        ("CompleteCommit", ErrorCode.NONE),
        ("Ongoing", ErrorCode.NONE),
        ("", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
    ]
    (topic,) = described.transactions[1].topics
    assert (topic.name, topic.partitions) == (written.topic, [written.partition])
    request = DescribeProducersRequest(
        topics=[DescribeProducersTopic(name=written.topic, partitions=[written.partition])]
    )
    (partition,) = (await coordinator.request(request)).topics[0].partitions
    open_ids = [each.producer_id for each in partition.producers if each.transaction_start_offset >= 0]
    assert open_ids == [listed[0].producer_id]


class ClusterBroker:
    """One broker of a cluster, started."""

    def __init__(self, kafka: Kafka, port: int) -> None:
        self.bootstrap = f"127.0.0.1:{port}"
        self._kafka = kafka
        self._broker = kafka.start()

    def kill(self) -> None:
        """Kill -9."""
        self._broker.kill()

    def start(self) -> None:
        """Start it again."""
        self._broker = self._kafka.start()


@contextmanager
def three_brokers(directory: Path) -> Iterator[dict[int, ClusterBroker]]:
    """Run one node that is broker and controller, and two brokers; yield them by node id."""
    controller = free_port()
    ports = {node_id: free_port() for node_id in (1, 2, 3)}
    brokers: dict[int, ClusterBroker] = {}
    cluster_id = "AAAAAAAAAAAAAAAAAAAAAA"
    with ExitStack() as stack:
        for node_id, port in ports.items():
            kafka = Kafka("4.3.0", directory / f"data-{node_id}", directory / f"scratch-{node_id}", node_id=node_id)
            listener = f"PLAINTEXT://127.0.0.1:{port}"
            roles = "broker,controller" if node_id == 1 else "broker"
            kafka.settings |= {
                "process.roles": roles,
                "controller.quorum.voters": f"1@127.0.0.1:{controller}",
                "listeners": f"{listener},CONTROLLER://127.0.0.1:{controller}" if node_id == 1 else listener,
                "advertised.listeners": listener,
                "min.insync.replicas": "1",
            }
            kafka.format(cluster_id=cluster_id)
            brokers[node_id] = ClusterBroker(kafka, port)
            stack.callback(brokers[node_id].kill)
        yield brokers


async def test_a_mirror_of_three_brokers_goes_on_when_one_dies_and_follows_an_unclean_election(tmp_path: Path) -> None:
    with three_brokers(tmp_path) as brokers, start_daemon(tmp_path / "copy") as copy:
        bootstrap = ",".join(each.bootstrap for each in brokers.values())
        create(bootstrap, "t", 6, 2)
        create_unclean(bootstrap, "unclean", [2, 3])
        producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        for number in range(6):
            await asyncio.to_thread(produce, producer, number, 10)
        await asyncio.to_thread(produce, producer, 0, 10, "unclean")
        async with admin_of(copy) as admin:
            await admin.mirrors.create(MIRROR, bootstrap=bootstrap.split(","), topics=["t", "unclean"], keep_cut=True)
        await until(copy, has_copied(70))
        leaders = await leaders_of(bootstrap)
        assert set(leaders.values()) == {1, 2, 3}
        brokers[3].kill()
        async with asyncio.timeout(60):
            while {1, 2} != set((leaders := await leaders_of(bootstrap)).values()):
                await asyncio.sleep(0.2)
        for number in range(6):
            await asyncio.to_thread(produce, producer, number, 5)
        await asyncio.to_thread(produce, producer, 0, 5, "unclean")
        await until(copy, has_copied(105))
        copied = segments(copy.data_directory, "t")
        for number, leader in leaders.items():
            name = f"t-{number}/00000000000000000000.log"
            assert copied[name] == segments(tmp_path / f"data-{leader}", "t")[name]

        # Broker 3 has missed the last five records, and leads once it runs without broker 2.
        brokers[2].kill()
        await asyncio.to_thread(brokers[3].start)
        async with asyncio.timeout(60):
            while (await leaders_of(bootstrap, "unclean")) != {0: 3}:
                await asyncio.sleep(0.2)
        await asyncio.to_thread(produce, producer, 0, 2, "unclean")

        def is_cut(_: object) -> bool:
            return segments(copy.data_directory, "unclean") == segments(tmp_path / "data-3", "unclean")

        await until(copy, is_cut)
        (kept,) = copy.data_directory.glob("unclean-0.cut-*.log")
        assert values(kept) == [b"0-0", b"0-1", b"0-2", b"0-3", b"0-4"]


async def leaders_of(bootstrap: str, topic: str = "t") -> dict[int, int]:
    """Return the leader of each partition."""
    cluster = Cluster(ClientConfig(bootstrap=bootstrap))
    try:
        (found,) = (await cluster.load([topic])).topics
    finally:
        await cluster.close()
    return {each.partition: each.leader for each in found.partitions}


async def test_leaders_on_several_nodes_are_fetched_from_and_followed_when_one_dies(tmp_path: Path) -> None:
    with three_brokers(tmp_path) as brokers:
        bootstrap = ",".join(each.bootstrap for each in brokers.values())
        create(bootstrap, "t", 6, 2)
        create(bootstrap, "lone", 3, 1)
        producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        for number in range(6):
            await asyncio.to_thread(produce, producer, number, 10)
        config = ClientConfig(bootstrap=bootstrap, reconnect_backoff_ms=100, reconnect_backoff_max_ms=1000)
        cluster = Cluster(config)
        source = KafkaSource(cluster)
        metadata = await source.metadata()
        partitions = metadata.topics["t"].partitions
        keys = [TopicPartition("t", number) for number in partitions]
        before = {key: partitions[key.partition] for key in keys}
        assert {each.leader for each in before.values()} == {1, 2, 3}
        read = {key: await fetched(source, metadata, key) for key in keys}
        # A broker without a replica refuses. (One with a replica serves the fetch, as consumers may use followers.)
        number = next(each for each, found in metadata.topics["lone"].partitions.items() if found.leader != 1)
        lone = TopicPartition("lone", number)
        node = await source.node(1)
        answer = await node.fetch({lone: fetch_from(metadata, lone, 0)}, max_wait_ms=0, max_bytes=1 << 20)
        assert answer[lone].error is ErrorCode.NOT_LEADER_OR_FOLLOWER

        victim = next(key for key in keys if before[key].leader == 3)
        brokers[3].kill()
        async with asyncio.timeout(60):
            while True:
                try:
                    metadata = await source.metadata()
                    if metadata.topics["t"].partitions[victim.partition].leader not in (-1, 3):
                        break
                except ClientError:
                    pass
                await asyncio.sleep(0.2)
        after = metadata.topics["t"].partitions[victim.partition]
        assert after.leader_epoch > before[victim].leader_epoch
        async with asyncio.timeout(60):  # the new leader learns of its part a little later than the metadata say so
            while (again := await answered(source, metadata, victim)).error in NOT_LEADING_YET:
                await asyncio.sleep(0.1)
        assert again.error is ErrorCode.NONE
        assert bytes(again.records) == bytes(read[victim].records)
        await asyncio.to_thread(produce, producer, victim.partition, 1)
        newest = (await source.node(after.leader)).epoch_ends
        assert (await newest({victim: before[victim].leader_epoch}, {}))[victim] == EpochEnd(
            before[victim].leader_epoch, 10
        )
        await source.close()


async def answered(source: KafkaSource, metadata: SourceMetadata, key: TopicPartition) -> FetchedPartition:
    """Fetch from the partition's leader; return the result, whatever its error."""
    node = await source.node(metadata.topics[key.topic].partitions[key.partition].leader)
    found: Mapping[TopicPartition, FetchedPartition] = await node.fetch(
        {key: fetch_from(metadata, key, 0)}, max_wait_ms=500, max_bytes=1 << 20
    )
    return found[key]


async def fetched(source: KafkaSource, metadata: SourceMetadata, key: TopicPartition) -> FetchedPartition:
    found = await answered(source, metadata, key)
    assert found.error is ErrorCode.NONE
    assert found.records
    return found


async def test_a_source_with_tls_and_scram(tmp_path: Path) -> None:
    need_kafka("4.3.0")
    created = tmp_path / "secure"
    result = CliRunner().invoke(main, ["security", "init", str(created), "--host", "127.0.0.1"])
    assert result.exit_code == 0, result.output
    settings = {entry.key: entry.value for entry in parse_properties((created / "server.properties").read_text())}
    for name in ("listeners", "advertised.listeners", "log.dirs"):
        del settings[name]
    settings["super.users"] += ";User:ANONYMOUS"  # the listener between Kafka's broker and controller is PLAINTEXT
    kafka = Kafka("4.3.0", created / "data", tmp_path / "kafka")
    kafka.settings |= settings
    kafka.extra_listeners = {"SASL_SSL": "SASL_SSL"}
    with kafka.running():
        bootstrap = f"127.0.0.1:{kafka.extra_ports['SASL_SSL']}"
        security = SecuritySettings.from_file(created / "client.properties")
        assert security.protocol == "SASL_SSL"
        cluster = Cluster(ClientConfig(bootstrap=bootstrap, security=security))
        source = KafkaSource(cluster)
        assert (await source.metadata()).cluster_id
        await source.node(cluster.node_ids[0])
        await source.close()
        values = {entry.key: entry.value for entry in parse_properties((created / "client.properties").read_text())}
        await refused(bootstrap, values | {"sasl.jaas.config": wrong_password(values)}, "refuses the SCRAM-SHA-")
        plain = {key: value for key, value in values.items() if not key.startswith("ssl.")}
        await refused(bootstrap, plain, "is not trusted")


def wrong_password(values: Mapping[str, str]) -> str:
    before, _, after = values["sasl.jaas.config"].partition('password="')
    return f'{before}password="wrong{after}'


async def refused(bootstrap: str, properties: Mapping[str, str], sentence: str) -> None:
    settings: Any = SecuritySettings.from_properties(properties)
    cluster = Cluster(ClientConfig(bootstrap=bootstrap, security=settings))
    with pytest.raises(AuthenticationError, match=sentence):
        await cluster.load([])
    await cluster.close()
