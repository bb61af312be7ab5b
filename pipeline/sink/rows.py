"""Rows of a DataFrame as records: the allowed columns, and conversion from Arrow batches.

    value      string or binary, required (null is a tombstone)
    key        string or binary
    headers    array<struct<key: string, value: binary>>
    topic      string    required without the option `topic`, and not null then
    partition  int       null or missing: chosen by the key, as by Kafka's producers
    timestamp  timestamp null or missing: the time of sending; stored in milliseconds

Spark's Kafka sink has the same columns except timestamp. Other columns are refused, not dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
)

from barnabas.pipeline.errors import PipelineError, SchemaError

_TYPES: Final[dict[str, tuple[type[DataType], ...]]] = {
    "key": (StringType, BinaryType),
    "value": (StringType, BinaryType),
    "topic": (StringType,),
    "partition": (IntegerType,),
    "timestamp": (TimestampType,),
}
_HEADERS: Final = "array<struct<key:string,value:binary>>"
_WORDS: Final = {"key": "string or binary", "value": "string or binary", "headers": _HEADERS}


class SinkRecord(NamedTuple):
    """One row. With None the producer chooses `partition` and `timestamp_ms`."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    partition: int | None
    timestamp_ms: int | None


def ensure_writable(schema: StructType, topic: str | None) -> None:
    """Check a schema. Raises SchemaError for an unknown or missing column, or a wrong type."""
    names = set()
    for field in schema.fields:
        name = field.name.lower()
        found = field.dataType.simpleString()
        if name == "headers":
            fits = found == _HEADERS
        elif name in _TYPES:
            fits = isinstance(field.dataType, _TYPES[name])
        else:
            raise SchemaError(
                f"column {field.name!r} cannot be written: a record has key, value, headers, topic, partition and "
                "timestamp; select these"
            )
        if not fits:
            expected = _WORDS.get(name) or " or ".join(each().simpleString() for each in _TYPES[name])
            raise SchemaError(f"column {field.name!r} must be {expected}, not {found}")
        if name in names:
            raise SchemaError(f"column {field.name!r} occurs twice")
        names.add(name)
    if "value" not in names:
        raise SchemaError("column 'value' is missing")
    if topic is None and "topic" not in names:
        raise SchemaError("the target topic is missing: give the option topic, or a column topic")


def records_of(batch: pa.RecordBatch, topic: str | None) -> Iterator[SinkRecord]:
    """Yield the rows in order. `topic` overrides the column. Raises PipelineError for a null topic."""
    columns = {name.lower(): batch.column(index) for index, name in enumerate(batch.schema.names)}
    count = batch.num_rows
    nothing = [None] * count
    keys = _bytes(columns.get("key"), nothing)
    values = _bytes(columns.get("value"), nothing)
    topics = [topic] * count if topic is not None else columns["topic"].to_pylist()
    partitions = columns["partition"].to_pylist() if "partition" in columns else nothing
    timestamps = _milliseconds(columns.get("timestamp"), nothing)
    headers = columns["headers"].to_pylist() if "headers" in columns else nothing
    for row in zip(topics, keys, values, headers, partitions, timestamps, strict=True):
        name, key, value, pairs, partition, timestamp = row
        if name is None:
            raise PipelineError("a row's topic is null: give the option topic, or fill the column")
        record_headers = [] if not pairs else [(_header_name(pair["key"]), pair["value"]) for pair in pairs]
        yield SinkRecord(name, key, value, record_headers, partition, timestamp)


def _bytes(column: pa.Array | None, nothing: list[None]) -> list[Any]:
    if column is None:
        return list(nothing)
    is_large = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    values: list[Any] = column.cast(pa.large_binary() if is_large else pa.binary()).to_pylist()
    return values


def _milliseconds(column: pa.Array | None, nothing: list[None]) -> list[Any]:
    if column is None:
        return list(nothing)
    microseconds = column.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    return [None if each is None else each // 1000 for each in microseconds]


def _header_name(name: str | None) -> str:
    if name is None:
        raise PipelineError("a header's key is null: a record's headers have names")
    return name
