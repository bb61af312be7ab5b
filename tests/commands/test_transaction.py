"""`barnabas transaction` against a real broker."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from barnabas import (
    Admin,
    AdminConfig,
    Consumer,
    ConsumerConfig,
    Producer,
    ProducerConfig,
    ProducerFencedError,
    TransactionAbortableError,
)
from barnabas.commands.main import main
from tests.support.daemon import Daemon, start_daemon
from tests.support.transactions.hanging import STRANGER_ID, produce_without_coordinator


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """`orders` and `bills` with two partitions each."""

    async def fill(bootstrap: str) -> None:
        async with Admin(AdminConfig(bootstrap=bootstrap)) as admin:
            for topic in ("orders", "bills"):
                await admin.create_topic(topic, partitions=2)

    with start_daemon(tmp_path_factory.mktemp("daemon"), "transaction.state.log.num.partitions=1") as running:
        asyncio.run(fill(running.bootstrap))
        yield running


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """A loop that keeps producers connected while commands run in their own loops."""
    with asyncio.Runner() as running:
        yield running


def run(daemon: Daemon, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["transaction", *arguments, "--bootstrap", daemon.bootstrap])


def as_json(daemon: Daemon, *arguments: str) -> Any:
    result = run(daemon, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


async def opened(daemon: Daemon, transactional_id: str, *topics: str) -> Producer:
    """A producer with an open transaction that has a record of this value in partition 1 of the topics."""
    producer = Producer(ProducerConfig(bootstrap=daemon.bootstrap, transactional_id=transactional_id))
    await producer.start()
    await producer.begin_transaction()
    for topic in topics:
        await producer.send_and_wait(topic, transactional_id.encode(), partition=1)
    return producer


def test_transactions_are_listed_with_their_states(daemon: Daemon, runner: asyncio.Runner) -> None:
    producer = runner.run(opened(daemon, "listed", "orders", "bills"))
    (found,) = as_json(daemon, "list", "--matching", "list.*", "--state", "ongoing")
    assert found == {
        "transactional_id": "listed",
        "state": "Ongoing",
        "producer_id": found["producer_id"],
        "producer_epoch": 0,
        "timeout_ms": 60_000,
        "start_time_ms": found["start_time_ms"],
        "partitions": [{"topic": "bills", "partition": 1}, {"topic": "orders", "partition": 1}],
    }
    assert abs(time.time() * 1000 - found["start_time_ms"]) < 60_000
    assert [
        each["transactional_id"] for each in as_json(daemon, "list", "--producer-id", str(found["producer_id"]))
    ] == ["listed"]
    assert as_json(daemon, "list", "--matching", "listed", "--longer-than", "1h") == []
    row = run(daemon, "list", "--matching", "listed").stdout.splitlines()[1].split()
    assert row[:5] == ["listed", "Ongoing", str(found["producer_id"]), "0", "2"]

    runner.run(producer.commit_transaction())
    (ended,) = as_json(daemon, "list", "--matching", "listed")
    assert (ended["state"], ended["producer_epoch"], ended["start_time_ms"]) == ("CompleteCommit", 1, None)
    assert as_json(daemon, "list", "--matching", "listed", "--longer-than", "0s") == []
    assert as_json(daemon, "list", "--state", "Ongoing", "--matching", "listed") == []
    runner.run(producer.close())


def test_a_transaction_is_described_with_its_partitions(daemon: Daemon, runner: asyncio.Runner) -> None:
    producer = runner.run(opened(daemon, "described", "orders"))
    lines = run(daemon, "describe", "described").stdout.splitlines()
    assert lines[0] == "transactional id described, Ongoing"
    assert lines[1].endswith("epoch 0, timeout 1m")
    assert lines[2].startswith("open for ")
    assert [line.split() for line in lines[4:]] == [["topic", "partition"], ["orders", "1"]]
    runner.run(producer.close())
    assert run(daemon, "describe", "described").stdout.startswith("transactional id described, CompleteAbort\n")


def test_an_unknown_transactional_id_is_refused_and_not_created(daemon: Daemon) -> None:
    for command in ("describe", "abort"):
        result = run(daemon, command, "nowhere")
        assert result.exit_code == 1
        assert "the broker does not know transactional id 'nowhere': `barnabas transaction list` shows" in result.stderr
    assert as_json(daemon, "list", "--matching", "nowhere") == []


def test_an_open_transaction_is_aborted_and_its_producer_fenced(daemon: Daemon, runner: asyncio.Runner) -> None:
    producer = runner.run(opened(daemon, "stuck", "orders"))
    result = run(daemon, "abort", "stuck")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("aborted the transaction of stuck, and fenced its producer ")
    with pytest.raises((ProducerFencedError, TransactionAbortableError)):
        runner.run(producer.commit_transaction())
    runner.run(producer.close())
    assert b"stuck" not in runner.run(committed(daemon, "orders"))
    again = run(daemon, "abort", "stuck")
    assert again.exit_code == 1
    assert "stuck has no open transaction" in again.stderr


def test_a_hanging_transaction_is_found_and_aborted(daemon: Daemon, runner: asyncio.Runner) -> None:
    producer = runner.run(opened(daemon, "known", "bills"))
    produce_without_coordinator(daemon, "bills", 1)
    (found,) = as_json(daemon, "find-hanging")
    assert (found["topic"], found["partition"]) == ("bills", 1)
    assert (found["producer_id"], found["producer_epoch"]) == (STRANGER_ID, 0)
    assert (
        as_json(daemon, "find-hanging", "orders") == as_json(daemon, "find-hanging", "bills", "--partition", "0") == []
    )
    assert as_json(daemon, "find-hanging", "--longer-than", "2h") == []
    row = run(daemon, "find-hanging").stdout.splitlines()[1].split()
    assert row[:3] == ["bills", "1", str(STRANGER_ID)]

    runner.run(producer.commit_transaction())
    runner.run(producer.close())
    assert b"hanging" not in runner.run(committed(daemon, "bills"))
    result = run(daemon, "abort", "--topic", "bills", "--partition", "1")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"aborted the transaction of producer {STRANGER_ID} in bills-1, offset ")
    assert "no hanging transactions whose last record is older than 15m" in run(daemon, "find-hanging").stderr
    again = run(daemon, "abort", "--topic", "bills", "--partition", "1")
    assert again.exit_code == 1
    assert "bills-1 has no hanging transaction" in again.stderr


def test_a_transaction_that_its_coordinator_knows_is_not_aborted_in_one_partition(
    daemon: Daemon, runner: asyncio.Runner
) -> None:
    producer = runner.run(opened(daemon, "kept", "orders"))
    result = run(daemon, "abort", "--topic", "orders", "--partition", "1")
    assert result.exit_code == 1
    assert "is aborted by its transactional id" in result.stderr
    runner.run(producer.commit_transaction())
    runner.run(producer.close())


@pytest.mark.parametrize(
    "arguments",
    [
        ("abort",),
        ("abort", "an-id", "--topic", "orders", "--partition", "0"),
        ("abort", "--topic", "orders"),
        ("find-hanging", "--partition", "0"),
        ("list", "--state", "Lost"),
        ("list", "--longer-than", "soon"),
    ],
)
def test_wrong_usage_is_refused(daemon: Daemon, arguments: tuple[str, ...]) -> None:
    assert run(daemon, *arguments).exit_code == 2


def test_a_missing_partition_and_an_invalid_pattern_are_refused(daemon: Daemon) -> None:
    missing = run(daemon, "find-hanging", "orders", "--partition", "7")
    assert (missing.exit_code, missing.stderr) == (1, "barnabas: topic orders has no partition 7\n")
    assert run(daemon, "list", "--matching", "(").exit_code == 1


async def committed(daemon: Daemon, topic: str) -> list[bytes | None]:
    """The values of partition 1 that are committed, up to its last stable offset."""
    config = ConsumerConfig(bootstrap=daemon.bootstrap, isolation="read_committed", offset_reset="earliest")
    async with Consumer(config) as consumer:
        await consumer.assign([(topic, 1)])
        return [record.value for record in await consumer.poll(timeout_ms=200)]
