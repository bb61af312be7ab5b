"""The jobs archive and replay against a real broker, and their row transformations."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from barnabas import Producer, ProducerConfig
from barnabas.clients.records import ConsumerRecord
from barnabas.pipeline.archive.manifest import ArchiveState
from barnabas.pipeline.errors import OptionError, PipelineError
from barnabas.pipeline.jobs.archive import ArchiveOptions, archive_rows
from barnabas.pipeline.jobs.archive import run as run_archive
from barnabas.pipeline.jobs.replay import ReplayOptions, plan_of, replay_rows
from barnabas.pipeline.jobs.replay import run as run_replay
from barnabas.pipeline.spark.failures import sentence_of
from tests.support.daemon import Daemon
from tests.support.topics import create_topics, read_topic

PARTITIONS = 2
RECORDS = 600


async def fill(daemon: Daemon, topic: str, first: int = 0, count: int = RECORDS) -> None:
    if not first:
        await create_topics(daemon.bootstrap, topic, partitions=PARTITIONS)
    async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
        for number in range(first, first + count):
            await producer.send(
                topic,
                None if number % 9 == 0 else b"%d" % number,
                b"k%d" % (number % 20),
                headers=[("h", b"%d" % number), ("n", None)] if number % 2 else [],
                timestamp_ms=1_700_000_000_000 + number * 13_001,
            )


def source(daemon: Daemon, topic: str, **options: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": daemon.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        **options,
    }


def contents(records: list[ConsumerRecord]) -> list[Any]:
    return [(each.partition, each.key, each.value, list(each.headers), each.timestamp) for each in records]


def test_hours_are_those_of_utc_whatever_the_sessions_zone(spark: SparkSession) -> None:
    columns = "key binary, value binary, headers string, topic string, partition int, offset long, timestampType int"
    frame = spark.createDataFrame([(None, None, None, "t", 0, 0, 0)] * 3, columns)
    moments = [1_709_247_599_999_999, 1_709_247_600_000_000, -1_000]
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        found = []
        for moment in moments:
            rows = archive_rows(frame.withColumn("timestamp", sf.timestamp_micros(sf.lit(moment)))).limit(1).collect()
            found.append((rows[0]["date"], rows[0]["hour"]))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert found == [(date(2024, 2, 29), 22), (date(2024, 2, 29), 23), (date(1969, 12, 31), 23)]


def test_a_replay_has_each_partition_in_one_task_in_the_order_of_its_offsets(spark: SparkSession) -> None:
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    rows = [
        (b"k", b"%d" % offset, None, topic, partition, offset, moment)
        for offset in range(40, 0, -1)
        for partition in range(3)
        for topic in ("a", "b", "left")
    ]
    columns = (
        "key binary, value binary, headers array<struct<key: string, value: binary>>, topic string, partition int, "
        "offset long, timestamp timestamp"
    )
    replayed = replay_rows(spark.createDataFrame(rows, columns), {"a": "a", "b": "copy"}, 2)
    found = replayed.withColumn("task", sf.spark_partition_id()).collect()
    places = {(row.topic, row.partition) for row in found}
    assert places == {(topic, partition) for topic in ("a", "copy") for partition in range(3)}
    for topic, partition in places:
        mine = [row for row in found if (row.topic, row.partition) == (topic, partition)]
        assert len({row.task for row in mine}) == 1
        assert [int(row.value) for row in mine] == list(range(1, 41))


async def test_an_archive_goes_on_where_it_stopped_and_comes_back_as_it_was(
    spark: SparkSession, daemon: Daemon, tmp_path: Path
) -> None:
    await fill(daemon, "log")
    archive = str(tmp_path / "archive")
    options = ArchiveOptions(archive, source(daemon, "log", maxOffsetsPerTrigger="400"))
    summary = run_archive(spark, options)
    assert (summary.records, summary.details["micro-batches"]) == (RECORDS, 2)
    assert summary.files == len(list((tmp_path / "archive" / "log").rglob("*.parquet")))
    await fill(daemon, "log", RECORDS, 50)
    assert run_archive(spark, options).records == 50
    assert run_archive(spark, options).records == 0

    original = await read_topic(daemon.bootstrap, "log", PARTITIONS)
    archived = spark.read.parquet(f"{archive}/log").orderBy("partition", "offset").collect()
    assert [(row.partition, row.offset, row.key, row.value) for row in archived] == [
        (each.partition, each.offset, each.key, each.value) for each in original
    ]
    assert all(row.timestamp.replace(tzinfo=UTC).hour == row.hour for row in archived)

    await create_topics(daemon.bootstrap, "copy", partitions=PARTITIONS)
    sink = {"kafka.bootstrap.servers": daemon.bootstrap}
    replay = ReplayOptions(archive, str(tmp_path / "state"), sink, {"log": "copy"})
    assert run_replay(spark, replay).records == len(original)
    assert "nothing: " in str(run_replay(spark, replay).details["added"])
    (tmp_path / "state" / "replayed.json").unlink()  # as if interrupted after the last record
    run_replay(spark, replay)
    assert contents(await read_topic(daemon.bootstrap, "copy", PARTITIONS)) == contents(original)


async def test_a_checkpoint_that_was_lost_is_noticed(spark: SparkSession, daemon: Daemon, tmp_path: Path) -> None:
    await fill(daemon, "lost", count=20)
    options = ArchiveOptions(str(tmp_path), source(daemon, "lost"))
    run_archive(spark, options)
    shutil.rmtree(tmp_path / "_barnabas" / "archive" / "checkpoint")
    with pytest.raises(Exception, match="was archived by query") as raised:
        run_archive(spark, options)
    assert "\n" not in sentence_of(raised.value)
    assert spark.read.parquet(str(tmp_path / "lost")).count() == 20


async def test_a_checkpoint_that_is_older_than_the_archive_is_noticed_and_the_end_of_the_archive_said(
    spark: SparkSession, daemon: Daemon, tmp_path: Path
) -> None:
    await fill(daemon, "older", count=100)
    options = ArchiveOptions(str(tmp_path), source(daemon, "older"))
    run_archive(spark, options)
    run_archive(spark, options)  # a run without new records changes nothing
    checkpoint = ArchiveState(str(tmp_path)).checkpoint
    for kind in ("offsets", "commits"):  # as in a backup from before the first micro-batch
        for path in Path(checkpoint, kind).iterdir():
            path.unlink()
    run_archive(spark, options)  # the same end offsets: accepted as the same micro-batch
    for kind in ("offsets", "commits"):
        for path in Path(checkpoint, kind).iterdir():
            path.unlink()
    await fill(daemon, "older", 100, 30)
    with pytest.raises(Exception, match="because it is older than the archive") as raised:
        run_archive(spark, options)
    said = re.search(r"startingOffsets=(\{.*?\}\})", sentence_of(raised.value))
    assert said is not None
    assert spark.read.parquet(str(tmp_path / "older")).count() == 100

    run_archive(spark, ArchiveOptions(str(tmp_path), source(daemon, "older", startingOffsets=said[1]), "more"))
    rows = spark.read.parquet(str(tmp_path / "older")).select("partition", "offset").collect()
    original = await read_topic(daemon.bootstrap, "older", PARTITIONS)
    assert sorted(map(tuple, rows)) == [(each.partition, each.offset) for each in original]


def test_what_cannot_be_replayed_is_told(tmp_path: Path) -> None:
    state = ArchiveState(str(tmp_path / "archive"))
    options = ReplayOptions(state.archive, str(tmp_path / "state"), {}, {})
    with pytest.raises(PipelineError, match="there is no archive called 'archive', or it is still empty"):
        plan_of(state, options)
    state.commit(0, "q", [])
    with pytest.raises(PipelineError, match="contains no records"):
        plan_of(state, options)
    with pytest.raises(OptionError, match="has no topic 'x'"):
        plan_of(state, ReplayOptions(state.archive, str(tmp_path / "state"), {}, {"x": "y"}))
    with pytest.raises(OptionError, match="cannot be replayed into one"):
        plan_of(state, ReplayOptions(state.archive, str(tmp_path / "state"), {}, {"a": "c", "b": "c"}))
