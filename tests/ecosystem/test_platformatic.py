"""@platformatic/kafka, a client for Node in TypeScript: promises, and messages as a stream."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.building import built, need, run_step
from tests.support.daemon import Daemon
from tests.support.ecosystem.exchange import Client, survive_kills

PROJECT = Path(__file__).parent / "platformatic"


@pytest.fixture(scope="module")
def client() -> Client:
    need("node", "@platformatic/kafka")
    need("npm", "@platformatic/kafka")
    sources = [PROJECT / name for name in ("deliveries.js", "package.json", "package-lock.json")]

    def install(directory: Path) -> None:
        for source in sources:
            shutil.copy(source, directory)
        run_step(["nice", "npm", "ci", "--no-audit", "--no-fund"], directory)

    program = str(built("platformatic", sources, install) / "deliveries.js")
    return Client(["node", program, "produce"], ["node", program, "consume"])


@pytest.mark.ecosystem(
    "@platformatic/kafka",
    "1.35.0",
    "producer, and a stream of messages in a group",
    "a new Consumer after an error of the stream: this client misreads the answer to a fetch after a restart of the "
    "broker, with Apache Kafka 4.3.0 too",
)
def test_platformatic_kafka_delivers_everything_when_the_broker_is_killed(
    daemon: Daemon, client: Client, tmp_path: Path
) -> None:
    survive_kills(daemon, client, tmp_path)
