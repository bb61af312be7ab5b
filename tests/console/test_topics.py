"""The overview, the list of topics, and the page of a topic."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from barnabas.clients.admin.admin import Admin
from barnabas.clients.config import AdminConfig, ProducerConfig
from barnabas.clients.group_offsets import CommittedOffset
from barnabas.clients.producer.producer import Producer
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.console import ConsoleClient
from tests.support.daemon import Daemon

HOSTILE = '<script>alert("1")</script>'


@pytest.fixture(scope="module", autouse=True)
def topics(broker: Daemon) -> None:
    """`orders` with three segments, `compacted`, and 150 topics that need a second page."""

    async def create() -> None:
        async with Admin(AdminConfig(bootstrap=broker.bootstrap)) as admin:
            await admin.create_topic(
                "orders", partitions=2, configs={"segment.bytes": "1024", "retention.ms": "86400000"}
            )
            compacted = {"cleanup.policy": "compact", "segment.bytes": "1024", "min.cleanable.dirty.ratio": "1"}
            await admin.create_topic("compacted", configs=compacted)
            for number in range(150):
                await admin.create_topic(f"small-{number:03}")
        async with Producer(ProducerConfig(bootstrap=broker.bootstrap)) as producer:
            for number in range(6):
                await (await producer.send("orders", b"x" * 400, partition=0, key=str(number).encode()))
                await (await producer.send("compacted", b"x" * 300, key=b"same"))
        async with Admin(AdminConfig(bootstrap=broker.bootstrap)) as admin:
            await admin.set_group_offsets("behind", {TopicPartition("orders", 0): CommittedOffset(2)})
            await admin.set_group_offsets("further", {TopicPartition("orders", 0): CommittedOffset(1)})
            await admin.set_group_offsets("close", {TopicPartition("compacted", 0): CommittedOffset(5)})

    asyncio.run(create())


def test_the_overview_counts_what_the_cluster_has(console: ConsoleClient) -> None:
    page = console.get("/")
    assert page.status == 200
    assert re.search(r"<dt>Topics</dt><dd>15\d</dd>", page.text)
    assert "online" in page.text


def test_topics_are_searched_sorted_and_cut_into_pages(console: ConsoleClient) -> None:
    first, second = console.get("/topics").text, console.get("/topics?page=2").text
    assert first.count('scope="row"') == 100
    assert "Page 1 of 2" in first
    assert second.count('scope="row"') == 52
    found = console.get("/topics?search=SMALL-00").text
    assert re.findall(r">(small-\d+)<", found) == [f"small-{number:03}" for number in range(10)]
    largest = console.get("/topics?sort=size&order=desc").text
    assert re.findall(r'scope="row"><a href="/topics/([^"]+)"', largest)[0] == "orders"


def first_row(console: ConsoleClient, query: str) -> list[str]:
    """The name of the first topic, and its numbers."""
    row = re.search(
        r'<th scope="row"><a href="/topics/[^"]+">([^<]+)</a>.*?</tr>', console.get(f"/topics?{query}").text, re.S
    )
    assert row is not None
    return [row[1], *re.findall(r'<td class="number">([^<]*)</td>', row[0])]


def test_topics_are_sorted_by_lag_and_by_how_dirty_they_are(console: ConsoleClient) -> None:
    assert first_row(console, "sort=lag&order=desc")[::6] == ["orders", "5"]
    assert first_row(console, "sort=lag&order=asc")[::6] == ["compacted", "1"]
    assert first_row(console, "sort=dirty&order=desc")[::7] == ["compacted", "100 %"]


def test_topics_are_sorted_by_the_rates_between_two_observations(broker: Daemon, console: ConsoleClient) -> None:
    async def send() -> None:
        async with Producer(ProducerConfig(bootstrap=broker.bootstrap)) as producer:
            for _ in range(20):
                await producer.send_and_wait("small-007", b"x")
            await producer.send_and_wait("small-011", b"x" * 2000)

    console.get("/topics/none")  # which makes the console observe the cluster
    asyncio.run(send())
    console.get("/topics/none")
    name, *_, records, size, _, _ = first_row(console, "sort=rate&order=desc")
    assert (name, records == "0", size == "0 B") == ("small-007", False, False)
    assert first_row(console, "sort=bytes&order=desc")[0] == "small-011"


def test_a_search_cannot_inject(console: ConsoleClient) -> None:
    page = console.get("/topics?search=%3Cscript%3Ealert(%221%22)%3C/script%3E")
    assert "&lt;script&gt;" in page.text
    assert HOSTILE not in page.text


def test_a_topic_has_its_segments_on_a_time_axis_with_their_reasons(console: ConsoleClient) -> None:
    page = console.get("/topics/orders")
    assert page.status == 200
    bars = re.findall(r'<a href="#segment-0-(\d+)"', page.text)
    assert len(bars) >= 3
    assert all(f'id="segment-0-{base}"' in page.text for base in bars), "each bar leads to its explanation"
    assert "retention.ms=86400000 (topic orders)" in page.text or "retention.ms=86400000" in page.text
    assert 'class="cut' in page.text
    assert "high watermark 6" in page.text


def test_a_topic_that_does_not_exist_is_named(console: ConsoleClient) -> None:
    page = console.get("/topics/none%3Cb%3E")
    assert page.status == 404
    assert "none&lt;b&gt;" in page.text


def test_series_have_times_and_values(console: ConsoleClient) -> None:
    times, values = json.loads(console.get("/series/bytes").text)
    assert len(times) == len(values)
    assert console.get("/series/nothing").status == 404


def test_every_answer_forbids_what_is_not_of_the_console(console: ConsoleClient) -> None:
    for path in ("/", "/topics", "/topics/none", "/none", "/static/console.css", "/series/bytes"):
        headers = console.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff", path


def test_no_page_has_inline_scripts_or_styles(console: ConsoleClient) -> None:
    for path in ("/", "/topics", "/topics/orders"):
        text = console.get(path).text
        assert not re.search(r"<script(?![^>]*src=)|\sstyle=|\son[a-z]+=", text), path


def test_a_name_that_is_not_the_consoles_is_refused(console: ConsoleClient) -> None:
    page = console.get("/", Host="evil.example")
    assert page.status == 400
    assert "--host-name evil.example" in page.text
