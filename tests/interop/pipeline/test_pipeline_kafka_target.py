"""`exactlyOnce=transactions` with protocol=kafka against Apache Kafka 4.3: timeouts, a batch, and killed drivers.

The coordinator's rules about epochs depend on the finalized transaction.version, so attempts are tried at both levels.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from barnabas import ProducerConfig
from barnabas.clients.errors import PreparedTransactionLostError
from barnabas.clients.producer.prepared import PreparedTransaction
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.sink.decisions import commit_run, recover
from barnabas.pipeline.sink.kafka.attempt import write_prepared
from barnabas.pipeline.sink.kafka.transactions import KafkaTransactions
from barnabas.pipeline.sink.rows import SinkRecord
from barnabas.pipeline.sink.run_files import Commit, TransactionFiles, WrittenBatch
from barnabas.pipeline.sink.transactional_task import Attempt, Prepared
from tests.support.kafka.apache_kafka import Broker, Kafka
from tests.support.spark.driver_kills import STEPS, driver_kills_done
from tests.support.spark.pipeline_driver import LOCAL_MASTER, Driver
from tests.support.spark.pipeline_kills import TaskKills
from tests.support.spark.session import running_spark

pytestmark = pytest.mark.timeout(1200)

VERSION = "4.3.0"
PARTITIONS = 3
ROWS = 500
END_TIMEOUT_S = 600
WAIT_S = 30.0


class Target:
    """A running Kafka, and the names of its topics."""

    def __init__(self, kafka: Kafka, broker: Broker) -> None:
        self._kafka = kafka
        self.bootstrap = broker.bootstrap
        self.config = ProducerConfig(bootstrap=broker.bootstrap)

    def create_topic(self) -> str:
        """Create a topic with a new name."""
        name = f"topic-{uuid.uuid4().hex}"
        self._kafka.tool(
            "org.apache.kafka.tools.TopicCommand",
            *("--bootstrap-server", self.bootstrap, "--create", "--topic", name, "--partitions", str(PARTITIONS)),
        )
        return name

    def prepare(self, topic: str, name: str, *values: str, timeout_ms: int = 60_000) -> Prepared:
        """Write records in a transaction that stays open."""
        records = [SinkRecord(topic, None, value.encode(), [], None, None) for value in values]
        return write_prepared(self.config, timeout_ms, records, Attempt(0, name), None)

    def end(self, work: Callable[[KafkaTransactions], Coroutine[Any, Any, None]]) -> None:
        """Run requests about transactions."""

        async def run() -> None:
            async with KafkaTransactions(self.config) as transactions:
                await work(transactions)

        asyncio.run(run())

    def values(self, topic: str) -> list[str]:
        """Return the committed values, sorted."""
        return sorted(read_topic(self.bootstrap, topic, "read_committed"))

    def is_held_back(self, topic: str) -> bool:
        """Whether a transaction is open in the topic."""
        return last_offsets(self.bootstrap, topic, "read_committed") != last_offsets(
            self.bootstrap, topic, "read_uncommitted"
        )


def consumer_of(bootstrap: str, isolation: str) -> Consumer:
    settings = {"group.id": "unused", "enable.auto.commit": False, "enable.partition.eof": True}
    return Consumer({"bootstrap.servers": bootstrap, "isolation.level": isolation, **settings})


def read_topic(bootstrap: str, topic: str, isolation: str) -> list[str]:
    """Return all values up to the last stable offset or the end."""
    consumer = consumer_of(bootstrap, isolation)
    values, left = [], set(range(PARTITIONS))
    deadline = time.monotonic() + WAIT_S
    try:
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
        while left:
            assert time.monotonic() < deadline, f"partitions {left} of {topic} were not read to their end"
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error() is not None:
                left.discard(message.partition() or 0)
            else:
                values.append((message.value() or b"").decode())
    finally:
        consumer.close()
    return values


def last_offsets(bootstrap: str, topic: str, isolation: str) -> list[int]:
    """Return each partition's last stable offset, or its high watermark."""
    consumer = consumer_of(bootstrap, isolation)
    try:
        found = [
            consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=WAIT_S)
            for number in range(PARTITIONS)
        ]
    finally:
        consumer.close()
    return [high for _, high in found]


def running_kafka(root: Path, *format_arguments: str) -> Iterator[Target]:
    kafka = Kafka(
        VERSION,
        root / "data",
        root / "kafka",
        transaction_abort_timed_out_transaction_cleanup_interval_ms="100",
    )
    kafka.format(*format_arguments)
    with kafka.running() as broker:
        yield Target(kafka, broker)


@pytest.fixture(scope="module", params=[0, 2])
def target_at_level(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    root = tmp_path_factory.mktemp("levels")
    yield from running_kafka(root, "--feature", f"transaction.version={request.param}")


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    yield from running_kafka(tmp_path_factory.mktemp("target"))


def test_attempts_are_committed_repeatedly_and_aborted(target_at_level: Target) -> None:
    target = target_at_level
    topic = target.create_topic()
    for number in range(3):  # the same transactional id, as in successive micro-batches
        prepared = target.prepare(topic, f"{topic}-id", f"committed {number}").transaction
        assert prepared is not None
        target.end(lambda transactions, prepared=prepared: commit_twice(transactions, prepared))  # type: ignore[misc]
    target.prepare(topic, f"{topic}-id", "aborted")
    assert target.is_held_back(topic)
    target.end(lambda transactions: transactions.abort(f"{topic}-id"))
    target.end(lambda transactions: transactions.abort(f"{topic}-id"))
    assert target.values(topic) == ["committed 0", "committed 1", "committed 2"]
    assert not target.is_held_back(topic)


async def commit_twice(transactions: KafkaTransactions, prepared: PreparedTransaction) -> None:
    """Commit as two drivers do, the second one without knowing of the first."""
    await transactions.ensure_open([prepared])
    await transactions.commit(prepared)
    await transactions.commit(prepared)
    with pytest.raises(PreparedTransactionLostError):
        await transactions.ensure_open([prepared])


@pytest.mark.parametrize("decided", [False, True])
def test_the_timeout_bounds_the_time_to_decide(target_at_level: Target, tmp_path: Path, decided: bool) -> None:
    target = target_at_level
    topic = target.create_topic()
    prepared = target.prepare(topic, f"{topic}-id", "too late", timeout_ms=1000)
    transaction = prepared.transaction
    assert transaction is not None
    deadline = time.monotonic() + WAIT_S
    while target.is_held_back(topic):
        assert time.monotonic() < deadline, "Kafka has not aborted the transaction"
        time.sleep(0.1)  # polling another process with a deadline
    files = TransactionFiles(str(tmp_path))
    run = files.run("r")
    run.begin(prepared.cluster)
    run.register(0, "a", transaction.transactional_id)
    commit = Commit(WrittenBatch(0, "q", prepared.cluster), (transaction,))
    if decided:
        run.decide(commit)
        with pytest.raises(PipelineError, match="rows of a micro-batch are missing"):
            target.end(lambda transactions: recover(files, transactions))
    else:
        with pytest.raises(PipelineError, match="start the query again to repeat it"):
            target.end(lambda transactions: commit_run(files, run, commit, transactions))
        target.end(lambda transactions: recover(files, transactions))
    assert target.values(topic) == []


def test_a_batch_is_written_once_however_often_it_is_run(target: Target, tmp_path: Path) -> None:
    topic = target.create_topic()
    with running_spark(tmp_path / "spark") as spark:
        for _ in range(2):
            (
                spark.range(0, ROWS, 1, 4)
                .selectExpr("cast(id as string) as key", "cast(id as string) as value")
                .write.format("barnabas")
                .option("kafka.bootstrap.servers", target.bootstrap)
                .option("topic", topic)
                .option("exactlyOnce", "transactions")
                .option("protocol", "kafka")
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
                .mode("append")
                .save()
            )
    assert target.values(topic) == sorted(str(number) for number in range(ROWS))
    assert not target.is_held_back(topic)


def test_a_stream_whose_driver_is_killed_at_each_step_of_a_commit(target: Target, tmp_path: Path) -> None:
    """After the shuffle of dropDuplicates, rows carry a random number: a replay's rows differ from the first ones."""
    topic = target.create_topic()
    source = tmp_path / "in"
    source.mkdir()
    keys = [f"{batch}-{number}" for batch in range(len(STEPS)) for number in range(ROWS)]
    for batch in range(len(STEPS)):
        lines = keys[: (batch + 1) * ROWS]  # with the keys of all earlier files
        (source / f"{batch}.json").write_text("".join(json.dumps({"key": key}) + "\n" for key in lines))
    kills = TaskKills(tmp_path / "kills", {}, {str(batch): [step] for batch, step in enumerate(STEPS)})
    work = {
        "work": "distinct",
        "bootstrap": target.bootstrap,
        "source": str(source),
        "checkpoint": str(tmp_path / "checkpoint"),
        "topic": topic,
        "protocol": "kafka",
        "master": LOCAL_MASTER,
    }
    log = tmp_path / "log"
    for number in range(len(STEPS) + 1):
        driver = Driver(work, log, kills.directory)
        try:
            assert driver.ends_within(END_TIMEOUT_S), log.read_text(errors="replace")[-4000:]
            if number == len(STEPS):
                driver.wait(END_TIMEOUT_S)
        finally:
            driver.kill()
        killed = min(number + 1, len(STEPS))
        assert len(driver_kills_done(kills.directory)) == killed, log.read_text(errors="replace")[-4000:]
    assert driver_kills_done(kills.directory) == set(STEPS)
    assert sorted(value.partition(":")[0] for value in target.values(topic)) == sorted(keys)
    assert not target.is_held_back(topic)
