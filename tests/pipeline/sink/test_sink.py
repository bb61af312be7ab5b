"""DataFrames into topics of a real broker, batch and stream, and replays of a micro-batch, which add nothing."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from barnabas.clients.producer.partitioner import partition_for_key
from barnabas.pipeline.spark.failures import sentence_of
from tests.support.daemon import Daemon
from tests.support.topics import create_topics

SCHEMA = (
    "key binary, value binary, headers array<struct<key: string, value: binary>>, topic string, partition int, "
    "timestamp timestamp"
)
STREAM_TIMEOUT_S = 90


def read(spark: SparkSession, daemon: Daemon, topic: str) -> DataFrame:
    return (
        spark.read.format("barnabas")
        .option("kafka.bootstrap.servers", daemon.bootstrap)
        .option("subscribe", topic)
        .option("includeHeaders", "true")
        .load()
    )


def values(spark: SparkSession, daemon: Daemon, topic: str) -> list[str]:
    return sorted(row.value.decode() for row in read(spark, daemon, topic).select("value").collect())


async def test_every_column_arrives_as_it_was(spark: SparkSession, daemon: Daemon) -> None:
    await create_topics(daemon.bootstrap, "columns", partitions=3)
    moment = datetime(2024, 2, 29, 12, 30, 1, 234000, tzinfo=UTC)
    rows = [
        (b"k", b"v", [("h", b"1"), ("h", None)], "columns", 2, moment),
        (b"k", None, None, "columns", None, moment),
        (None, b"", [], "columns", 0, moment),
    ]
    frame = spark.createDataFrame(rows, SCHEMA)
    frame.write.format("barnabas").option("kafka.bootstrap.servers", daemon.bootstrap).mode("append").save()
    found = {(row.partition, row.key, row.value): row for row in read(spark, daemon, "columns").collect()}
    keyed = partition_for_key(b"k", 3)
    assert set(found) == {(2, b"k", b"v"), (keyed, b"k", None), (0, None, b"")}
    assert [(each.key, each.value) for each in found[2, b"k", b"v"].headers] == [("h", b"1"), ("h", None)]
    assert not found[0, None, b""].headers
    assert {row.timestamp for row in found.values()} == {moment.replace(tzinfo=None)}


async def test_strings_go_where_the_option_says_in_the_order_of_the_rows(spark: SparkSession, daemon: Daemon) -> None:
    await create_topics(daemon.bootstrap, "strings", partitions=1)
    frame = spark.range(0, 5000, numPartitions=1).select(
        sf.col("id").cast("string").alias("value"), sf.lit("elsewhere").alias("topic")
    )
    writer = frame.write.format("barnabas").option("kafka.bootstrap.servers", daemon.bootstrap)
    writer.option("topic", "strings").option("kafka.compression.type", "zstd").mode("append").save()
    found = read(spark, daemon, "strings").orderBy("offset").select("value").collect()
    assert [int(row.value) for row in found] == list(range(5000))


@pytest.mark.parametrize(
    ("columns", "options", "mode", "sentence"),
    [
        ("id", {"topic": "t"}, "append", "column 'id' cannot be written"),
        ("cast(id as string) key", {"topic": "t"}, "append", "column 'value' is missing"),
        ("id value", {"topic": "t"}, "append", "column 'value' must be string or binary, not bigint"),
        ("'x' value", {}, "append", "give the option topic, or a column topic"),
        ("'x' value, cast(null as string) topic", {}, "append", "a row's topic is null"),
        ("'x' value", {"topics": "t"}, "append", "option topics is not known; did you mean topic?"),
        ("'x' value", {"topic": "t", "kafka.acks": "2"}, "append", "kafka.acks must be all, -1, 1 or 0, not '2'"),
        ("'x' value", {"topic": "t", "kafka.transactional.id": "a"}, "append", "each attempt of a task takes an id"),
        ("'x' value", {"topic": "t", "kafka.security.protocol": "TLS"}, "append", "kafka.security.protocol=TLS"),
        ("'x' value", {"topic": "t"}, "overwrite", "mode overwrite is not supported"),
        ("'x' value, 9 partition", {"topic": "narrow"}, "append", "narrow-9: the topic has 1 partitions"),
        ("'x' value", {"topic": "a b"}, "append", "a b"),
    ],
)
def test_what_cannot_be_written_is_told_in_one_sentence(
    spark: SparkSession, daemon: Daemon, columns: str, options: dict[str, str], mode: str, sentence: str
) -> None:
    writer = spark.range(1).selectExpr(*columns.split(", ")).write.format("barnabas")
    writer = writer.option("kafka.bootstrap.servers", daemon.bootstrap).options(**options)
    with pytest.raises(PySparkException) as raised:
        writer.mode(mode).save()
    assert sentence in sentence_of(raised.value)
    assert "\n" not in sentence_of(raised.value)


async def test_a_batch_with_a_checkpoint_adds_only_what_is_missing(
    spark: SparkSession, daemon: Daemon, tmp_path: Path
) -> None:
    await create_topics(daemon.bootstrap, "resumed", partitions=2)

    def write(upto: int) -> None:
        frame = spark.range(0, upto, numPartitions=2).select(
            sf.col("id").cast("string").alias("value"), (sf.col("id") % 2).cast("int").alias("partition")
        )
        writer = frame.write.format("barnabas").option("kafka.bootstrap.servers", daemon.bootstrap)
        writer.option("topic", "resumed").option("checkpointLocation", str(tmp_path)).mode("append").save()

    write(3000)
    write(3000)
    assert values(spark, daemon, "resumed") == sorted(map(str, range(3000)))
    with pytest.raises(PySparkException) as raised:
        write(1000)
    assert "its replay has only" in sentence_of(raised.value)


def run_stream(spark: SparkSession, daemon: Daemon, source: Path, checkpoint: Path, topic: str) -> None:
    stream = spark.readStream.schema("value string").option("maxFilesPerTrigger", 1).json(str(source))
    query = (
        stream.writeStream.format("barnabas")
        .option("kafka.bootstrap.servers", daemon.bootstrap)
        .option("topic", topic)
        .option("kafka.batch.size", "400")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(STREAM_TIMEOUT_S)


def forget_commit(checkpoint: Path, batch_id: int) -> None:
    (checkpoint / "commits" / str(batch_id)).unlink()
    (checkpoint / "commits" / f".{batch_id}.crc").unlink()


async def test_micro_batches_that_are_replayed_add_no_record(
    spark: SparkSession, daemon: Daemon, tmp_path: Path
) -> None:
    await create_topics(daemon.bootstrap, "stream", partitions=3)
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    source.mkdir()
    expected = []
    for number in range(3):
        names = [f"{number}-{index:04d}" for index in range(700)]
        expected += names
        (source / f"{number}.json").write_text("".join(json.dumps({"value": name}) + "\n" for name in names))
    run_stream(spark, daemon, source, checkpoint, "stream")
    assert values(spark, daemon, "stream") == sorted(expected)
    forget_commit(checkpoint, 2)  # as if the driver had died before recording the batch as done
    run_stream(spark, daemon, source, checkpoint, "stream")
    assert values(spark, daemon, "stream") == sorted(expected)
    (source / "3.json").write_text(json.dumps({"value": "last"}) + "\n")
    run_stream(spark, daemon, source, checkpoint, "stream")
    assert values(spark, daemon, "stream") == sorted([*expected, "last"])
    shutil.rmtree(checkpoint / "barnabas-sink")  # without the stored identities the batch is written again
    forget_commit(checkpoint, 3)
    run_stream(spark, daemon, source, checkpoint, "stream")
    assert values(spark, daemon, "stream") == sorted([*expected, "last", "last"])


def test_a_stream_without_a_checkpoint_option_says_so(spark: SparkSession, daemon: Daemon, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.streaming.checkpointLocation", str(tmp_path))
    try:
        stream = spark.readStream.format("rate").load().selectExpr("cast(value as string) value")
        writer = stream.writeStream.format("barnabas").option("topic", "t")
        query = writer.option("kafka.bootstrap.servers", daemon.bootstrap).start()
        with pytest.raises(PySparkException) as raised:
            query.awaitTermination(STREAM_TIMEOUT_S)
    finally:
        spark.conf.unset("spark.sql.streaming.checkpointLocation")
    assert "option checkpointLocation is missing" in sentence_of(raised.value)
