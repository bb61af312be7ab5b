"""Directories with transactions change hands: Kafka 4.3, Barnabas and Kafka 3.9 finish what they find.

Kafka 3.9 has no transaction.version above 0, so `barnabas handover` lowers it once no transaction is open or prepared.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from barnabas.commands.main import main
from tests.support.kafka.apache_kafka import Broker, Kafka, KafkaError

pytestmark = pytest.mark.timeout(300)  # many JVM starts in sequence, on machines of any speed
TOPIC = "ledger"
NEW, OLD = "4.3.0", "3.9.1"


def create_topic(kafka: Kafka, broker: Broker) -> None:
    command = ("--bootstrap-server", broker.bootstrap, "--create", "--topic", TOPIC, "--partitions", "1")
    kafka.tool("org.apache.kafka.tools.TopicCommand", *command)


def committed(kafka: Kafka, bootstrap: str) -> list[bytes]:
    lines = kafka.java_program("ReadBack", bootstrap, "--committed", TOPIC).splitlines()
    return [base64.b64decode(line.split("\t")[6]) for line in lines]


def states(kafka: Kafka, bootstrap: str) -> dict[str, str]:
    """Return the states of transactional ids as kafka-transactions lists them."""
    command = ("--bootstrap-server", bootstrap, "list")
    listed = kafka.tool("org.apache.kafka.tools.TransactionsCommand", *command)
    return dict(re.findall(r"^(\S+)\s+\d+\s+\d+\s+(\w+)\s*$", listed, re.MULTILINE))


def handover(directory: Path, version: str, *options: str) -> Result:
    return CliRunner().invoke(main, ["handover", str(directory), "--kafka-version", version, *options])


def test_kafka_3_9_continues_with_transactions_of_4_3_after_a_handover(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    new = Kafka(NEW, directory, tmp_path / "new")
    new.format("--release-version", "3.7", "--feature", "transaction.version=2")
    with new.running() as broker:
        create_topic(new, broker)
        new.java_program("WriteTransactions", broker.bootstrap, TOPIC, "3", "finish")
        written = committed(new, broker.bootstrap)
        finished = states(new, broker.bootstrap)
    assert finished == {"first": "CompleteCommit", "second": "CompleteAbort"}

    old = Kafka(OLD, directory, tmp_path / "old")
    with pytest.raises(KafkaError, match="Tried to apply FeatureLevelRecord"):
        old.start()
    dry = handover(directory, OLD)
    assert "transaction.version 2 -> 0 (required by Apache Kafka 3.9.1)\n" in dry.stdout
    done = handover(directory, OLD, "--execute")
    assert done.exit_code == 0, done.output
    with old.running() as broker:
        assert committed(old, broker.bootstrap) == written
        assert states(old, broker.bootstrap) == finished
        old.java_program("WriteTransactions", broker.bootstrap, TOPIC, "2", "finish")
        more = committed(old, broker.bootstrap)
        assert more[: len(written)] == written
        assert len(more) > len(written)
    with new.running() as broker:
        assert committed(new, broker.bootstrap) == more
