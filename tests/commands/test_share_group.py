"""`barnabas group` and `explain group` of share groups, against a real daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from barnabas.commands.main import main
from tests.support.daemon import Daemon, start_daemon
from tests.support.groups.share_groups import alter, create, heartbeat, joined
from tests.support.kafka.kafka_wire import KafkaWire


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with start_daemon(tmp_path) as broker:
        yield broker


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


def test_a_share_group_is_listed_described_explained_and_deleted(daemon: Daemon, kafka: KafkaWire) -> None:
    def run(*words: str) -> str:
        result = CliRunner().invoke(main, [*words, "--bootstrap", daemon.bootstrap])
        return result.output

    create(kafka, "jobs", 2)
    alter(kafka, "workers", "jobs", p0=0)
    joined(kafka, "workers", "m", "jobs")
    assert [line.split() for line in run("group", "list").splitlines() if "workers" in line] == [
        ["workers", "Stable", "Share"]
    ]
    described = run("group", "describe", "workers")
    assert described.startswith("share group workers, Stable, 1 member")
    assert ["jobs", "0", "0", "0", "wire@127.0.0.1"] in [line.split() for line in described.splitlines()]
    found = json.loads(run("group", "describe", "workers", "--json"))
    assert (found["type"], found["state"], found["members"][0]["member_id"]) == ("Share", "Stable", "m")
    explained = run("explain", "group", "workers")
    assert "group workers (share) is Stable" in explained
    assert "`barnabas group describe workers`" in explained
    assert "joined" in explained
    assert "is a share group" in run("group", "reset-offsets", "workers", "--topic", "jobs", "--to-earliest")
    heartbeat(kafka, "workers", "m", -1)
    assert run("group", "delete", "workers") == "deleted group workers\n"
    assert "workers" not in run("group", "list")
