"""Quotas that Kafka's own tool sets, and what Kafka's producer, its consumer and librdkafka make of them.

Rates are the bytes of twelve seconds, after the burst that an idle client may send. The broker has 2 windows instead of
11, because a rate computed from sampled windows is even only over several times their length.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.apache_kafka import Kafka
from tests.support.metrics import metric

RECORDED_RATES = Path(__file__).resolve().parents[2] / "broker" / "quotas" / "kafka_rates.json"
"""Expected by the tests of rates."""

CONFIGS = "kafka.admin.ConfigCommand"
PRODUCER_PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER_PERFORMANCE = "org.apache.kafka.tools.ConsumerPerformance"

RATE = 200_000
"""Bytes per second of the quotas."""

WINDOWS = 2

BURST = (WINDOWS - 1) * RATE
"""Bytes that an idle client may send immediately."""

RECORD_BYTES = 10_000
MEASURED_SECONDS = 12
RECORDS = (BURST + RATE * (MEASURED_SECONDS + 5)) // RECORD_BYTES
TOLERANCE = 0.1
"""By how much the rate may exceed the quota."""

BUSY = 0.5
"""Share of the quota that a client reaches on a busy machine. A client that is throttled for twice as long as it should
be does not reach it."""


@dataclass(frozen=True)
class Setup:
    """The broker, and Kafka's tools."""

    daemon: Daemon
    kafka: Kafka

    def set_quotas(self, entity: str, name: str, *values: str) -> None:
        """Set quotas with kafka-configs."""
        said = self.kafka.tool(
            CONFIGS, "--bootstrap-server", self.daemon.bootstrap, "--alter", "--entity-type", entity,
            "--entity-name", name, "--add-config", ",".join(values),
        )  # fmt: skip
        assert "Completed updating config" in said

    def throttled(self, quota: str) -> float:
        """Return the number of throttled requests."""
        return metric(self.daemon, f'barnabas_throttled_requests_total{{quota="{quota}"}}') or 0.0


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    directory = tmp_path_factory.mktemp("quotas")
    kafka = Kafka("4.3.0", directory / "kafka", directory / "scratch")
    with start_daemon(directory / "ours", f"quota.window.num={WINDOWS}") as daemon:
        yield Setup(daemon, kafka)


def test_kafka_configs_sets_describes_and_deletes_quotas(setup: Setup) -> None:
    setup.set_quotas("users", "alice", "producer_byte_rate=1024", "request_percentage=50.5")
    described = setup.kafka.tool(
        CONFIGS, "--bootstrap-server", setup.daemon.bootstrap, "--describe", "--entity-type", "users"
    )
    assert "alice" in described
    assert "producer_byte_rate=1024.0" in described
    assert "request_percentage=50.5" in described
    setup.kafka.tool(
        CONFIGS, "--bootstrap-server", setup.daemon.bootstrap, "--alter", "--entity-type", "users", "--entity-name",
        "alice", "--delete-config", "producer_byte_rate,request_percentage",
    )  # fmt: skip


def test_the_recorded_rates_are_those_of_kafka(setup: Setup) -> None:
    assert json.loads(setup.kafka.java_program("Rates")) == json.loads(RECORDED_RATES.read_text())


def test_librdkafka_produces_and_consumes_at_the_rates_of_its_quotas(setup: Setup) -> None:
    setup.set_quotas("clients", "rd", f"producer_byte_rate={RATE}", f"consumer_byte_rate={RATE}")
    common = {"bootstrap.servers": setup.daemon.bootstrap, "client.id": "rd"}
    producer = Producer({**common, "batch.num.messages": 1, "max.in.flight": 1})
    delivered: list[float] = []
    for _ in range(RECORDS):
        producer.produce("rd", bytes(RECORD_BYTES), on_delivery=lambda *_: delivered.append(time.monotonic()))
    while len(delivered) < RECORDS:
        producer.poll(1.0)
    assert setup.throttled("producer_byte_rate") > 0
    assert_rate(delivered)

    settings = {"group.id": "rd", "auto.offset.reset": "earliest", "fetch.message.max.bytes": RECORD_BYTES}
    consumer = Consumer({**common, **settings})
    consumer.assign([TopicPartition("rd", 0, 0)])
    fetched: list[float] = []
    try:
        while len(fetched) < RECORDS:
            message = consumer.poll(1.0)
            if message is not None:
                assert message.error() is None
                fetched.append(time.monotonic())
    finally:
        consumer.close()
    assert setup.throttled("consumer_byte_rate") > 0
    assert_rate(fetched)


def assert_rate(arrivals: list[float]) -> None:
    """Check that the bytes of twelve seconds are those of the quota, or less because the machine is busy."""
    start = arrivals[0] + 2 * WINDOWS
    records = sum(start <= at < start + MEASURED_SECONDS for at in arrivals)
    rate = records * RECORD_BYTES / MEASURED_SECONDS
    assert BUSY * RATE < rate <= (1 + TOLERANCE) * RATE, f"{rate:.0f} bytes/s of {RATE}"


def test_java_obeys_the_throttle_times(setup: Setup, tmp_path: Path) -> None:
    setup.set_quotas("clients", "java", f"producer_byte_rate={RATE}", f"consumer_byte_rate={RATE}")
    properties = tmp_path / "client.properties"
    properties.write_text(f"bootstrap.servers={setup.daemon.bootstrap}\nclient.id=java\n")
    before = setup.throttled("producer_byte_rate")
    records = (BURST + 3 * RATE) // RECORD_BYTES
    said = setup.kafka.tool(
        PRODUCER_PERFORMANCE, "--topic", "java", "--num-records", str(records), "--record-size", str(RECORD_BYTES),
        "--throughput", "-1", "--command-config", str(properties), "--print-metrics",
    )  # fmt: skip
    assert f"{records} records sent" in said
    assert setup.throttled("producer_byte_rate") > before
    (line,) = [line for line in said.splitlines() if "produce-throttle-time-max" in line]
    assert float(line.rsplit(":", 1)[1]) > 0, "the client has read the throttle time"
    before = setup.throttled("consumer_byte_rate")
    setup.kafka.tool(
        CONSUMER_PERFORMANCE, "--bootstrap-server", setup.daemon.bootstrap, "--topic", "java", "--num-records",
        str(records), "--command-config", str(properties), "--timeout", "60000",
    )  # fmt: skip
    assert setup.throttled("consumer_byte_rate") > before
