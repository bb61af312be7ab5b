"""`format("barnabas")` in Spark: schemas, options that Spark passes on, and the appearance of errors.

Reads themselves are tested without Spark in test_reads and test_segments.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.support.daemon import Daemon
from tests.support.spark.topics import START, produce_new, read_topic
from tests.support.storage.bench import START_MS
from tests.support.storage.segments import write_log

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(scope="module")
def orders(daemon: Daemon) -> str:
    """Create a topic of two partitions with a tombstone, a null key and headers."""
    records = [(0, b"k0", b"v0"), (1, None, b"v1"), (0, b"k2", None)]
    produce_new(daemon, "orders", records, partitions=2, headers=[("source", b"web"), ("empty", None)])
    return "orders"


def test_a_topic_is_read_with_the_columns_of_sparks_kafka_source(
    spark: SparkSession, daemon: Daemon, orders: str
) -> None:
    found = read_topic(spark, daemon, orders, includeHeaders="true")

    assert found.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    rows = sorted(found.collect(), key=lambda row: (row.partition, row.offset))
    assert [(row.key, row.value, row.topic, row.partition, row.offset) for row in rows] == [
        (b"k0", b"v0", "orders", 0, 0),
        (b"k2", None, "orders", 0, 1),
        (None, b"v1", "orders", 1, 0),
    ]
    assert rows[1].timestamp.replace(tzinfo=dt.UTC) == dt.datetime.fromtimestamp((START + 2) / 1000, dt.UTC)
    assert {row.timestampType for row in rows} == {0}
    assert [tuple(header) for header in rows[0].headers] == [("source", b"web"), ("empty", None)]


def test_a_users_schema_is_the_projection(spark: SparkSession, daemon: Daemon, orders: str) -> None:
    reader = spark.read.format("barnabas").option("kafka.bootstrap.servers", daemon.bootstrap)
    found = reader.option("subscribe", orders).schema("offset long not null, key binary").load()
    rows = sorted(map(tuple, found.collect()), key=lambda row: (row[0], row[1] or b""))
    assert rows == [(0, None), (0, b"k0"), (1, b"k2")]
    assert read_topic(spark, daemon, orders).count() == 3


@pytest.mark.parametrize("is_pushed", [True, False])
def test_filters_give_the_same_rows_whether_they_are_pushed_or_not(
    spark: SparkSession, daemon: Daemon, orders: str, is_pushed: bool
) -> None:
    spark.conf.set(PUSHDOWN, str(is_pushed).lower())
    try:
        found = read_topic(spark, daemon, orders, pushFilters=str(is_pushed).lower())
        moment = dt.datetime.fromtimestamp((START + 1) / 1000, dt.UTC)
        kept = found.where((found.partition == 0) & (found["offset"] >= 1) & (found.timestamp > moment))
        assert [row.key for row in kept.collect()] == [b"k2"]
    finally:
        spark.conf.unset(PUSHDOWN)


def test_data_directories_are_loaded_by_path_and_by_a_list_of_them(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("one", "two"):
        bench, log = write_log(tmp_path / name, [[(START_MS, b"k", b"v")]] * 5)
        bench.close(log)
    (tmp_path / "two" / "orders-0").rename(tmp_path / "two" / "orders-1")
    assert spark.read.format("barnabas").load(str(tmp_path / "one")).count() == 5
    both = spark.read.format("barnabas").load([str(tmp_path / "one"), str(tmp_path / "two" / "orders-1")])
    assert sorted((row.partition, row.offset) for row in both.collect()) == [(p, o) for p in (0, 1) for o in range(5)]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"startingOfsets": "earliest"}, "option startingofsets is not known; did you mean startingOffsets?"),
        ({"includeHeaders": "maybe"}, "option includeHeaders must be true or false, not 'maybe'"),
        ({"subscribe": "nowhere"}, "option subscribe: there is no topic 'nowhere'; create it first"),
    ],
)
def test_a_mistake_is_one_sentence_and_few_frames(
    spark: SparkSession, daemon: Daemon, orders: str, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(PySparkException) as caught:
        read_topic(spark, daemon, options.get("subscribe", orders), **options).collect()
    message = str(caught.value)
    assert sentence in message
    ours = [line for line in message.splitlines() if "/barnabas/" in line and line.lstrip().startswith("File")]
    assert len(ours) <= 3
