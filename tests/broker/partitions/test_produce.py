"""Produce over the wire: acks, durable acknowledgement, and disconnecting clients."""

from __future__ import annotations

import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic
from barnabas.protocol.messages.topics.metadata import MetadataRequest
from tests.broker.conftest import Batch
from tests.support.daemon import Daemon, start_daemon
from tests.support.wire import WireClient, produce_request

EXIT_TIMEOUT_S = 30


def metric(daemon: Daemon, name: str) -> float:
    """Return the value of a metric without labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{daemon.metrics_port}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return float(next(line for line in lines if line.startswith(name + " ")).split()[1])


def test_flush_messages_1_answers_after_a_sync(daemon: Daemon, wire: WireClient, batch: Batch) -> None:
    wire.create_topic("durable", flush_messages="1")
    before = metric(daemon, "barnabas_flush_duration_seconds_count")
    assert wire.produce("durable", batch()).base_offset == 0
    assert metric(daemon, "barnabas_flush_duration_seconds_count") == before + 1
    wire.create_topic("cached")
    wire.produce("cached", batch())
    assert metric(daemon, "barnabas_flush_duration_seconds_count") == before + 1


def test_flush_acks_all_answers_acks_all_after_a_sync_and_acks_1_at_once(
    daemon: Daemon, wire: WireClient, batch: Batch
) -> None:
    wire.create_topic("chosen", flush_acks_all="true")
    before = metric(daemon, "barnabas_flush_duration_seconds_count")
    wire.call(produce_request("chosen", batch(), acks=1))
    assert metric(daemon, "barnabas_flush_duration_seconds_count") == before
    assert wire.call(produce_request("chosen", batch(), acks=-1)).topics[0].partitions[0].error == 0
    assert metric(daemon, "barnabas_flush_duration_seconds_count") == before + 1


def test_flush_messages_1_syncs_what_came_with_acks_0_too(daemon: Daemon, wire: WireClient, batch: Batch) -> None:
    wire.create_topic("unasked", flush_messages="1")
    before = metric(daemon, "barnabas_flush_requests_total")
    wire.send(produce_request("unasked", batch(), acks=0))
    assert wire.end_offset("unasked") == 1
    assert metric(daemon, "barnabas_flush_requests_total") == before + 1


def test_with_acks_0_one_bad_partition_does_not_keep_the_others_from_being_written(
    daemon: Daemon, wire: WireClient, batch: Batch
) -> None:
    wire.create_topic("behind")
    partitions = [ProducePartition(number, memoryview(batch())) for number in (7, 0)]
    with WireClient(daemon.host, daemon.port) as producer:
        producer.send(
            ProduceRequest(acks=0, timeout_ms=1000, topics=[ProduceTopic(name="behind", partitions=partitions)]),
        )
        assert producer.is_closed_by_broker()
    assert wire.end_offset("behind") == 1


def test_a_failed_sync_is_an_error_of_its_partition(tmp_path: Path, batch: Batch) -> None:
    with start_daemon(tmp_path) as daemon, WireClient(daemon.host, daemon.port) as client:
        client.create_topic("lost", flush_messages="1")
        (daemon.data_directory / "lost-0").rename(tmp_path / "taken away")
        refused = client.produce("lost", batch())
        assert (refused.error, refused.base_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
        assert "could not be flushed" in str(refused.message)


def test_clients_that_go_before_their_durable_answer_disturb_nobody(
    daemon: Daemon, wire: WireClient, batch: Batch
) -> None:
    wire.create_topic("abandoned", flush_messages="1")
    for _ in range(100):
        with WireClient(daemon.host, daemon.port) as producer:
            producer.send(produce_request("abandoned", batch()))
            producer.send(produce_request("abandoned", batch()))
    assert wire.produce("abandoned", batch()).error == ErrorCode.NONE
    wire.call(MetadataRequest.of_names([]))
    assert "a bug" not in daemon.log
    assert "Traceback" not in daemon.log


def test_what_was_acknowledged_before_a_stop_is_there_after_it(tmp_path: Path, batch: Batch) -> None:
    """Producers write without pause while the broker drains, to durable and plain topics."""

    def produce_until_closed(daemon: Daemon, topic: str) -> int:
        acknowledged = 0
        with WireClient(daemon.host, daemon.port) as client:
            while True:
                try:
                    answer = client.produce(topic, batch(b"x" * 100))
                except ConnectionError:
                    return acknowledged
                assert answer.error == ErrorCode.NONE
                acknowledged += 1

    topics = ["plain", "durable"] * 3
    with start_daemon(tmp_path) as daemon, ThreadPoolExecutor(len(topics)) as producers:
        with WireClient(daemon.host, daemon.port) as client:
            client.create_topic("plain")
            client.create_topic("durable", flush_messages="1")
            running = [producers.submit(produce_until_closed, daemon, topic) for topic in topics]
            deadline = time.monotonic() + 30
            while min(client.end_offset(topic) for topic in ("plain", "durable")) < 20:
                assert time.monotonic() < deadline
        assert daemon.stop() == 0
        acknowledged = dict.fromkeys(topics, 0)
        for topic, producer in zip(topics, running, strict=True):
            acknowledged[topic] += producer.result(EXIT_TIMEOUT_S)
        assert "Traceback" not in daemon.log
        daemon.start()
        with WireClient(daemon.host, daemon.port) as client:
            # Responses are in order on each connection and the drain loses none, so every stored record was
            # acknowledged.
            assert {topic: client.end_offset(topic) for topic in acknowledged} == acknowledged
