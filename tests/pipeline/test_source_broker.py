"""`format("barnabas")` against a real broker: what is read, and which part of it."""

from __future__ import annotations

import datetime as dt

from pyspark.sql import SparkSession

from tests.support.daemon import Daemon
from tests.support.spark_topics import START, produce_new, read_topic


def test_a_topic_is_read_with_the_columns_of_sparks_kafka_source(spark: SparkSession, daemon: Daemon) -> None:
    produce_new(daemon, "orders", [(0, b"k0", b"v0"), (1, None, b"v1"), (0, b"k2", None)], partitions=2)

    found = read_topic(spark, daemon, "orders")

    assert found.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )
    rows = sorted(found.collect(), key=lambda row: (row.partition, row.offset))
    assert [(row.key, row.value, row.topic, row.partition, row.offset) for row in rows] == [
        (b"k0", b"v0", "orders", 0, 0),
        (b"k2", None, "orders", 0, 1),
        (None, b"v1", "orders", 1, 0),
    ]
    assert rows[1].timestamp.replace(tzinfo=dt.UTC) == dt.datetime.fromtimestamp((START + 2) / 1000, dt.UTC)
    assert {row.timestampType for row in rows} == {0}
