"""Directories with transactions change hands: Kafka 4.3, Barnabas and Kafka 3.9 finish what they find.

One transaction is committed, one open and one prepared when the first program is killed. The second program keeps the
first, aborts the second when it times out, and commits the third. Kafka 3.9 has no transaction.version above 0, so
`barnabas handover` lowers it once no transaction is open or prepared.
"""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka import Producer as ConfluentProducer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas import Producer, ProducerConfig
from barnabas.commands.main import main
from tests.support.eventually import eventually
from tests.support.kafka.apache_kafka import Broker, Kafka, KafkaError
from tests.support.kafka.turns import BarnabasTurns, KafkaTurns, Program
from tests.support.transactions.prepared_files import prepare_commit

pytestmark = pytest.mark.timeout(300)  # many JVM starts in sequence, on machines of any speed
TOPIC = "ledger"
NEW, OLD = "4.3.0", "3.9.1"
BY_HAND = [each for each in os.environ.get("BARNABAS_INTEROP_TURNS", "").split() if each.startswith("3.")]
"""Further versions, as in test_turns."""


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


@pytest.mark.parametrize("version", [OLD, *BY_HAND])
def test_kafka_3_continues_with_transactions_of_4_3_after_a_handover(tmp_path: Path, version: str) -> None:
    directory = tmp_path / "data"
    new = Kafka(NEW, directory, tmp_path / "new")
    new.format("--release-version", "3.7", "--feature", "transaction.version=2")
    with new.running() as broker:
        create_topic(new, broker)
        new.java_program("WriteTransactions", broker.bootstrap, TOPIC, "3", "finish")
        written = committed(new, broker.bootstrap)
        finished = states(new, broker.bootstrap)
    assert finished == {"first": "CompleteCommit", "second": "CompleteAbort"}

    old = Kafka(version, directory, tmp_path / "old")
    with pytest.raises(KafkaError, match=r"FeatureLevelRecord|transaction\.version"):
        old.start()
    dry = handover(directory, version)
    assert f"transaction.version 2 -> 0 (required by Apache Kafka {version})\n" in dry.stdout
    done = handover(directory, version, "--execute")
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


IDS = ("committed", "open", "prepared")
OPEN_MS = 8_000
"""Long enough for the first program to be killed before, short enough to wait for."""
QUICK = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "transaction.state.log.num.partitions": "1",
}
WAIT_S = 30


def write_with_librdkafka(bootstrap: str) -> list[ConfluentProducer]:
    """Leave one transaction committed and two open, in the protocol before KIP-890."""
    producers = []
    for name in IDS:
        settings = {"bootstrap.servers": bootstrap, "transactional.id": name, "transaction.timeout.ms": OPEN_MS}
        producer = ConfluentProducer(settings)
        producer.init_transactions(WAIT_S)
        producer.begin_transaction()
        producer.produce(TOPIC, name, partition=0)
        assert producer.flush(WAIT_S) == 0
        if name == "committed":
            producer.commit_transaction(WAIT_S)
        producers.append(producer)
    return producers


async def write_with_our_client(bootstrap: str) -> list[Producer]:
    """Leave one transaction committed and two open, with an epoch for each transaction."""
    producers = []
    for name in IDS:
        producer = Producer(ProducerConfig(bootstrap=bootstrap, transactional_id=name, transaction_timeout_ms=OPEN_MS))
        await producer.start()
        await producer.begin_transaction()
        await producer.send_and_wait(TOPIC, name.encode(), partition=0)
        if name == "committed":
            await producer.commit_transaction()
        producers.append(producer)
    return producers


def read_committed(bootstrap: str) -> list[str] | None:
    """Return the committed values, None while an open transaction holds the reader back."""
    partition = TopicPartition(TOPIC, 0, 0)
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False}
    raw = Consumer({**settings, "isolation.level": "read_uncommitted"})
    committed = Consumer({**settings, "isolation.level": "read_committed", "enable.partition.eof": True})
    try:
        _, end = raw.get_watermark_offsets(partition, timeout=WAIT_S)
        _, stable = committed.get_watermark_offsets(partition, timeout=WAIT_S)
        if stable < end:
            return None
        committed.assign([partition])
        values: list[str] = []
        while (message := committed.poll(WAIT_S)) is not None and message.error() is None:
            values.append((message.value() or b"").decode())
        return values
    except KafkaException:
        return None
    finally:
        raw.close()
        committed.close()


@pytest.mark.parametrize(
    ("first", "second", "level"),
    [("barnabas", NEW, 2), ("barnabas", OLD, 0), (NEW, "barnabas", 2), (OLD, "barnabas", 0)],
)
async def test_the_next_program_finishes_open_and_prepared_transactions(
    tmp_path: Path, first: str, second: str, level: int
) -> None:
    version = second if first == "barnabas" else first
    directory = tmp_path / "data"
    with (
        KafkaTurns(version, [directory], tmp_path / "kafka") as kafka,
        BarnabasTurns([directory], tmp_path / "barnabas") as barnabas,
    ):
        kafka.kafka.settings |= QUICK
        barnabas.process.settings |= {**QUICK, "initial.features": f"transaction.version={level}"}
        programs: list[Program] = [barnabas, kafka]
        if first != "barnabas":
            programs.reverse()
            kafka.format()
        address = programs[0].start()
        admin = AdminClient({"bootstrap.servers": address.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(WAIT_S)
        ours: list[Producer] = []
        theirs: list[ConfluentProducer] = []
        if level and first == "barnabas":
            ours = await write_with_our_client(address.bootstrap)
        else:
            theirs = write_with_librdkafka(address.bootstrap)
        programs[0].end(killed=True)
        for producer in ours:
            await producer.close(timeout_ms=0)
        del theirs  # no earlier: a producer that is collected aborts its transaction
        prepare_commit(directory, "prepared", transaction_version=level)

        address = programs[1].start()
        bootstrap = address.bootstrap
        found = eventually(lambda: read_committed(bootstrap), what="the end of all transactions", timeout_s=WAIT_S * 2)
        assert found == ["committed", "prepared"]
        expected = {"committed": "CompleteCommit", "open": "CompleteAbort", "prepared": "CompleteCommit"}
        assert states(kafka.kafka, bootstrap) == expected
        programs[1].end(killed=False)
