"""Records that the types of the source's columns cannot hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, BinaryType, LongType, StructField, StructType, TimestampType

from barnabas.pipeline.errors import RecordTypeError
from barnabas.pipeline.reading.schema import HEADERS_TYPE
from barnabas.pipeline.source.batch import make_batch_reader
from barnabas.protocol.compression import Codec
from barnabas.protocol.records import Record
from tests.support.storage.bench import START_MS, LogBench, append, log_config
from tests.support.storage.records import build

NANOSECONDS = START_MS * 1_000_000
LAST_MS = (2**63 - 1) // 1000
RAW_HEADERS = ArrayType(StructType([StructField("key", BinaryType()), StructField("value", BinaryType())]))


@pytest.fixture(params=[Codec.NONE, Codec.ZSTD])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Two batches; the third record has a timestamp in nanoseconds, the fourth header names that are not UTF-8."""
    bench = LogBench(tmp_path)
    log = bench.open(log_config(timestamp_after_max_ms=2**63 - 1))
    first = [Record(0, START_MS, b"k", b"v", (("é", b"1"),)), Record(1, LAST_MS, b"k", b"v")]
    strange = (("fine", None), ("\udcff", b"x"), ("\udcfe", b"y"))
    second = [Record(0, NANOSECONDS, b"k", b"v", (("h", b"1"),)), Record(1, START_MS, b"k", b"v", strange)]
    append(log, memoryview(build(first, request.param)))
    append(log, memoryview(build(second, request.param)))
    bench.close(log)
    return tmp_path


def rows(directory: Path, name: str, data_type: Any, **options: str) -> list[Any]:
    reader = make_batch_reader({"path": str(directory), **options}, StructType([StructField(name, data_type)]))
    found: list[Any] = []
    for part in reader.partitions():
        for batch in reader.read(part):
            assert isinstance(batch, pa.RecordBatch)
            column = batch.column(0)
            found += (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
    return found


def test_a_timestamp_that_spark_cannot_hold_is_refused_by_name(written: Path) -> None:
    for mode in ("strict", "permissive"):
        with pytest.raises(RecordTypeError) as caught:
            rows(written, "timestamp", TimestampType(), mode=mode)
        assert (
            f"the record at offset 2 of orders-0 has timestamp value {NANOSECONDS} that overflows when converting to "
            "Spark's microsecond-precision TimestampType"
        ) in str(caught.value)


def test_a_header_name_that_is_not_utf8_is_refused_by_name(written: Path) -> None:
    with pytest.raises(RecordTypeError, match=r"offset 3 of orders-0 has a header name that is not UTF-8, b'\\xff'"):
        rows(written, "headers", HEADERS_TYPE)


def test_a_schema_of_milliseconds_and_bytes_holds_every_record(written: Path) -> None:
    assert rows(written, "timestamp", LongType()) == [START_MS, LAST_MS, NANOSECONDS, START_MS]
    assert rows(written, "headers", RAW_HEADERS) == [
        [{"key": "é".encode(), "value": b"1"}],
        None,
        [{"key": b"h", "value": b"1"}],
        [{"key": b"fine", "value": None}, {"key": b"\xff", "value": b"x"}, {"key": b"\xfe", "value": b"y"}],
    ]


def test_columns_that_hold_the_records_are_read(written: Path) -> None:
    assert rows(written, "key", BinaryType()) == [b"k"] * 4
    assert rows(written, "offset", LongType(), endingOffsets='{"orders": {"0": 2}}') == [0, 1]
    fitting = rows(written, "timestamp", TimestampType(), endingOffsets='{"orders": {"0": 2}}')
    assert fitting == [START_MS * 1000, LAST_MS * 1000]
