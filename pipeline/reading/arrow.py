"""The kernel's buffers as Arrow record batches, with the columns that are the same in every row.

Only timestamps are copied, for they become microseconds. A record that a column's type cannot hold is refused by name.
The topic and partition columns are built once, for the largest batch so far, and sliced.
"""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa

from barnabas.pipeline.errors import RecordTypeError
from barnabas.pipeline.reading.schema import CORRUPT_RECORD, HEADERS, Projection
from barnabas.protocol.records.kernels.columns_types import Columns, HeaderColumn, NullableBytes
from barnabas.protocol.topic_partition import TopicPartition

_NOW_ROWS = 1024
_MAX_MS = (2**63 - 1) // 1000


class ArrowBatches:
    """Builds the Arrow batches of one partition."""

    def __init__(self, projection: Projection, topic_partition: TopicPartition) -> None:
        self._schema = projection.arrow
        self._names = projection.names
        self._topic_partition = topic_partition
        self._constant_rows = 0
        self._constants: dict[str, Any] = {}

    def batch(self, columns: Columns) -> pa.RecordBatch:
        """Return the rows of one `ColumnBuilder.take`."""
        if columns.rows > self._constant_rows:
            self._make_constants(max(columns.rows, _NOW_ROWS))
        arrays = [self._array(name, columns) for name in self._names]
        if not arrays:  # only the number of rows is needed, as for count()
            return pa.RecordBatch.from_struct_array(pa.array([{}] * columns.rows, type=pa.struct([])))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def corruption(self, offset: int, sentence: str) -> pa.RecordBatch:
        """Return one row that reports an unreadable batch; `offset` is where that batch was expected."""
        known = {
            "topic": self._topic_partition.topic,
            "partition": self._topic_partition.partition,
            "offset": offset,
            CORRUPT_RECORD: sentence,
        }
        arrays = [pa.array([known.get(name)], type=self._schema.field(i).type) for i, name in enumerate(self._names)]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _array(self, name: str, columns: Columns) -> Any:
        data_type = self._schema.field(self._names.index(name)).type
        if name == "key":
            return _bytes_array(data_type, columns.rows, columns.key)
        if name == "value":
            return _bytes_array(data_type, columns.rows, columns.value)
        if name == "offset":
            return _fixed(data_type, columns.rows, columns.offset)
        if name == "timestamp":
            return self._timestamps(data_type, columns)
        if name == "timestampType":
            return _fixed(data_type, columns.rows, columns.timestamp_type)
        if name == HEADERS:
            return self._headers(data_type, columns)
        return self._constants[name].slice(0, columns.rows)

    def _timestamps(self, data_type: pa.DataType, columns: Columns) -> pa.Array:
        if pa.types.is_integer(data_type):
            return _fixed(data_type, columns.rows, columns.timestamp_ms)
        milliseconds = _fixed(pa.timestamp("ms", data_type.tz), columns.rows, columns.timestamp_ms)
        try:
            return milliseconds.cast(data_type)
        except pa.ArrowInvalid:
            assert columns.timestamp_ms is not None
            times = columns.timestamp_ms.cast("q")
            row = next(row for row, time in enumerate(times) if not -_MAX_MS <= time <= _MAX_MS)
            raise self._refusal(
                columns,
                row,
                f"has timestamp value {times[row]} that overflows when converting to Spark's microsecond-precision "
                "TimestampType (a schema with `timestamp long` reads the milliseconds)",
            ) from None

    def _headers(self, data_type: pa.DataType, columns: Columns) -> pa.Array:
        assert columns.headers is not None
        found = _headers_array(data_type, columns.rows, columns.headers)
        if not pa.types.is_string(data_type.value_type.field(0).type):
            return found
        try:
            found.values.field(0).validate(full=True)
        except pa.ArrowInvalid:
            keys, ends = columns.headers.keys, columns.headers.offsets.cast("i")
            bounds = keys.offsets.cast("i")
            names = [bytes(keys.data[bounds[at] : bounds[at + 1]]) for at in range(columns.headers.header_count)]
            bad = next(at for at, name in enumerate(names) if not _is_utf8(name))
            row = next(row for row in range(columns.rows) if ends[row + 1] > bad)
            raise self._refusal(
                columns,
                row,
                f"has a header name that is not UTF-8, {names[bad]!r} (a schema with "
                "`headers array<struct<key: binary, value: binary>>` reads its bytes)",
            ) from None
        return found

    def _refusal(self, columns: Columns, row: int, problem: str) -> RecordTypeError:
        assert columns.offset is not None
        offset = columns.offset.cast("q")[row]
        return RecordTypeError(f"the record at offset {offset} of {self._topic_partition} {problem}")

    def _make_constants(self, rows: int) -> None:
        self._constant_rows = rows
        topic, partition = self._topic_partition
        name = topic.encode()
        offsets = pa.py_buffer(struct.pack(f"={rows + 1}i", *range(0, (rows + 1) * len(name), len(name) or 1)))
        self._constants = {
            "topic": pa.Array.from_buffers(pa.string(), rows, [None, offsets, pa.py_buffer(name * rows)]),
            "partition": pa.Array.from_buffers(
                pa.int32(), rows, [None, pa.py_buffer(struct.pack("=i", partition) * rows)]
            ),
            CORRUPT_RECORD: pa.nulls(rows, pa.string()),
        }


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _fixed(data_type: pa.DataType, rows: int, data: memoryview | None) -> pa.Array:
    assert data is not None
    return pa.Array.from_buffers(data_type, rows, [None, pa.py_buffer(data)])


def _bytes_array(data_type: pa.DataType, rows: int, column: NullableBytes | None) -> pa.Array:
    assert column is not None
    validity = pa.py_buffer(column.validity) if column.null_count else None
    buffers = [validity, pa.py_buffer(column.offsets), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(data_type, rows, buffers, column.null_count)


def _headers_array(data_type: pa.DataType, rows: int, column: HeaderColumn | None) -> pa.Array:
    assert column is not None
    entry = data_type.value_type
    children = [
        _bytes_array(entry.field(0).type, column.header_count, column.keys),
        _bytes_array(entry.field(1).type, column.header_count, column.values),
    ]
    entries = pa.Array.from_buffers(entry, column.header_count, [None], 0, children=children)
    validity = pa.py_buffer(column.validity) if column.null_count else None
    return pa.Array.from_buffers(
        data_type, rows, [validity, pa.py_buffer(column.offsets)], column.null_count, children=[entries]
    )
