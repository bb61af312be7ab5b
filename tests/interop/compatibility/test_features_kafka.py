"""kafka-features prints the same for Barnabas and for Kafka: describe, upgrade, downgrade, disable, refusals."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.daemon import start_daemon
from tests.support.kafka.apache_kafka import Kafka, KafkaError

pytestmark = pytest.mark.timeout(300)  # two JVM starts for each command
COMPARED = ("metadata.version", "transaction.version")
COMMANDS = (
    ("describe",),
    ("upgrade", "--feature", "transaction.version=5"),
    ("upgrade", "--feature", "transaction.version=1"),
    ("upgrade", "--feature", "what.version=1", "--feature", "transaction.version=2"),
    ("downgrade", "--metadata", "3.5-IV2"),
    ("downgrade", "--feature", "transaction.version=1", "--dry-run"),
    ("disable", "--feature", "transaction.version"),
    ("describe",),
    ("upgrade", "--feature", "metadata.version=30", "--feature", "transaction.version=2"),
    ("describe",),
)


@pytest.fixture
def kafka(tmp_path: Path) -> Kafka:
    kafka = Kafka("4.3.0", tmp_path / "kafka", tmp_path / "scratch")
    kafka.format("--release-version", "3.7", "--feature", "transaction.version=2")
    return kafka


def ask(kafka: Kafka, bootstrap: str, command: tuple[str, ...]) -> str:
    """Return what the tool prints; of a description only the features that both serve, without the epoch."""
    try:
        said = kafka.tool("org.apache.kafka.tools.FeatureCommand", "--bootstrap-server", bootstrap, *command)
    except KafkaError as error:
        said = str(error).partition("--- output\n")[2]
    if command == ("describe",):
        lines = (line.partition("Epoch:")[0] for line in said.splitlines())
        return "\n".join(line for line in lines if any(f" {name} " in line for name in COMPARED))
    return re.sub(r"^SLF4J.*\n|^\[.*\n", "", said, flags=re.MULTILINE)


def test_kafka_features_prints_the_same_for_both(kafka: Kafka, tmp_path: Path) -> None:
    with kafka.running() as theirs, start_daemon(tmp_path / "ours") as ours:
        for command in COMMANDS:
            assert ask(kafka, ours.bootstrap, command) == ask(kafka, theirs.bootstrap, command), command
        last = ask(kafka, ours.bootstrap, ("describe",))
    found = dict(re.findall(r"Feature: (\S+) .*FinalizedVersionLevel: (\S+)", last))
    assert found == {"metadata.version": "4.3-IV0", "transaction.version": "2"}
