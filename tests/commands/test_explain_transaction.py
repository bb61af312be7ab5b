"""`barnabas explain transaction`: what holds last stable offsets back, of a real broker and of given facts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result

from barnabas import Admin, AdminConfig, Producer, ProducerConfig
from barnabas.clients.admin.transactions import OpenTransaction
from barnabas.clients.errors import ClientError
from barnabas.clients.offsets import ListedOffset
from barnabas.commands.explain.transactions.facts import explain_partitions
from barnabas.commands.main import main
from barnabas.explanation.transaction_findings import (
    NO_TIMEOUT_MS,
    KnownTransaction,
    OpenInPartition,
    PartitionFacts,
    Verdict,
    explain_partition,
)
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.daemon import Daemon, start_daemon
from tests.support.transactions.hanging import STRANGER_ID, produce_without_coordinator

PARTITION = TopicPartition("orders", 0)
NOW_MS = 1_000_000


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


def explain(daemon: Daemon, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["explain", "transaction", *arguments, "--bootstrap", daemon.bootstrap])


def as_json(daemon: Daemon, *arguments: str) -> Any:
    result = explain(daemon, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_an_open_transaction_is_named_as_what_holds_the_last_stable_offset(daemon: Daemon) -> None:
    async def opened() -> tuple[Producer, Producer]:
        first = Producer(ProducerConfig(bootstrap=daemon.bootstrap, transactional_id="first"))
        second = Producer(ProducerConfig(bootstrap=daemon.bootstrap, transactional_id="second"))
        for producer in (first, second):
            await producer.start()
            await producer.begin_transaction()
            await producer.send_and_wait("orders", b"1", partition=0)
        return first, second

    with asyncio.Runner() as runner:
        first, second = runner.run(opened())
        (found,) = as_json(daemon, "--partition", "orders-0")["partitions"]
        assert (found["last_stable_offset"], found["high_watermark"], found["held_back"]) == (0, 2, 2)
        holder, waiting = found["open_transactions"]
        assert (holder["transactional_id"], holder["start_offset"], holder["verdict"]) == ("first", 0, "ongoing")
        assert (holder["holds_last_stable_offset"], waiting["holds_last_stable_offset"]) == (True, False)
        (asked,) = as_json(daemon, "first")["transactions"]
        assert holder["aborted_at_ms"] == asked["start_time_ms"] + 60_000
        partition = ["explain", "partition", "orders-0", "--bootstrap", daemon.bootstrap]
        described = json.loads(CliRunner().invoke(main, [*partition, "--json"]).stdout)
        assert described["transactions"]["open_transactions"] == found["open_transactions"]
        assert "orders-0: last stable offset 0, 2 offsets before the end" in CliRunner().invoke(main, partition).stdout
        lines = explain(daemon, "first").stdout.splitlines()
        assert lines[0].startswith("transactional id first (producer ")
        assert "`barnabas transaction abort first` aborts it now" in lines[3]
        by_producer = as_json(daemon, "--producer-id", str(waiting["producer_id"]))
        assert [each["transactional_id"] for each in by_producer["transactions"]] == ["second"]

        runner.run(first.commit_transaction())
        (found,) = as_json(daemon)["partitions"]
        assert (found["last_stable_offset"], found["held_back"]) == (1, 2)
        assert [each["transactional_id"] for each in found["open_transactions"]] == ["second"]
        runner.run(second.commit_transaction())
        runner.run(first.close())
        runner.run(second.close())
    assert explain(daemon).stdout == "no transaction is open in any partition\n"
    assert "is CompleteCommit: it has no open transaction" in explain(daemon, "first").stdout
    assert explain(daemon, "--partition", "orders-0").stdout == (
        "orders-0: last stable offset 4 is at the end: no open transaction holds it back\n"
    )


def test_the_command_that_ends_a_hanging_transaction_is_said_and_ends_it(daemon: Daemon) -> None:
    produce_without_coordinator(daemon, "bills", 1)
    (found,) = as_json(daemon, "--producer-id", str(STRANGER_ID))["partitions"]
    (holder,) = found["open_transactions"]
    assert (found["topic"], found["partition"], holder["verdict"]) == ("bills", 1, "hanging")
    assert (holder["transactional_id"], holder["aborted_at_ms"]) == (None, None)
    text = explain(daemon, "--partition", "bills-1").stdout
    command = text.split("`")[1].split()
    assert command[:3] == ["barnabas", "transaction", "abort"]
    ended = CliRunner().invoke(main, [*command[1:], "--bootstrap", daemon.bootstrap])
    assert ended.exit_code == 0, ended.output
    assert explain(daemon, "--partition", "bills-1").stdout.endswith("no open transaction holds it back\n")


def test_a_stopped_brokers_transactions_are_explained_from_its_directories(tmp_path: Path) -> None:
    async def open_one(bootstrap: str) -> None:
        async with Admin(AdminConfig(bootstrap=bootstrap)) as admin:
            for topic in ("orders", "quiet"):
                await admin.create_topic(topic, partitions=2)
        config = ProducerConfig(bootstrap=bootstrap, transactional_id="left-open", api_timeout_ms=500)
        producer = Producer(config)
        await producer.start()
        await producer.begin_transaction()
        await producer.send_and_wait("orders", b"1", partition=0)
        running.kill()
        with suppress(ClientError):  # it cannot abort its transaction any more
            await producer.close()

    with start_daemon(tmp_path, "transaction.state.log.num.partitions=1") as running:
        running.create_topic("bills", partitions=2)
        produce_without_coordinator(running, "bills", 1)
        asyncio.run(open_one(running.bootstrap))
        stopped = ("explain", "transaction", "--log-dir", str(running.data_directory))

        found = json.loads(CliRunner().invoke(main, [*stopped, "--json"]).stdout)["partitions"]
        assert [
            (each["topic"], each["partition"], each["high_watermark"], each["last_stable_offset"]) for each in found
        ] == [("bills", 1, 1, 0), ("orders", 0, 1, 0)]
        holders = [holder for each in found for holder in each["open_transactions"]]
        assert [(each["transactional_id"], each["verdict"]) for each in holders] == [
            (None, "hanging"),
            ("left-open", "ongoing"),
        ]
        text = CliRunner().invoke(main, stopped).stdout
        assert f"no start ends it; `barnabas log abort-transaction DIR... --producer-id {STRANGER_ID}` does" in text
        (asked,) = json.loads(CliRunner().invoke(main, [*stopped, "left-open", "--json"]).stdout)["partitions"]
        assert (asked["topic"], asked["held_back"]) == ("orders", 1)
        one = json.loads(CliRunner().invoke(main, ["explain", "partition", "bills-1", *stopped[2:], "--json"]).stdout)
        assert [each["verdict"] for each in one["transactions"]["open_transactions"]] == ["hanging"]
        quiet = CliRunner().invoke(main, [*stopped, "--partition", "quiet-1"]).stdout
        assert quiet == "quiet-1: last stable offset 0 is at the end: no open transaction holds it back\n"
        for wrong in (["nowhere"], ["--producer-id", "7"], ["--partition", "orders-9"]):
            assert CliRunner().invoke(main, [*stopped, *wrong]).exit_code == 1


def test_what_is_not_there_is_refused(daemon: Daemon) -> None:
    assert "does not know transactional id 'nowhere'" in explain(daemon, "nowhere").stderr
    assert "no open transaction has producer id 7" in explain(daemon, "--producer-id", "7").stderr
    assert explain(daemon, "--partition", "orders").exit_code == 2
    assert explain(daemon, "first", "--partition", "orders-0").exit_code == 2
    assert explain(daemon, "--partition", "orders-9").exit_code == 1


class _EndingMeanwhile:
    """An admin of a broker on which a transaction ends between two questions: the coordinator has forgotten it."""

    def __init__(self) -> None:
        self._open = [OpenTransaction(PARTITION, 5, 0, 0, 3, NOW_MS)]

    async def open_transactions(self, _: object) -> list[OpenTransaction]:
        found, self._open = self._open, []
        return found

    async def list_transactions(self, **_: object) -> list[object]:
        return []

    async def describe_transactions(self, _: object) -> dict[str, object]:
        return {}

    async def list_offsets(self, wanted: dict[TopicPartition, int], **_: object) -> dict[TopicPartition, ListedOffset]:
        return {each: ListedOffset(10, -1, 0) for each in wanted}


def test_a_transaction_that_ends_during_the_question_does_not_hang() -> None:
    explained = asyncio.run(explain_partitions(cast("Admin", _EndingMeanwhile()), [PARTITION]))
    (found,) = explained.partitions
    assert found.holders == ()


@pytest.mark.parametrize(
    ("state", "timeout_ms", "partitions", "verdict", "aborted_at_ms"),
    [
        ("Ongoing", 60_000, {PARTITION}, Verdict.ONGOING, NOW_MS + 59_000),
        ("Ongoing", 500, {PARTITION}, Verdict.OVERDUE, NOW_MS - 500),
        ("Ongoing", NO_TIMEOUT_MS, {PARTITION}, Verdict.NO_TIMEOUT, None),
        ("PrepareCommit", 60_000, {PARTITION}, Verdict.MISSING_MARKER, None),
        ("Ongoing", 60_000, {TopicPartition("other", 0)}, Verdict.HANGING, None),
    ],
)
def test_the_verdict_says_what_ends_a_transaction(
    state: str, timeout_ms: int, partitions: set[TopicPartition], verdict: Verdict, aborted_at_ms: int | None
) -> None:
    known = KnownTransaction("an-id", state, 5, 0, timeout_ms, NOW_MS - 1000, frozenset(partitions))
    facts = PartitionFacts(PARTITION, 10, 3, (OpenInPartition(5, 0, 3, NOW_MS),))
    finding = explain_partition(facts, [known], now_ms=NOW_MS)
    (holder,) = finding.holders
    assert (holder.verdict, holder.aborted_at_ms, finding.held_back) == (verdict, aborted_at_ms, 7)
