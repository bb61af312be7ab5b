"""DataFrames of records in the source's schema, for tests of transformations."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORD_SCHEMA = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int, "
    "headers array<struct<key: string, value: binary>>"
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Stored(NamedTuple):
    """One record; timestamps are in ms."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int = 1_700_000_000_000
    partition: int = 0
    topic: str = "orders"
    headers: tuple[tuple[str, bytes | None], ...] | None = None


def moment(timestamp_ms: int) -> datetime:
    """Return the timestamp as Spark represents it."""
    return EPOCH + timedelta(milliseconds=timestamp_ms)


def records_frame(spark: SparkSession, records: Iterable[Stored]) -> DataFrame:
    """Return a frame of the records, in an order that splits neighbours between tasks."""
    rows = [
        (
            None if record.key is None else bytearray(record.key),
            None if record.value is None else bytearray(record.value),
            record.topic,
            record.partition,
            record.offset,
            moment(record.timestamp_ms),
            0,
            None if record.headers is None else list(record.headers),
        )
        for record in records
    ]
    return spark.createDataFrame(rows[::2] + rows[1::2], RECORD_SCHEMA)
