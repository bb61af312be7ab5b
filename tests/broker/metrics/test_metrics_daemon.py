"""Metrics of a real broker match the requests that it served."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.requests.kafka_dialect import KafkaDialect, receive_exactly
from benchmarks.requests.records import build_batch
from tests.support.daemon import Daemon, start_daemon

DIALECT = KafkaDialect()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("daemon")) as running:
        yield running


def scrape(daemon: Daemon) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{daemon.metrics_port}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def connect(daemon: Daemon) -> socket.socket:
    return socket.create_connection((daemon.host, daemon.port), timeout=30)


def call(connection: socket.socket, frame: bytes) -> None:
    connection.sendall(frame)
    receive_exactly(connection, int.from_bytes(receive_exactly(connection, 4), "big"))


def key(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


def test_a_serving_broker_is_healthy_and_ready(daemon: Daemon) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{daemon.metrics_port}/healthz", timeout=30) as answer:
        assert answer.read() == b"serving\n"
    assert scrape(daemon)[key("barnabas_ready")] == 1


def test_what_was_produced_and_fetched_is_counted(daemon: Daemon) -> None:
    batch = build_batch(3, 50)
    with connect(daemon) as connection:
        DIALECT.create(connection, "counted")
        before = scrape(daemon)
        for _ in range(2):
            call(connection, DIALECT.produce("counted", batch.data))
        call(connection, DIALECT.fetch("counted", 0, 1 << 20))
        call(connection, DIALECT.produce("counted", batch.data))
        call(connection, DIALECT.fetch("counted", 6, 1 << 20))
        after = scrape(daemon)

    def grew(name: str, **labels: str) -> float:
        return after[key(name, **labels)] - before.get(key(name, **labels), 0)

    assert grew("barnabas_topic_received_records_total", topic="counted") == 9
    assert grew("barnabas_topic_received_bytes_total", topic="counted") == 3 * len(batch.data)
    assert grew("barnabas_topic_sent_bytes_total", topic="counted") == 3 * len(batch.data)
    # records are counted when the client fetches the offset after them
    assert grew("barnabas_topic_sent_records_total", topic="counted") == 6
    assert grew("barnabas_request_duration_seconds_count", api="produce") == 3
    assert grew("barnabas_request_duration_seconds_count", api="fetch") == 2
    assert grew("barnabas_network_received_bytes_total") > 3 * len(batch.data)
    assert grew("barnabas_network_sent_bytes_total") > 3 * len(batch.data)
    assert after[key("barnabas_log_end_offset", topic="counted", partition="0")] == 9
    assert after[key("barnabas_log_size_bytes", topic="counted", partition="0")] == 3 * len(batch.data)
    assert after[key("barnabas_connections_open")] == 1


def test_a_refused_request_is_counted_with_its_error(daemon: Daemon) -> None:
    with connect(daemon) as connection:
        call(connection, DIALECT.produce("no-such-topic", build_batch(1, 10).data))
    errors = scrape(daemon)
    assert errors[key("barnabas_request_errors_total", api="produce", error="unknown_topic_or_partition")] >= 1


def test_labels_of_topics_are_not_made_by_asking_for_them(daemon: Daemon) -> None:
    with connect(daemon) as connection:
        call(connection, DIALECT.produce("asked-for", build_batch(1, 10).data))
        call(connection, DIALECT.fetch("asked-for", 0, 1 << 20))
    assert not [labels for _, labels in scrape(daemon) if ("topic", "asked-for") in labels]


def test_the_broker_ends_cleanly_while_somebody_holds_a_connection_to_the_metrics_port(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon, socket.create_connection(("127.0.0.1", daemon.metrics_port), 10) as silent:
        silent.sendall(b"GET /metrics HT")
        assert daemon.stop() == 0


def test_a_metrics_port_in_use_stops_the_start_with_one_sentence(daemon: Daemon, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=rf"metrics.listener.*127\.0\.0\.1:{daemon.metrics_port}.*already in use"):
        start_daemon(tmp_path, f"metrics.listener=127.0.0.1:{daemon.metrics_port}")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://127.0.0.1:{daemon.metrics_port}/", timeout=30)
