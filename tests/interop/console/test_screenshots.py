"""The pictures in docs/console.md: `make screenshots` takes them anew, from the pages that these tests look at."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.clients.admin.admin import Admin
from barnabas.clients.config import AdminConfig, ProducerConfig
from barnabas.clients.group_offsets import CommittedOffset
from barnabas.clients.producer.producer import Producer
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.browser.chromium import Browser
from tests.support.console import running_console
from tests.support.daemon import Daemon, start_daemon

DOCS = Path(__file__).parents[3] / "docs"
IS_WRITING = bool(os.environ.get("BARNABAS_SCREENSHOTS"))
TRAFFIC_SECONDS = 120 if IS_WRITING else 0
"""How long records are sent before the first picture, for the charts of the overview."""

WIDTH = 1100
DAY_MS = 24 * 3600 * 1000
DAYS, RECORDS_PER_DAY, PARTITIONS = 6, 80, 3

SHOTS = {
    "overview": ("/", 1000, "Scheduled tasks"),
    "topic": ("/topics/orders", 1150, "retention"),
    "records": ("/topics/orders/records?partition=all", 700, "order"),
    "setting": ("/topics/orders/settings/retention.ms?to=259200000", 520, "the next check deletes"),
    "group": ("/groups/billing", 820, "What the broker says"),
}
"""Name of the picture: the page, the height of the picture, and a text that the page must have."""


RENAME = """
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode())
  for (const [from, to] of Object.entries(arguments[0]))
    walker.currentNode.data = walker.currentNode.data.replaceAll(from, to);
"""
"""Replaces texts of the page: what differs from run to run, and is of no use to a reader."""


@pytest.fixture(scope="module")
def broker(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A broker with six days of orders, which `billing` has read in part, and with a compacted topic."""
    daemon = start_daemon(tmp_path_factory.mktemp("broker"), "log.retention.check.interval.ms=3600000")
    try:
        asyncio.run(_fill(daemon.bootstrap))
        yield daemon
    finally:
        daemon.stop()


@pytest.fixture(scope="module")
def address(broker: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a console that has observed traffic."""
    with running_console(broker.bootstrap, "--allow-changes", log=tmp_path_factory.mktemp("console") / "log") as client:
        client.get("/")  # observations begin with the first page
        asyncio.run(_send(broker.bootstrap, TRAFFIC_SECONDS))
        yield f"http://{client.host}"


@pytest.mark.parametrize("name", SHOTS)
def test_a_picture_of_the_docs_can_be_taken_and_is_there(
    browser: Browser, broker: Daemon, address: str, name: str
) -> None:
    path, height, text = SHOTS[name]
    browser.resize(WIDTH, height)
    browser.prefer("light")
    browser.open(address + path)
    browser.wait("[...document.querySelectorAll('.chart .latest')].every((each) => each.textContent)")
    browser.wait(f"document.body.innerText.includes('{text}')")
    browser.run("document.querySelectorAll('#partition-0 details').forEach((each) => { each.open = true; })")
    browser.run(RENAME, {str(broker.data_directory): "/var/lib/barnabas", broker.bootstrap: "127.0.0.1:9092"})
    assert str(broker.data_directory) not in browser.text
    picture = browser.screenshot()
    assert picture.startswith(b"\x89PNG")
    file = DOCS / "images" / "console" / f"{name}.png"
    if IS_WRITING:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(picture)
    assert file.is_file()
    assert f"(images/console/{name}.png)" in (DOCS / "console.md").read_text()


async def _fill(bootstrap: str) -> None:
    now_ms = int(time.time() * 1000)
    async with Admin(AdminConfig(bootstrap=bootstrap)) as admin:
        configs = {"segment.bytes": "12288", "retention.ms": str(7 * DAY_MS)}
        await admin.create_topic("orders", partitions=PARTITIONS, configs=configs)
        await admin.create_topic("customers", configs={"cleanup.policy": "compact"})
        async with Producer(ProducerConfig(bootstrap=bootstrap)) as producer:
            for number in range(DAYS * RECORDS_PER_DAY * PARTITIONS):
                at = now_ms - DAYS * DAY_MS + number * DAY_MS // (RECORDS_PER_DAY * PARTITIONS)
                sent = await producer.send(
                    "orders", _order(number), b"c%d" % (number % 97), timestamp_ms=at, partition=number % PARTITIONS
                )
                if number % PARTITIONS == PARTITIONS - 1:
                    await sent  # a batch has a few records: a segment has many batches
            for number in range(50):
                await producer.send_and_wait("customers", b'{"name": "customer %d"}' % number, b"c%d" % number)
        offsets = {TopicPartition("orders", number): CommittedOffset(430 - 60 * number) for number in range(PARTITIONS)}
        await admin.set_group_offsets("billing", offsets)


async def _send(bootstrap: str, seconds: float) -> None:
    async with Producer(ProducerConfig(bootstrap=bootstrap)) as producer:
        end, number = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            await producer.send_and_wait("orders", _order(number), b"c%d" % (number % 97))
            number += 1
            await asyncio.sleep(0.02 + 0.02 * (int(time.time()) % 30 > 15))


def _order(number: int) -> bytes:
    return b'{"order": %d, "item": "%s", "quantity": %d, "note": "%s"}' % (
        100_000 + number,
        (b"lamp", b"chair", b"table", b"shelf")[number % 4],
        1 + number % 5,
        b"please deliver in the morning, second floor, ring twice " * 2,
    )
