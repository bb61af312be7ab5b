"""`barnabas explain group`: of a real broker, whose retention then does what was said; and of given facts."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from barnabas import Admin, AdminConfig, Consumer, ConsumerConfig, Producer, ProducerConfig, TopicPartition
from barnabas.clients.group_offsets import CommittedOffset
from barnabas.commands.main import main
from barnabas.explanation.group_findings import Verdict, explain_partition
from barnabas.protocol.messages.groups.explain_group import Deletion, PartitionLag
from tests.support.daemon import Daemon, start_daemon
from tests.support.eventually import eventually

HOUR_MS = 3_600_000
NOW_MS = 10_000_000
BATCH_BYTES = 670
"""Of one record with VALUE: a header of 61 bytes, 9 bytes and the value."""
VALUE = b"x" * 600


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    settings = ("log.retention.check.interval.ms=200", "log.initial.task.delay.ms=0")
    with start_daemon(tmp_path_factory.mktemp("daemon"), *settings) as running:
        yield running


def explain(daemon: Daemon, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["explain", "group", *arguments, "--bootstrap", daemon.bootstrap])


def as_json(daemon: Daemon, group: str) -> Any:
    result = explain(daemon, group, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


async def fill(daemon: Daemon, topic: str, timestamps: list[int], configs: dict[str, str], committed: int) -> None:
    """A record of each time, two to a segment, and a committed offset of group `lagging`."""
    async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
        await admin.create_topic(topic, partitions=1, configs={"segment.bytes": str(2 * BATCH_BYTES), **configs})
        async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
            for each in timestamps:
                await producer.send_and_wait(topic, VALUE, partition=0, timestamp_ms=each)
    await commit(daemon, f"{topic}-readers", topic, committed)


async def commit(daemon: Daemon, group: str, topic: str, offset: int) -> None:
    async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
        await admin.set_group_offsets(group, {TopicPartition(topic, 0): CommittedOffset(offset)})


def test_retention_overtakes_a_group_when_and_by_what_was_said(daemon: Daemon) -> None:
    now_ms = time.time_ns() // 1_000_000
    due_ms = now_ms + 3000
    old, new = due_ms - HOUR_MS, now_ms
    configs = {"retention.ms": str(HOUR_MS)}
    asyncio.run(fill(daemon, "overtaken", [old] * 4 + [new] * 2, configs, committed=1))
    (found,) = as_json(daemon, "overtaken-readers")["partitions"]
    assert (found["verdict"], found["lag_records"], found["lost_records"]) == ("overtaken", 5, 0)
    assert found["lag_bytes"] == 5 * BATCH_BYTES
    assert (found["at_risk_records"], found["overtaken_earliest_ms"], found["rule"]) == (1, due_ms + 1, "retention.ms")
    assert HOUR_MS - 3000 <= found["lag_ms"] < HOUR_MS + 60_000
    lines = explain(daemon, "overtaken-readers").stdout
    assert "retention deletes 1 unread record, up to offset 1, in " in lines
    asyncio.run(commit(daemon, "boundary", "overtaken", 2))
    (beside,) = as_json(daemon, "boundary")["partitions"]
    assert (beside["at_risk_records"], beside["deletions"][0]["end_offset"]) == (2, 4)
    at_risk = [each["end_offset"] for each in found["deletions"] if each["earliest_ms"] == due_ms + 1]
    assert at_risk == [2, 4]

    def lost() -> Any:
        (found,) = as_json(daemon, "overtaken-readers")["partitions"]
        return found if found["verdict"] == "lost" else None

    after = eventually(lost, what="retention overtakes the group")
    assert time.time_ns() // 1_000_000 > due_ms
    assert (after["log_start_offset"], after["lost_records"], after["at_risk_records"]) == (4, 3, 2)
    assert "3 records from 1 to 3 are deleted unread" in explain(daemon, "overtaken-readers").stdout


def test_a_group_that_retention_does_not_overtake(daemon: Daemon) -> None:
    now_ms = time.time_ns() // 1_000_000
    asyncio.run(fill(daemon, "kept", [now_ms] * 3, {"retention.ms": "-1"}, committed=2))
    (found,) = as_json(daemon, "kept-readers")["partitions"]
    assert (found["verdict"], found["lag_records"], found["overtaken_earliest_ms"]) == ("kept", 1, None)
    assert "retention deletes none of them" in explain(daemon, "kept-readers").stdout


def test_members_that_come_and_go_are_in_the_history(daemon: Daemon) -> None:
    async def read() -> None:
        config = ConsumerConfig(bootstrap=daemon.bootstrap, group="comers", offset_reset="earliest")
        async with Consumer(config) as consumer:
            await consumer.subscribe(["came"])
            assert len(await consumer.poll(timeout_ms=30_000)) == 1

    asyncio.run(fill(daemon, "came", [1], {"retention.ms": "-1"}, committed=0))
    asyncio.run(read())
    found = as_json(daemon, "comers")
    assert (found["state"], found["type"], found["members"]) == ("Empty", "Classic", [])
    assert [each["kind"] for each in found["events"]] == [
        "joined",
        "rebalance_began",
        "stable",
        "left",
        "rebalance_began",
        "empty",
    ]
    text = explain(daemon, "comers").stdout
    assert "@127.0.0.1 (" in text
    assert text.rstrip().endswith("the group is empty")


def test_an_unknown_group_is_refused(daemon: Daemon) -> None:
    refused = explain(daemon, "nobody")
    assert (refused.exit_code, "there is no group nobody" in refused.stderr) == (1, True)


@pytest.mark.parametrize(
    ("committed", "start", "end", "deletions", "verdict", "at_risk", "lost"),
    [
        (10, 0, 10, [], Verdict.CAUGHT_UP, 0, 0),
        (3, 0, 10, [Deletion(5, None, None, None)], Verdict.KEPT, 0, 0),
        (3, 0, 10, [Deletion(5, NOW_MS + 7, NOW_MS + 9, "retention.bytes")], Verdict.OVERTAKEN, 2, 0),
        (3, 0, 10, [Deletion(15, NOW_MS, NOW_MS, "retention.ms")], Verdict.OVERTAKEN, 7, 0),
        (3, 5, 10, [Deletion(8, NOW_MS, NOW_MS, "retention.ms")], Verdict.LOST, 3, 2),
        (3, 10, 10, [], Verdict.LOST, 0, 7),
        (3, 0, 10, [], Verdict.UNKNOWN, 0, 0),
    ],
)
def test_the_verdict_on_a_partition(
    committed: int, start: int, end: int, deletions: list[Deletion], verdict: Verdict, at_risk: int, lost: int
) -> None:
    lag = PartitionLag("t", 0, committed, 0, start, end, 1, NOW_MS - 5, deletions)
    found = explain_partition(lag, now_ms=NOW_MS)
    assert (found.verdict, found.at_risk, found.lost, found.lag_ms) == (verdict, at_risk, lost, 5)
