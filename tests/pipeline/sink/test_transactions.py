"""Writes with exactlyOnce=transactions to a real broker: batches, micro-batches, failing tasks, and replays."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from barnabas.pipeline.sink.options import sink_options
from barnabas.pipeline.sink.transactional_write import TransactionalWrite
from barnabas.pipeline.spark.failures import sentence_of
from tests.support.daemon import Daemon, start_daemon
from tests.support.topics import create_topics, has_open_transactions, read_committed_topic

PARTITIONS = 2
STREAM_TIMEOUT_S = 90


@pytest.fixture(scope="module")
def patient_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Start a broker with two-phase commit."""
    with start_daemon(tmp_path_factory.mktemp("patient"), "transaction.two.phase.commit.enable=true") as running:
        yield running


def write(frame: DataFrame, daemon: Daemon, topic: str, **options: str) -> None:
    writer = frame.write.format("barnabas").option("kafka.bootstrap.servers", daemon.bootstrap)
    writer.option("topic", topic).option("exactlyOnce", "transactions").options(**options).mode("append").save()


def numbers(spark: SparkSession, count: int, tasks: int = 3) -> DataFrame:
    """Return rows whose order and number of tasks are not those of another run, behind a shuffle."""
    return spark.range(count).repartition(tasks, sf.rand()).select(sf.col("id").cast("string").alias("value"))


async def committed(daemon: Daemon, topic: str) -> list[int]:
    assert not await has_open_transactions(daemon.bootstrap, topic, PARTITIONS)
    return sorted(
        int(record.value or b"") for record in await read_committed_topic(daemon.bootstrap, topic, PARTITIONS)
    )


async def test_a_batch_without_a_checkpoint_is_committed_as_a_whole(spark: SparkSession, daemon: Daemon) -> None:
    await create_topics(daemon.bootstrap, "plain", partitions=PARTITIONS)
    write(numbers(spark, 2000), daemon, "plain")
    assert await committed(daemon, "plain") == list(range(2000))


async def test_a_batch_with_a_failing_task_leaves_nothing_to_read_committed(
    spark: SparkSession, daemon: Daemon
) -> None:
    await create_topics(daemon.bootstrap, "before", "failing", partitions=PARTITIONS)
    write(numbers(spark, 20), daemon, "before")
    failing = sf.expr("if(id = 1990, raise_error('the last rows are bad'), cast(id as string))").alias("value")
    rows = spark.range(0, 2000, numPartitions=2).select(failing)
    with pytest.raises(PySparkException, match="the last rows are bad"):
        write(rows, daemon, "failing", **{"kafka.transaction.timeout.ms": "1000"})
    # Where its Python worker starts late, the sound task begins its transaction after the driver's abort, and Spark
    # ends it together with the failing one. Then the timeout aborts the transaction.
    async with asyncio.timeout(60):
        while await has_open_transactions(daemon.bootstrap, "failing", PARTITIONS):
            await asyncio.sleep(0.5)
    assert await committed(daemon, "failing") == []


@pytest.mark.parametrize("outcome", ["commit", "abort"])
def test_without_a_checkpoint_attempts_that_returned_nothing_are_aborted(daemon: Daemon, outcome: str) -> None:
    topic = f"lost-{outcome}"
    asyncio.run(create_topics(daemon.bootstrap, topic, partitions=PARTITIONS))
    given = {"kafka.bootstrap.servers": daemon.bootstrap, "topic": topic, "exactlyOnce": "transactions"}
    write = TransactionalWrite(sink_options(given, streaming=False))
    write.begin()
    rows = [pa.RecordBatch.from_pydict({"value": [str(number) for number in range(20)]})]
    write.write(iter(rows), 0, None)  # the executor of this attempt dies before Spark has its result
    returned = write.write(iter(rows), 0, None)
    if outcome == "commit":
        write.commit([returned], 0)
    else:
        write.abort([])
    assert asyncio.run(committed(daemon, topic)) == (list(range(20)) if outcome == "commit" else [])


async def test_a_batch_with_a_checkpoint_is_written_once_whatever_its_rows_are(
    spark: SparkSession, patient_daemon: Daemon, tmp_path: Path
) -> None:
    await create_topics(patient_daemon.bootstrap, "once", partitions=PARTITIONS)
    write(numbers(spark, 2000), patient_daemon, "once", checkpointLocation=str(tmp_path))
    write(numbers(spark, 500, tasks=2), patient_daemon, "once", checkpointLocation=str(tmp_path))
    assert await committed(patient_daemon, "once") == list(range(2000))


def test_an_error_before_the_first_task_is_told_in_one_sentence(
    spark: SparkSession, daemon: Daemon, tmp_path: Path
) -> None:
    (tmp_path / "barnabas-sink" / "00000").mkdir(parents=True)
    with pytest.raises(PySparkException) as raised:
        write(numbers(spark, 20), daemon, "never", checkpointLocation=str(tmp_path))
    assert sentence_of(raised.value).startswith(f"{tmp_path}/barnabas-sink was written with exactlyOnce=sequences")


async def test_without_two_phase_commit_on_the_broker_a_timeout_is_needed(
    spark: SparkSession, daemon: Daemon, tmp_path: Path
) -> None:
    await create_topics(daemon.bootstrap, "limited", partitions=PARTITIONS)
    checkpoint = str(tmp_path)
    with pytest.raises(PySparkException) as raised:
        write(numbers(spark, 20), daemon, "limited", checkpointLocation=checkpoint)
    assert "transaction.two.phase.commit.enable=true on the broker, or give the option" in sentence_of(raised.value)
    limit = {"checkpointLocation": checkpoint, "kafka.transaction.timeout.ms": "900001"}
    with pytest.raises(PySparkException) as raised:
        write(numbers(spark, 20), daemon, "limited", **limit)
    assert "above the broker's transaction.max.timeout.ms" in sentence_of(raised.value)
    limit["kafka.transaction.timeout.ms"] = "600000"
    write(numbers(spark, 20), daemon, "limited", **limit)
    assert await committed(daemon, "limited") == list(range(20))


def run_stream(spark: SparkSession, daemon: Daemon, source: Path, checkpoint: Path, topic: str, **options: str) -> None:
    stream = spark.readStream.schema("value string, number int").option("maxFilesPerTrigger", 1).json(str(source))
    query = (
        stream.dropDuplicates(["value"])
        .select("value")
        .writeStream.format("barnabas")
        .option("kafka.bootstrap.servers", daemon.bootstrap)
        .option("topic", topic)
        .option("kafka.batch.size", "400")
        .option("checkpointLocation", str(checkpoint))
        .options(**options)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(STREAM_TIMEOUT_S)


def forget_commit(checkpoint: Path, batch_id: int) -> None:
    (checkpoint / "commits" / str(batch_id)).unlink()
    (checkpoint / "commits" / f".{batch_id}.crc").unlink()


def add_file(source: Path, number: int, values: range) -> None:
    source.mkdir(exist_ok=True)
    rows = (json.dumps({"value": str(value), "number": number}) + "\n" for value in values)
    (source / f"{number}.json").write_text("".join(rows))


async def test_a_stateful_stream_is_written_once_through_replays_of_decided_and_undecided_batches(
    spark: SparkSession, patient_daemon: Daemon, tmp_path: Path
) -> None:
    topic, source, checkpoint = "stream", tmp_path / "in", tmp_path / "checkpoint"
    await create_topics(patient_daemon.bootstrap, topic, partitions=PARTITIONS)
    for number in range(2):
        add_file(source, number, range(number * 300, number * 300 + 400))
    run_stream(spark, patient_daemon, source, checkpoint, topic, exactlyOnce="transactions")
    assert await committed(patient_daemon, topic) == list(range(700))

    forget_commit(checkpoint, 1)  # the driver died after its decision: the batch is read again, and not written
    add_file(source, 2, range(600, 800))
    run_stream(spark, patient_daemon, source, checkpoint, topic, exactlyOnce="transactions")
    assert await committed(patient_daemon, topic) == list(range(800))
    state = checkpoint / "barnabas-sink" / "transactions"
    assert [path.name for path in state.iterdir() if path.name.startswith(("run-", "written-"))] == [
        "written-0000000002.json"
    ]

    forget_commit(checkpoint, 2)
    with pytest.raises(PySparkException) as raised:
        run_stream(spark, patient_daemon, source, checkpoint, topic)
    assert "was written with exactlyOnce=transactions" in sentence_of(raised.value)

    (state / "written-0000000002.json").unlink()  # never decided: then it is written
    run_stream(spark, patient_daemon, source, checkpoint, topic, exactlyOnce="transactions")
    assert await committed(patient_daemon, topic) == sorted([*range(800), *range(700, 800)])


async def test_transactional_ids_are_reused_by_the_next_micro_batches(
    spark: SparkSession, patient_daemon: Daemon, tmp_path: Path
) -> None:
    topic, source, checkpoint = "reused", tmp_path / "in", tmp_path / "checkpoint"
    await create_topics(patient_daemon.bootstrap, topic, partitions=PARTITIONS)
    found = []
    for number in range(3):
        add_file(source, number, range(number * 100, number * 100 + 100))
        run_stream(spark, patient_daemon, source, checkpoint, topic, exactlyOnce="transactions")
        (written,) = checkpoint.rglob("written-*.json")
        found.append(json.loads(written.read_text())["free"])
    assert len(found[0]) == 2
    assert found[0] == found[1] == found[2]
    assert await committed(patient_daemon, topic) == list(range(300))
