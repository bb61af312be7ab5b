"""Share consumers other than Java's on Barnabas: librdkafka's (a preview in 2.16) and franz-go's, beside our own."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from barnabas import ShareConsumer, ShareConsumerConfig
from barnabas.commands.main import main
from tests.interop.clients import building
from tests.support.daemon import REPOSITORY, Daemon, start_daemon
from tests.support.share.group_settings import set_group_configs

RECORDS = 20
RELEASED = 2
"""Records that are released at their first delivery."""
BOUND_S = 90.0


def librdkafka() -> list[str]:
    return [sys.executable, "-m", "tests.interop.clients.python.confluent_share"]


def franz_go() -> list[str]:
    return building.go("franzshare")


CLIENTS = [pytest.param(librdkafka, id="librdkafka"), pytest.param(franz_go, id="franz-go")]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    settings = ("share.coordinator.state.topic.num.partitions=2", "offsets.topic.num.partitions=2")
    with start_daemon(tmp_path_factory.mktemp("ours"), *settings) as running:
        yield running


def filled(daemon: Daemon, topic: str, partitions: int = 2) -> None:
    """Create a topic with records, read from the first one on by the group of the same name."""
    daemon.create_topic(topic, partitions=partitions)
    configs = {"share.auto.offset.reset": "earliest"}
    configs["share.record.lock.duration.ms"] = "60000"  # the most: another program starts while records are locked
    set_group_configs(daemon, topic, configs)
    producer = Producer({"bootstrap.servers": daemon.bootstrap})
    for number in range(RECORDS):
        producer.produce(topic, f"{number:03d}".encode(), partition=number % partitions)
    assert producer.flush(30) == 0


def member(command: list[str], daemon: Daemon, topic: str, count: int) -> subprocess.Popen[str]:
    arguments = [*command, daemon.bootstrap, topic, topic, str(count)]
    return subprocess.Popen(arguments, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def read(command: list[str], daemon: Daemon, topic: str, count: int) -> list[tuple[str, int]]:
    process = member(command, daemon, topic, count)
    out, errors = process.communicate(timeout=BOUND_S)
    assert process.returncode == 0, errors
    return [(value, int(deliveries)) for value, deliveries in (line.split() for line in out.splitlines())]


def left(daemon: Daemon, group: str) -> list[int]:
    """The number of records of each partition that are not done."""
    done = CliRunner().invoke(main, ["group", "describe", group, "--json", "--bootstrap", daemon.bootstrap])
    assert done.exit_code == 0, done.output
    return [row["lag"] for row in json.loads(done.output)["partitions"]]


@pytest.mark.parametrize("client", CLIENTS)
def test_records_are_accepted_released_and_rejected(daemon: Daemon, client: Callable[[], list[str]]) -> None:
    command, topic = client(), f"acknowledged-{client.__name__}"
    filled(daemon, topic)
    found = read(command, daemon, topic, RECORDS + RELEASED)
    again = [(f"{number:03d}", 2) for number in range(RECORDS) if number % 10 == 1]
    assert sorted(found) == sorted([*((f"{number:03d}", 1) for number in range(RECORDS)), *again])
    assert left(daemon, topic) == [0, 0]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_member_survives_kill_9_of_the_broker(daemon: Daemon, client: Callable[[], list[str]]) -> None:
    command, topic = client(), f"killed-{client.__name__}"
    filled(daemon, topic)
    process = member(command, daemon, topic, 2 * RECORDS + RELEASED)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline()]  # it is a member
        daemon.kill()
        daemon.start()
        producer = Producer({"bootstrap.servers": daemon.bootstrap})
        for number in range(100, 100 + 2 * RECORDS):  # more than it waits for
            producer.produce(topic, f"{number}".encode(), partition=number % 2)
        assert producer.flush(30) == 0
        assert process.stderr is not None
        lines += process.stdout.readlines()  # communicate() would leave out what the first line's read has buffered
        assert process.wait(BOUND_S) == 0, process.stderr.read()
    finally:
        process.kill()
        process.communicate()  # closes the pipes
    counts = Counter(line.split()[0] for line in lines)
    assert {f"{number:03d}" for number in range(RECORDS)} <= counts.keys()
    assert max(counts.values()) <= 5, "the limit of deliveries"


@pytest.mark.parametrize("client", CLIENTS)
async def test_our_consumer_shares_a_group_with_it(daemon: Daemon, client: Callable[[], list[str]]) -> None:
    command, topic = await asyncio.to_thread(client), f"shared-{client.__name__}"
    await asyncio.to_thread(filled, daemon, topic, 1)  # which both members have
    config = ShareConsumerConfig(
        bootstrap=daemon.bootstrap,
        group=topic,
        acknowledgement="explicit",
        acquire_mode="record_limit",
        max_poll_records=4,
    )
    async with asyncio.timeout(BOUND_S), ShareConsumer(config) as queue:
        await queue.subscribe([topic])
        ours = await queue.poll(4, timeout_ms=BOUND_S * 1000)
        assert len(ours) == 4
        returned, *kept = ours
        await queue.release(returned)  # to the other member, since this one does not read
        values = {(each.value or b"").decode() for each in kept}
        again = {"001", "011"} - {(each.value or b"").decode() for each in ours}  # it releases those once
        theirs = await asyncio.to_thread(read, command, daemon, topic, RECORDS - len(kept) + len(again))
        await queue.ack(*kept)
    assert values.isdisjoint(value for value, _ in theirs)
    assert ((returned.value or b"").decode(), 2) in theirs
    assert len({value for value, _ in theirs} | values) == RECORDS
    assert await asyncio.to_thread(left, daemon, topic) == [0]
