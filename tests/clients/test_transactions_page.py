"""The consume-transform-produce program of docs/transactions.md, run as written, and killed in the middle."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

from barnabas import Admin, AdminConfig, Consumer, ConsumerConfig, Producer, ProducerConfig, TopicPartition
from tests.support.daemon import REPOSITORY, Daemon, start_daemon

PAGE = REPOSITORY / "docs" / "transactions.md"
ORDERS = 4_000
PARTITIONS = 2


def program(daemon: Daemon, directory: Path) -> list[str]:
    """The page's program for this broker. Its last poll is shortened, which only ends it sooner."""
    (text,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
    for written, replacement in (
        ('"127.0.0.1:9092"', repr(daemon.bootstrap)),
        ("timeout_ms=5_000", "timeout_ms=2_000"),
    ):
        assert text.count(written) == 1
        text = text.replace(written, replacement)
    script = directory / "invoices.py"
    script.write_text(text)
    return [sys.executable, str(script)]


async def fill(daemon: Daemon) -> None:
    async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
        for topic in ("orders", "invoices"):
            await admin.create_topic(topic, partitions=PARTITIONS)
    async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
        for number in range(ORDERS):
            await producer.send("orders", b"%05d" % number, partition=number % PARTITIONS)


async def read(daemon: Daemon, isolation: str, at_least: int) -> list[bytes | None]:
    """The invoices in order of arrival, once there are enough."""
    config = ConsumerConfig(bootstrap=daemon.bootstrap, isolation=isolation, offset_reset="earliest")
    values: list[bytes | None] = []
    async with asyncio.timeout(60), Consumer(config) as consumer:
        await consumer.assign([TopicPartition("invoices", number) for number in range(PARTITIONS)])
        while len(values) < at_least:
            values += [record.value for record in await consumer.poll(timeout_ms=100)]
    return values


def test_the_program_writes_each_invoice_once_although_it_is_killed(tmp_path: Path) -> None:
    internal = ("transaction.state.log.num.partitions=1", "offsets.topic.num.partitions=1")
    with start_daemon(tmp_path / "daemon", *internal) as daemon:
        asyncio.run(fill(daemon))
        command = program(daemon, tmp_path)
        environ = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        for kill_after in (1, 1_500):
            with subprocess.Popen(command, cwd=tmp_path, env=environ) as killed:
                asyncio.run(read(daemon, "read_uncommitted", kill_after))
                killed.kill()
        done = subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=100, check=False
        )
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        invoices = asyncio.run(read(daemon, "read_committed", ORDERS))
    assert sorted(value or b"" for value in invoices) == [b"invoice for %05d" % number for number in range(ORDERS)]
