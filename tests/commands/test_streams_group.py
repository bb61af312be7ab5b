"""`barnabas group describe` of a streams group, against a real daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from barnabas.commands.main import main
from tests.support.daemon import Daemon, start_daemon
from tests.support.groups.streams_requests import (
    REPARTITION,
    SETTINGS,
    SOURCE,
    Member,
    create_topic,
    settled,
    subtopology,
    topology,
)
from tests.support.kafka.kafka_wire import KafkaWire


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with start_daemon(tmp_path, *(f"{name}={value}" for name, value in SETTINGS.items())) as broker:
        yield broker


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


def run(daemon: Daemon, *words: str) -> str:
    result = CliRunner().invoke(main, [*words, "--bootstrap", daemon.bootstrap])
    assert result.exit_code == 0, result.output
    return result.output


def describe(daemon: Daemon, group: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(daemon, "group", "describe", group, "--json"))
    return found


def test_members_are_shown_with_their_tasks_and_partitions(daemon: Daemon, kafka: KafkaWire) -> None:
    create_topic(kafka, SOURCE, 2)
    a, b = Member(kafka, "app", "a"), Member(kafka, "app", "b")
    a.join()
    settled(a, lambda _: set(a.active) == {"0", "1"})
    b.join()
    while not (len(a.active.get("0", ())) == len(b.active.get("0", ())) == 1):
        a.report()
        b.report()
    tasks = {"a": f"{a.active['0'][0]}", "b": f"{b.active['0'][0]}"}
    lines = [line.split() for line in run(daemon, "group", "describe", "app").splitlines()]
    client = "wire@127.0.0.1"
    for topic in (SOURCE, REPARTITION):
        for number in "01":
            assert [topic, number, "-", "0", "-", client] in lines, lines
    for name, number in tasks.items():
        assert any(line[:3] == [name, client, f"0_{number},"] for line in lines), lines
    found = describe(daemon, "app")
    assert (found["type"], found["state"]) == ("Streams", "Stable")
    members = {each["member_id"]: each for each in found["members"]}
    assert members["a"]["active_tasks"][0] == f"0_{tasks['a']}"
    assert (members["a"]["partitions"], members["a"]["process_id"]) == (4 - members["b"]["partitions"], "process-a")
    readers = {each["partition"]: each["member_id"] for each in found["partitions"] if each["topic"] == SOURCE}
    assert readers == {int(number): name for name, number in tasks.items()}
    for member in (a, b):
        member.leave()
    empty = describe(daemon, "app")
    assert (empty["state"], empty["members"], empty["partitions"]) == ("Empty", [], [])


def test_a_topic_with_fewer_partitions_than_tasks_has_no_rows_for_the_others(daemon: Daemon, kafka: KafkaWire) -> None:
    create_topic(kafka, "wide", 3)
    create_topic(kafka, "narrow", 1)
    member = Member(kafka, "joined", "a")
    member.join(topology={**topology(), "subtopologies": [subtopology("0", ["wide", "narrow"])]})
    settled(member, lambda _: member.active.get("0") == (0, 1, 2))
    rows = [(each["topic"], each["partition"]) for each in describe(daemon, "joined")["partitions"]]
    assert rows == [("narrow", 0), ("wide", 0), ("wide", 1), ("wide", 2)]
