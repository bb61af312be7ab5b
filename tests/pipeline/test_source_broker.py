"""`format("barnabas")` against a real broker: what is read, and which part of it."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from barnabas import Producer, ProducerConfig
from tests.support.daemon import Daemon

START = 1_700_000_000_000


def produce(
    daemon: Daemon,
    topic: str,
    records: Sequence[tuple[int, bytes | None, bytes | None]],
    *,
    partitions: int = 1,
    compression: str = "none",
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> None:
    """A new topic with records of (partition, key, value), 1 ms apart."""
    daemon.create_topic(topic, partitions=partitions)

    async def send() -> None:
        config = ProducerConfig(bootstrap=daemon.bootstrap, compression=compression)
        async with Producer(config) as producer:
            for index, (partition, key, value) in enumerate(records):
                await producer.send(
                    topic, value, key=key, partition=partition, timestamp_ms=START + index, headers=headers
                )

    asyncio.run(send())


def read(spark: SparkSession, daemon: Daemon, topic: str, **options: str) -> DataFrame:
    reader = spark.read.format("barnabas").option("kafka.bootstrap.servers", daemon.bootstrap)
    return reader.option("subscribe", topic).options(**options).load()


def test_a_topic_is_read_with_the_columns_of_sparks_kafka_source(spark: SparkSession, daemon: Daemon) -> None:
    produce(daemon, "orders", [(0, b"k0", b"v0"), (1, None, b"v1"), (0, b"k2", None)], partitions=2)

    found = read(spark, daemon, "orders")

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
