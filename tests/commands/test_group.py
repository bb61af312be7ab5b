"""`barnabas group` as a process against a real broker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
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
    RefusedError,
    TopicPartition,
)
from barnabas.clients.group_offsets import CommittedOffset
from barnabas.commands.main import main
from tests.support.daemon import Daemon, start_daemon

FIRST_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Ten records, a minute apart, in each of two partitions of `orders`."""

    async def fill(bootstrap: str) -> None:
        async with Admin(AdminConfig(bootstrap=bootstrap)) as admin:
            await admin.create_topic("orders", partitions=2)
        async with Producer(ProducerConfig(bootstrap=bootstrap)) as producer:
            for number in range(20):
                await producer.send("orders", b"x", timestamp_ms=FIRST_MS + number // 2 * 60_000, partition=number % 2)

    with start_daemon(tmp_path_factory.mktemp("daemon")) as running:
        asyncio.run(fill(running.bootstrap))
        yield running


def commit(daemon: Daemon, group: str, offsets: dict[int, int]) -> None:
    async def run() -> None:
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            await admin.set_group_offsets(
                group, {TopicPartition("orders", number): CommittedOffset(at) for number, at in offsets.items()}
            )

    asyncio.run(run())


def run(daemon: Daemon, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["group", *arguments, "--bootstrap", daemon.bootstrap])


def as_json(daemon: Daemon, *arguments: str) -> Any:
    result = run(daemon, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_groups_are_listed_and_described_with_their_lag(daemon: Daemon) -> None:
    commit(daemon, "described", {0: 4, 1: 10})
    assert {"group": "described", "state": "Empty", "type": "Classic", "protocol_type": ""} in as_json(daemon, "list")
    found = as_json(daemon, "describe", "described")
    assert [(row["partition"], row["committed"], row["end"], row["lag"]) for row in found["partitions"]] == [
        (0, 4, 10, 6),
        (1, 10, 10, 0),
    ]
    assert run(daemon, "describe", "described").stdout.splitlines()[2].split() == ["orders", "0", "4", "10", "6"]


async def test_a_group_with_members_is_described_with_their_partitions(daemon: Daemon) -> None:
    config = ConsumerConfig(bootstrap=daemon.bootstrap, client_id="biller", group="busy", group_instance_id="desk")
    async with Consumer(config) as consumer:
        await consumer.subscribe(["orders"])
        while not consumer.assignment:
            await consumer.poll(timeout_ms=20)
        await consumer.commit({TopicPartition("orders", 0): 4})
        found = await asyncio.to_thread(as_json, daemon, "describe", "busy")
        shown = await asyncio.to_thread(run, daemon, "describe", "busy")
    (member,) = found["members"]
    assert (member["client_id"], member["instance_id"], member["host"]) == ("biller", "desk", "127.0.0.1")
    assert [(row["partition"], row["committed"], row["lag"], row["client"]) for row in found["partitions"]] == [
        (0, 4, 6, "biller@127.0.0.1"),
        (1, None, None, "biller@127.0.0.1"),
    ]
    assert shown.stdout.splitlines()[0] == "group busy, Stable, 1 member"
    assert shown.stdout.splitlines()[3].split() == ["orders", "1", "-", "10", "-", "biller@127.0.0.1"]


def test_an_unknown_group_is_one_sentence(daemon: Daemon) -> None:
    for arguments in (("describe", "nobody"), ("delete", "nobody")):
        result = run(daemon, *arguments)
        assert result.exit_code == 1
        assert "there is no group" in result.stderr


def test_a_deleted_group_is_gone(daemon: Daemon) -> None:
    commit(daemon, "deleted", {0: 1})
    assert run(daemon, "delete", "deleted").exit_code == 0
    assert "deleted" not in {each["group"] for each in as_json(daemon, "list")}


@pytest.mark.parametrize(
    ("target", "new"),
    [
        (("--to-earliest",), 0),
        (("--to-latest",), 10),
        (("--to-offset", "7"), 7),
        (("--to-offset", "700"), 10),
        (("--to-timestamp", str(FIRST_MS + 180_000)), 3),
        (("--to-timestamp", str(FIRST_MS + 10**9)), 10),
        (("--by-duration", "90000d"), 0),
        (("--by-duration", "0s"), 10),
    ],
)
def test_offsets_are_only_shown_unless_execute_is_given(daemon: Daemon, target: tuple[str, ...], new: int) -> None:
    group = "reset" + "".join(target)
    commit(daemon, group, {0: 5, 1: 6})
    arguments = ("reset-offsets", group, *target)
    planned = as_json(daemon, *arguments)
    assert not planned["executed"]
    assert [(row["committed"], row["new"]) for row in planned["partitions"]] == [(5, new), (6, new)]
    assert [row["committed"] for row in as_json(daemon, "describe", group)["partitions"]] == [5, 6]
    assert as_json(daemon, *arguments, "--execute")["executed"]
    assert [row["committed"] for row in as_json(daemon, "describe", group)["partitions"]] == [new, new]


def test_a_group_without_committed_offsets_needs_a_topic(daemon: Daemon) -> None:
    assert "give --topic" in run(daemon, "reset-offsets", "fresh", "--to-earliest").stderr
    arguments = ("--topic", "orders", "--partition", "1", "--to-offset", "2", "--execute")
    (row,) = as_json(daemon, "reset-offsets", "fresh", *arguments)["partitions"]
    assert row == {"topic": "orders", "partition": 1, "committed": None, "new": 2}
    assert [row["partition"] for row in as_json(daemon, "describe", "fresh")["partitions"]] == [1]


def test_bad_options_are_usage_errors(daemon: Daemon) -> None:
    assert run(daemon, "reset-offsets", "g").exit_code == 2
    assert run(daemon, "reset-offsets", "g", "--to-earliest", "--to-latest").exit_code == 2
    assert run(daemon, "reset-offsets", "g", "--to-earliest", "--partition", "1").exit_code == 2
    assert run(daemon, "reset-offsets", "g", "--by-duration", "soon").exit_code == 2


def test_a_refused_commit_has_the_reason(daemon: Daemon) -> None:
    async def refused() -> None:
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            with pytest.raises(RefusedError, match=r"offset\.metadata\.max\.bytes"):
                await admin.set_group_offsets(
                    "g", {TopicPartition("orders", 0): CommittedOffset(1, metadata="x" * 5000)}
                )

    asyncio.run(refused())


def test_committed_offsets_survive_a_restart(tmp_path: Path) -> None:
    for expected in (None, 3):
        with start_daemon(tmp_path) as daemon:

            async def work(bootstrap: str = daemon.bootstrap) -> CommittedOffset | None:
                async with Admin(AdminConfig(bootstrap=bootstrap)) as admin:
                    if not await admin.list_topics():
                        await admin.create_topic("orders")
                    found = await admin.group_offsets("g")
                    await admin.set_group_offsets("g", {TopicPartition("orders", 0): CommittedOffset(3, metadata="m")})
                    return found.get(TopicPartition("orders", 0))

            assert asyncio.run(work()) == (None if expected is None else CommittedOffset(expected, metadata="m"))
            daemon.kill()
