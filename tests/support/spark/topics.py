"""Topics with records for the pipeline's tests, and reads of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from barnabas import Admin, AdminConfig, Producer, ProducerConfig
from tests.support.daemon import Daemon

START = 1_700_000_000_000
"""The timestamp (ms) of the first record that `produce` sends; each later one is 1 ms later."""


def produce(
    daemon: Daemon,
    topic: str,
    records: Sequence[tuple[int, bytes | None, bytes | None]],
    *,
    compression: str = "none",
    headers: Sequence[tuple[str, bytes | None]] = (),
    start: int = START,
) -> None:
    """Send records of (partition, key, value) to an existing topic."""

    async def send() -> None:
        config = ProducerConfig(bootstrap=daemon.bootstrap, compression=compression)
        async with Producer(config) as producer:
            for index, (partition, key, value) in enumerate(records):
                await producer.send(
                    topic, value, key=key, partition=partition, timestamp_ms=start + index, headers=headers
                )

    asyncio.run(send())


def produce_new(
    daemon: Daemon,
    topic: str,
    records: Sequence[tuple[int, bytes | None, bytes | None]],
    *,
    partitions: int = 1,
    compression: str = "none",
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> None:
    """As `produce`, to a new topic."""
    daemon.create_topic(topic, partitions=partitions)
    produce(daemon, topic, records, compression=compression, headers=headers)


def delete_topic(daemon: Daemon, topic: str) -> None:
    """Delete a topic, and wait until it is gone."""

    async def delete() -> None:
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            await admin.delete_topic(topic)

    asyncio.run(delete())


def read_topic(spark: SparkSession, daemon: Daemon, topic: str, **options: str) -> DataFrame:
    """Return a batch read of one topic."""
    reader = spark.read.format("barnabas").option("kafka.bootstrap.servers", daemon.bootstrap)
    return reader.option("subscribe", topic).options(**options).load()


def stream_topic(spark: SparkSession, daemon: Daemon, topic: str, **options: str) -> DataStreamReader:
    """Return a streaming reader of one topic, before `load`."""
    reader = spark.readStream.format("barnabas").option("kafka.bootstrap.servers", daemon.bootstrap)
    return reader.option("subscribe", topic).options(**options)
