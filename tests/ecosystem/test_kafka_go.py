"""kafka-go of Segment: a writer, and a reader in a group."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.building import built, need, run_step
from tests.support.daemon import Daemon
from tests.support.ecosystem.exchange import Client, survive_kills

PROJECT = Path(__file__).parent / "kafka_go"


@pytest.fixture(scope="module")
def client() -> Client:
    need("go", "kafka-go")

    def build(directory: Path) -> None:
        run_step(["nice", "go", "build", "-o", str(directory / "deliveries"), "."], PROJECT)

    program = str(built("kafka-go", sorted(PROJECT.iterdir()), build) / "deliveries")
    return Client([program, "produce"], [program, "consume"])


@pytest.mark.ecosystem("kafka-go", "v0.4.51", "writer with acks=all, reader in a group")
def test_kafka_go_delivers_everything_when_the_broker_is_killed(daemon: Daemon, client: Client, tmp_path: Path) -> None:
    survive_kills(daemon, client, tmp_path)
