"""The overview: the forecast of the disks, and warnings in the words of `barnabas explain`."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas import Admin, AdminConfig, Producer, ProducerConfig
from barnabas.clients.group_offsets import CommittedOffset
from barnabas.console.cluster.latency import Latency, latencies_between
from barnabas.protocol.messages.cluster.explain_start import ApiLatency, ExplainStartResponse
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.console import ConsoleClient, running_console
from tests.support.daemon import Daemon, start_daemon
from tests.support.eventually import eventually
from tests.support.transactions.hanging import STRANGER_ID, produce_without_coordinator


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A broker with a transaction that hangs, and a group that has lost records and another that has not."""
    daemon = start_daemon(tmp_path_factory.mktemp("troubled"), "log.initial.task.delay.ms=1")
    try:
        asyncio.run(_trouble(daemon))
        produce_without_coordinator(daemon, "bills", 1)
        yield daemon
    finally:
        daemon.stop()


async def _trouble(daemon: Daemon) -> None:
    first = TopicPartition("bills", 0)
    async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
        await admin.create_topic("bills", partitions=2)
        async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
            for _ in range(10):
                await producer.send_and_wait("bills", b"x", partition=0)
        await admin.set_group_offsets("late <1>", {first: CommittedOffset(2)})
        await admin.delete_records({first: 6})
        await admin.set_group_offsets("well", {first: CommittedOffset(9)})


@pytest.fixture(scope="module")
def overview(troubled: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleClient]:
    log: Path = tmp_path_factory.mktemp("console") / "stderr"
    with running_console(troubled.bootstrap, log=log) as client:
        yield client


def inspected(console: ConsoleClient) -> str:
    """The page once it has the first inspection, as text."""

    def read() -> str | None:
        page = console.get("/")
        assert page.status == 200
        return html.unescape(page.text) if "at this rate" in page.text else None

    return eventually(read, what="a forecast on the overview")


def test_the_overview_has_the_forecast_of_the_disks(overview: ConsoleClient, troubled: Daemon) -> None:
    page = inspected(overview)
    assert "Forecast of the disks" in page
    assert f"{troubled.directory / 'data'}: " in page
    assert "<li>bills: " in page


def test_the_overview_warns_of_hanging_transactions_and_of_groups_that_lost_records(overview: ConsoleClient) -> None:
    page = inspected(overview)
    hanging = f"bills-1: producer {STRANGER_ID}, epoch 0 has a transaction open from offset 0 on"
    assert hanging in page
    assert f"`barnabas transaction abort --topic bills --partition 1 --producer-id {STRANGER_ID}`" in page
    assert "group late <1>, bills-0: retention has overtaken the group: 4 records from 2 to 5 are deleted" in page
    assert "group well" not in page
    assert "group late &lt;1&gt;" in overview.get("/").text


def test_the_overview_has_the_latency_of_requests_and_the_tasks_with_their_next_run(overview: ConsoleClient) -> None:
    page = inspected(overview)
    produce = re.search(r'<th scope="row">produce</th>(.*)</tr>', page)
    assert produce is not None
    cells = re.findall(r">([^<]+)</td>", produce[1])
    assert cells[:2] == ["11", "0"]
    assert all(each.endswith((" µs", " ms", " s")) for each in cells[2:])
    task = re.search(r'<th scope="row">log-retention</th>(.*)</tr>', page)
    assert task is not None
    assert re.search(r"<td>20\d\d-[^<]* UTC</td>$", task[1])
    never = re.search(r'<th scope="row">log-flusher</th>(.*)</tr>', page)
    assert never is not None
    assert re.search(r">1<.*<td>\N{EN DASH}</td>$", never[1])  # log.flush.scheduler.interval.ms is 2**63 - 1


def test_latencies_are_those_between_two_answers_of_the_same_run() -> None:
    bounds = (0.001, 0.1)
    before = ExplainStartResponse(began_ms=1, latencies=[ApiLatency("fetch", 1, 9.0, [90, 0, 0])])
    after = ExplainStartResponse(
        began_ms=1,
        latency_bounds_seconds=bounds,
        latencies=[ApiLatency("fetch", 3, 14.0, [92, 2, 0]), ApiLatency("produce", 0, 500.0, [0, 0, 100])],
    )
    fetch = Latency("fetch", 4, 2, 1.25, 0.001, 0.1)
    produce = Latency("produce", 100, 0, 5.0, None, None)
    assert latencies_between(before, after) == [produce, fetch]
    restarted = before.replaced(began_ms=0)
    assert [each.requests for each in latencies_between(restarted, after)] == [100, 94]
    assert latencies_between(after, after) == []
