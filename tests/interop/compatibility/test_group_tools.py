"""Kafka's tools on groups in Barnabas: kafka-consumer-groups, its offsets decoder, its consumer performance test.

With BARNABAS_COMPATIBILITY_BROKER=kafka:4.3.0 they run against Apache Kafka, which checks the tests (see test_clients).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from barnabas.broker.coordinator_log.topic import partition_of
from barnabas.protocol.topic_name import OFFSETS_TOPIC
from tests.interop.clients.features import plain
from tests.interop.clients.target import Target
from tests.interop.conftest import Tool
from tests.support.groups.group_members import PARTITIONS, RECORDS_PER_PARTITION, Group

GROUPS = "consumer.group.ConsumerGroupCommand"
MEMBER = [sys.executable, "-m", "tests.support.groups.group_member", "confluent"]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as members:
        yield members


def rows(printed: str, first: str) -> list[list[str]]:
    """Return the rows of a printed table whose first column is `first`."""
    return [line.split() for line in printed.splitlines() if line.split()[:1] == [first]]


def test_a_group_with_members_is_listed_and_described_and_not_reset_nor_deleted(
    target: Target, tool: Tool, stack: ExitStack
) -> None:
    target.create_topic("live", PARTITIONS)
    group = Group(target.bootstrap, "live", "live-group", stack)
    group.wait_for_all_to_read([group.come(MEMBER), group.come(MEMBER)])
    group.produce_and_wait()
    server = ("--bootstrap-server", target.bootstrap)
    chosen = (*server, "--group", "live-group")

    assert ["live-group", "Stable"] in [
        row[:1] + row[-1:] for row in rows(tool(GROUPS, *server, "--list", "--state"), "live-group")
    ]
    members = rows(tool(GROUPS, *chosen, "--describe", "--members", "--verbose"), "live-group")
    assert sorted((row[4], row[6]) for row in members) == [("3", "live:0,1,2"), ("3", "live:3,4,5")]
    offsets = rows(tool(GROUPS, *chosen, "--describe"), "live-group")
    assert [(row[1], row[2], row[5]) for row in sorted(offsets)] == [
        ("live", str(each), "0") for each in range(PARTITIONS)
    ]
    (state,) = rows(tool(GROUPS, *chosen, "--describe", "--state"), "live-group")
    assert (state[-2:], state[-3]) == (["Stable", "2"], "range")
    refused = tool(GROUPS, *chosen, "--reset-offsets", "--topic", "live", "--to-earliest", "--execute")
    assert "inactive" in refused
    assert "The group is not empty" in tool(GROUPS, *chosen, "--delete")


def test_offsets_are_reset_every_way_and_deleted_and_the_group_with_them(
    target: Target, tool: Tool, stack: ExitStack
) -> None:
    target.create_topic("reset", PARTITIONS)
    group = Group(target.bootstrap, "reset", "reset-group", stack)
    first = group.come(MEMBER)
    group.produce_and_wait(by=[first])
    group.produce_and_wait()
    first.leave()
    chosen = ("--bootstrap-server", target.bootstrap, "--group", "reset-group")
    latest = 2 * RECORDS_PER_PARTITION

    def reset(*how: str) -> set[str]:
        printed = tool(GROUPS, *chosen, "--reset-offsets", "--topic", "reset", *how)
        found = [row for row in rows(printed, "reset-group") if row[1] == "reset"]
        assert len(found) == PARTITIONS, printed
        return {row[3] for row in found}

    assert reset("--to-earliest", "--dry-run") == {"0"}
    assert reset("--to-current", "--dry-run") == {str(latest)}
    assert reset("--shift-by", "-5", "--execute") == {str(latest - 5)}
    assert reset("--by-duration", "PT1H", "--execute") == {"0"}
    assert reset("--to-datetime", "2099-01-01T00:00:00.000", "--execute") == {str(latest)}
    assert reset("--to-offset", "7", "--execute") == {"7"}
    second = group.come(MEMBER)
    group.produce_and_wait(by=[second])
    assert len(second.got) == (latest - 7 + RECORDS_PER_PARTITION) * PARTITIONS
    second.leave()

    tool(GROUPS, *chosen, "--delete-offsets", "--topic", "reset:0")
    described = rows(tool(GROUPS, *chosen, "--describe"), "reset-group")
    assert sorted(row[2] for row in described) == [str(each) for each in range(1, PARTITIONS)]
    segments = target.log_directory / f"{OFFSETS_TOPIC}-{_partition(target, 'reset-group')}"
    decoded = tool("DumpLogSegments", "--offsets-decoder", "--files", str(segments / f"{0:020d}.log"))
    assert '"group":"reset-group"' in decoded
    assert '"protocol":"range"' in decoded
    assert "Could not deserialize" not in decoded
    assert "was successful" in tool(GROUPS, *chosen, "--delete")
    assert "reset-group" not in tool(GROUPS, *chosen[:2], "--list").split()


def test_the_consumer_performance_test_reads_all_in_a_group(target: Target, tool: Tool) -> None:
    target.create_topic("perf", 1)
    target.fill("perf", plain(500))

    printed = tool(
        "ConsumerPerformance",
        *("--bootstrap-server", target.bootstrap, "--topic", "perf", "--group", "perf-group"),
        *("--num-records", "500", "--timeout", "30000"),
    )

    head, values = (line.split(", ") for line in printed.splitlines() if ", " in line)
    assert dict(zip(head, values, strict=True))["data.consumed.in.nMsg"] == "500"


def _partition(target: Target, group: str) -> int:
    return partition_of(group, len(list(target.log_directory.glob(f"{OFFSETS_TOPIC}-*"))))
