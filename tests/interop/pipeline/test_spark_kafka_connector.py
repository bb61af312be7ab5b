"""Spark's own unmodified Kafka connector against our broker: batch and stream, read and write.

The rows equal those of `format("barnabas")` from the same topic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from barnabas import Producer, ProducerConfig
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.jars import FetchError, fetch_spark_connector
from tests.support.spark.session import running_spark
from tests.support.topics import create_topics

pytestmark = pytest.mark.timeout(600)

PARTITIONS = 3
RECORDS = 3000
PLAIN = ("topic", "partition", "offset", "key", "value", "timestamp", "timestampType")
STREAM_TIMEOUT_S = 300


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory, jars: list[Path]) -> Iterator[SparkSession]:
    with running_spark(tmp_path_factory.mktemp("spark"), spark_jars=",".join(map(str, jars))) as session:
        yield session


@pytest.fixture(scope="module")
def jars() -> list[Path]:
    from tests.support.interop import require_or_skip

    try:
        return fetch_spark_connector()
    except FetchError as error:
        require_or_skip(str(error))
        raise


async def fill(bootstrap: str, topic: str, codecs: tuple[str, ...] = ("none", "gzip", "snappy", "lz4", "zstd")) -> None:
    """Fill all partitions with records of every kind, alternating codecs."""
    await create_topics(bootstrap, topic, partitions=PARTITIONS)
    for turn, codec in enumerate(codecs):
        async with Producer(ProducerConfig(bootstrap=bootstrap, compression=codec, batch_size=2000)) as producer:
            for number in range(turn, RECORDS, len(codecs)):
                headers: list[tuple[str, bytes | None]] = [("a", b"1"), ("a", None)] if number % 3 == 0 else []
                await producer.send(
                    topic,
                    None if number % 7 == 0 else b"value %d" % number,
                    None if number % 5 == 0 else b"key %d" % (number % 100),
                    headers=headers,
                    timestamp_ms=1_700_000_000_000 + number * 997,
                )


def rows(frame: DataFrame) -> list[Any]:
    """Return rows in a sortable and comparable form."""
    plain = []
    for row in frame.select(*PLAIN, "headers").collect():
        headers = None if not row.headers else [(header.key, header.value) for header in row.headers]
        plain.append((*(row[name] for name in PLAIN), headers))
    return sorted(plain, key=lambda each: each[:3])


def source(reader: Any, form: str, daemon: Daemon, topic: str) -> Any:
    options = {"kafka.bootstrap.servers": daemon.bootstrap, "subscribe": topic, "includeHeaders": "true"}
    return reader.format(form).options(**options, startingOffsets="earliest")


def test_a_batch_read_gives_the_same_rows_as_ours(spark: SparkSession, daemon: Daemon) -> None:
    asyncio.run(fill(daemon.bootstrap, "batch"))
    theirs = rows(source(spark.read, "kafka", daemon, "batch").load())
    assert len(theirs) == RECORDS
    assert theirs == rows(source(spark.read, "barnabas", daemon, "batch").load())


def test_bounded_reads_and_projections_agree(spark: SparkSession, daemon: Daemon) -> None:
    asyncio.run(fill(daemon.bootstrap, "bounded"))
    bounds = {
        "startingOffsets": '{"bounded":{"0":10,"1":-2,"2":400}}',
        "endingOffsets": '{"bounded":{"0":300,"1":-1,"2":401}}',
    }
    frames = [
        spark.read.format(form)
        .options(**{"kafka.bootstrap.servers": daemon.bootstrap, "subscribe": "bounded"}, **bounds)
        .load()
        for form in ("kafka", "barnabas")
    ]
    theirs, ours = (
        frame.groupBy("partition").agg(sf.min("offset"), sf.max("offset"), sf.count("*")).orderBy("partition").collect()
        for frame in frames
    )
    assert theirs == ours
    assert theirs[0]["count(1)"] == 290


def test_a_stream_reads_every_record_once(spark: SparkSession, daemon: Daemon, tmp_path: Path) -> None:
    asyncio.run(fill(daemon.bootstrap, "streamed"))
    expected = rows(source(spark.read, "barnabas", daemon, "streamed").load())
    stream = source(spark.readStream, "kafka", daemon, "streamed").option("maxOffsetsPerTrigger", "800").load()
    query = (
        stream.writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(STREAM_TIMEOUT_S)
    assert rows(spark.read.parquet(str(tmp_path / "out"))) == expected
    assert len(query.recentProgress) >= RECORDS // 800


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_batch_that_it_writes_is_read_by_both(spark: SparkSession, daemon: Daemon, codec: str) -> None:
    topic = f"written-{codec}"
    written = spark.range(2000).select(
        sf.concat(sf.lit("k"), sf.col("id") % 10).alias("key"),
        sf.when(sf.col("id") % 4 > 0, sf.concat(sf.lit("v"), "id")).alias("value"),
        sf.expr("array(struct('h' as key, cast(cast(id as string) as binary) as value))").alias("headers"),
        sf.lit(topic).alias("topic"),
    )
    options = {"kafka.bootstrap.servers": daemon.bootstrap, "kafka.compression.type": codec}
    written.write.format("kafka").options(**options).save()
    ours = rows(source(spark.read, "barnabas", daemon, topic).load())
    assert ours == rows(source(spark.read, "kafka", daemon, topic).load())
    expected = {(row.key.encode(), None if row.value is None else row.value.encode()) for row in written.collect()}
    assert {(each[3], each[4]) for each in ours} == expected
    assert len(ours) == 2000


def test_from_its_stream_into_our_sink_and_back(spark: SparkSession, daemon: Daemon, tmp_path: Path) -> None:
    asyncio.run(fill(daemon.bootstrap, "there"))
    asyncio.run(create_topics(daemon.bootstrap, "over", "back", partitions=PARTITIONS))
    hops: list[tuple[str, str, str, Callable[[Any], Any]]] = [
        ("kafka", "there", "over", lambda writer: writer.format("barnabas")),
        ("kafka", "over", "back", lambda writer: writer.format("kafka")),
    ]
    for form, origin, target, into in hops:
        stream = source(spark.readStream, form, daemon, origin).load().select("key", "value", "headers", "partition")
        query = (
            into(stream.writeStream)
            .option("kafka.bootstrap.servers", daemon.bootstrap)
            .option("topic", target)
            .option("checkpointLocation", str(tmp_path / target))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(STREAM_TIMEOUT_S)
    first, last = (
        [
            (partition, offset, key, value, headers)
            for _, partition, offset, key, value, _, _, headers in rows(
                source(spark.read, "barnabas", daemon, topic).load()
            )
        ]
        for topic in ("there", "back")
    )
    assert first == last
