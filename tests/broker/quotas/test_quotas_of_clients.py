"""Quotas that AlterClientQuotas sets, and what the clients of a running broker observe of them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.broker.conftest import Batch
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire, answer_of, fetch_request, produce_request, request_frame, schema
from tests.support.kafka.quotas import alter_quotas
from tests.support.metrics import metric

NO_TIME = timedelta()


class Client(KafkaWire):
    """A connection with a client id of its own."""

    def __init__(self, daemon: Daemon, client_id: str) -> None:
        super().__init__(daemon.host, daemon.port)
        self.client_id = client_id
        self.last_bytes = 0

    def send(self, request: Any) -> None:
        self.correlation_id += 1
        self.socket.sendall(request_frame(request, self.correlation_id, self.client_id))


@pytest.fixture
def admin(daemon: Daemon) -> Any:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


def create(client: KafkaWire, version: int, *topics: str, partitions: int = 1) -> dict[str, tuple[int, timedelta]]:
    """Create topics; return each one's error, and the throttle time."""
    kio = schema("create_topics", version, "request")
    rows = tuple(
        kio.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=())
        for name in topics
    )
    answer = client.call("create_topics", version, topics=rows, timeout=timedelta(seconds=30), validate_only=False)
    return {topic.name: (int(topic.error_code), answer.throttle_time) for topic in answer.topics}


def test_a_producer_above_its_quota_is_throttled_until_the_quota_is_gone(
    daemon: Daemon, admin: KafkaWire, batch: Batch
) -> None:
    create(admin, 7, "produced")
    alter_quotas(admin, "client-id", "greedy", producer_byte_rate=1000.0)
    with Client(daemon, "greedy") as greedy, Client(daemon, "modest") as modest:
        greedy.send(produce_request(9, "produced", batch(bytes(10_100))))
        answer = greedy.receive("produce", 9)
        assert answer.responses[0].partition_responses[0].error_code == 0, "what exceeds the quota is stored"
        assert timedelta(milliseconds=100) < answer.throttle_time < timedelta(seconds=1)
        modest.send(produce_request(9, "produced", batch(bytes(100_000))))
        assert modest.receive("produce", 9).throttle_time == NO_TIME
        greedy.send(produce_request(9, "produced", batch(b"small")))
        assert greedy.receive("produce", 9).responses[0].partition_responses[0].base_offset == 2
        alter_quotas(admin, "client-id", "greedy", producer_byte_rate=None)
        greedy.send(produce_request(9, "produced", batch(bytes(10_100))))
        assert greedy.receive("produce", 9).throttle_time == NO_TIME


@pytest.mark.parametrize("version", [4, 11, 16])
def test_a_consumer_reads_what_its_quota_allows_and_above_it_nothing(
    daemon: Daemon, admin: KafkaWire, batch: Batch, version: int
) -> None:
    topic, client_id = f"fetched-{version}", f"reader-{version}"
    create(admin, 7, topic)
    topic_id = admin.topic_id(topic) if version >= 13 else None
    for _ in range(8):
        admin.send(produce_request(9, topic, batch(bytes(3000))))
        admin.receive("produce", 9)
    alter_quotas(admin, "client-id", client_id, consumer_byte_rate=1000.0)
    with Client(daemon, client_id) as reader:
        # The records that ten seconds of the quota allow exceed it by the fields around them, as with Kafka.
        tries = [fetched(reader, version, topic, topic_id, 0)]
        while reader.last_bytes < 100:
            assert NO_TIME < tries[-1] < timedelta(seconds=1)
            tries.append(fetched(reader, version, topic, topic_id, 0))
            assert len(tries) < 10
        assert tries[-1] == NO_TIME
        assert 9_900 < reader.last_bytes <= 10_100
        assert fetched(reader, version, topic, topic_id, 3) > timedelta(seconds=5)
        assert reader.last_bytes < 100, "an empty response"
    assert (metric(daemon, 'barnabas_throttled_requests_total{quota="consumer_byte_rate"}') or 0) >= 1


def fetched(reader: Client, version: int, topic: str, topic_id: UUID | None, offset: int) -> timedelta:
    """Fetch; return the throttle time, and note the size of the response."""
    reader.send(fetch_request(version, topic, offset, topic_id))
    frame = reader.receive_frame()
    reader.last_bytes = len(frame)
    _, answer = answer_of("fetch", version, frame)
    throttle: timedelta = answer.throttle_time
    return throttle


def test_a_throttled_fetch_is_not_counted_as_sent(tmp_path: Path, batch: Batch) -> None:
    with (
        start_daemon(tmp_path, "auto.create.topics.enable=false") as daemon,
        KafkaWire(daemon.host, daemon.port) as admin,
    ):
        create(admin, 7, "t")
        admin.send(produce_request(9, "t", batch(bytes(30_000))))
        admin.receive("produce", 9)
        alter_quotas(admin, "client-id", "reader", consumer_byte_rate=1000.0)
        with Client(daemon, "reader") as reader:
            assert fetched(reader, 11, "t", None, 0) > timedelta(seconds=15)
        assert metric(daemon, 'barnabas_topic_sent_bytes_total{topic="t"}') == 0


def test_partitions_above_the_mutation_rate_are_refused_in_new_versions_and_throttled_in_old_ones(
    daemon: Daemon, admin: KafkaWire
) -> None:
    alter_quotas(admin, "client-id", "creator", controller_mutation_rate=0.5)
    with Client(daemon, "creator") as creator:
        results = create(creator, 7, "fits-1", "fits-2", "refused-1", partitions=4)
        assert {name: error for name, (error, _) in results.items()} == {
            "fits-1": ErrorCode.NONE,
            "fits-2": ErrorCode.NONE,
            "refused-1": ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        }
        assert {timedelta(seconds=4) < throttle < timedelta(seconds=5.1) for _, throttle in results.values()} == {True}
    alter_quotas(admin, "client-id", "creator-2", controller_mutation_rate=0.5)
    with Client(daemon, "creator-2") as creator:
        results = create(creator, 5, "old-1", "old-2", "old-3", partitions=4)
        assert {error for error, _ in results.values()} == {0}
        assert {throttle > timedelta(seconds=12) for _, throttle in results.values()} == {True}


def test_a_topic_above_the_mutation_rate_is_unknown_to_metadata(daemon: Daemon, admin: KafkaWire) -> None:
    alter_quotas(admin, "client-id", "namer", controller_mutation_rate=0.01)
    with Client(daemon, "namer") as namer:
        kio = schema("metadata", 4, "request")
        names = tuple(kio.MetadataRequestTopic(name=name) for name in ("auto-1", "auto-2"))
        answer = namer.call("metadata", 4, topics=names, allow_auto_topic_creation=True)
        found = {topic.name: topic.error_code for topic in answer.topics}
        assert found == {"auto-1": ErrorCode.NONE, "auto-2": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert answer.throttle_time == NO_TIME


def test_a_muted_connection_is_not_idle_and_ends_with_the_broker(tmp_path: Path, batch: Batch) -> None:
    with start_daemon(tmp_path, "connections.max.idle.ms=300") as daemon, KafkaWire(daemon.host, daemon.port) as admin:
        create(admin, 7, "t")
        alter_quotas(admin, "client-id", "greedy", producer_byte_rate=1.0)
        with Client(daemon, "greedy") as greedy:
            greedy.send(produce_request(9, "t", batch(bytes(1000))))
            assert greedy.receive("produce", 9).throttle_time > timedelta(minutes=10)
            with Client(daemon, "idle") as idle:
                assert idle.is_closed_by_broker(), "which takes longer than the idle limit"
            assert metric(daemon, "barnabas_connections_muted") == 1
            assert daemon.stop() == 0
            assert greedy.is_closed_by_broker()
