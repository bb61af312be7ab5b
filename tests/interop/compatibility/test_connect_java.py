"""Kafka Connect with exactly-once source support: a file source, its worker and the broker killed at seeded moments.

With BARNABAS_COMPATIBILITY_BROKER=kafka:4.3.0 it runs against Apache Kafka, which checks the test (see test_clients).
"""

from __future__ import annotations

import json
import random
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from tests.interop.clients.target import Target
from tests.support.eventually import eventually
from tests.support.free_ports import free_port
from tests.support.kafka.application import Application
from tests.support.storage.committed_records import committed_records

pytestmark = pytest.mark.timeout(300)  # several starts of a JVM, and of Kafka's broker when that is the target

SEED = 15
LINES_PER_ROUND = 400
# The connector passes on the lines left in its buffer, of 1024 characters, only when the file has more.
UNREAD_LINES = 200
ROUNDS = ("broker", "both")
WAIT_S = 90.0
TOO_EARLY = "InvalidTxnStateException"
CONNECTOR = {
    "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
    "tasks.max": "1",
    "topic": "lines",
    "batch.size": "5",
    "exactly.once.support": "required",
    "transaction.boundary": "poll",
    # A started worker reads the offsets to the end of their topic, and waits there for a killed worker's transaction.
    "producer.override.transaction.timeout.ms": "15000",
}


@pytest.mark.ecosystem("Kafka Connect", "4.3.0", "distributed worker, file source, exactly once, worker killed too")
def test_a_file_is_copied_exactly_once_when_the_worker_and_the_broker_are_killed(
    target: Target, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    target.create_topic("lines", 1)
    source = tmp_path / "lines.txt"
    source.touch()
    written: list[str] = []
    port = free_port()
    properties = tmp_path / "worker.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in worker_settings(target, port).items()))

    with Application(
        tmp_path / "worker", "org.apache.kafka.connect.cli.ConnectDistributed", [str(properties)]
    ) as worker:
        put_connector(port, {**CONNECTOR, "file": str(source)})
        for killed in ROUNDS:
            before = len(written)
            write_lines(source, written)
            wait_for_lines(target, port, chance.randrange(before + 1, len(written) - UNREAD_LINES))
            if killed == "both":
                worker.kill()
            target.restart()
            if killed == "both":
                worker.start()
        expected = len(written)
        write_lines(source, written)
        wait_for_lines(target, port, expected)

    found = copied(target)
    assert found == written[: len(found)]


def write_lines(source: Path, written: list[str]) -> None:
    """Append numbered lines to the file and to the list."""
    added = [f"line {number}" for number in range(len(written), len(written) + LINES_PER_ROUND)]
    written += added
    with source.open("a") as lines:
        lines.writelines(f"{line}\n" for line in added)


def worker_settings(target: Target, port: int) -> dict[str, str]:
    """Return the properties of a distributed worker."""
    converter = "org.apache.kafka.connect.storage.StringConverter"
    return {
        "bootstrap.servers": target.bootstrap,
        "group.id": "connect",
        "listeners": f"http://127.0.0.1:{port}",
        "exactly.once.source.support": "enabled",
        "key.converter": converter,
        "value.converter": converter,
        "plugin.discovery": "service_load",
        **{f"{topic}.storage.topic": f"connect-{topic}" for topic in ("config", "offset", "status")},
        **{f"{topic}.storage.replication.factor": "1" for topic in ("config", "offset", "status")},
        **{f"{topic}.storage.partitions": "1" for topic in ("offset", "status")},
        # A killed worker leaves by its session timeout; its successor then gets the tasks without a further delay.
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "500",
        "scheduled.rebalance.max.delay.ms": "0",
        "reconnect.backoff.max.ms": "200",
    }


def put_connector(port: int, config: dict[str, str]) -> None:
    """Create the connector as soon as the worker's REST interface accepts it."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/connectors/lines/config",
        data=json.dumps(config).encode(),
        headers={"Content-Type": "application/json"},
        method="PUT",
    )

    def is_created() -> bool | None:
        try:
            with urllib.request.urlopen(request, timeout=30):
                return True
        except OSError:  # not listening yet, or in a rebalance
            return None

    eventually(is_created, what="a connector", timeout_s=WAIT_S)


def copied(target: Target) -> list[str]:
    """Return the committed lines in the topic."""
    return [(record.value or b"").decode() for record in committed_records(target.log_directory, "lines")]


def wait_for_lines(target: Target, port: int, total: int) -> None:
    """Wait until the topic has this many committed records."""

    def has_enough() -> bool:
        restart_task_that_ended_too_early(port)
        return len(copied(target)) >= total

    eventually(has_enough, what=f"{total} lines", timeout_s=WAIT_S)


def restart_task_that_ended_too_early(port: int) -> None:
    """Restart the task if its producer sent EndTxn before its records, as it may: docs/client-quirks.md, Java."""
    connector = f"http://127.0.0.1:{port}/connectors/lines"
    with suppress(OSError):  # the worker is starting, or in a rebalance
        with urllib.request.urlopen(f"{connector}/status", timeout=30) as answer:
            tasks = json.load(answer)["tasks"]
        if any(each["state"] == "FAILED" and TOO_EARLY in each["trace"] for each in tasks):
            request = urllib.request.Request(f"{connector}/tasks/0/restart", method="POST")
            urllib.request.urlopen(request, timeout=30).close()
