"""The kernel's buffers as Arrow record batches, with the columns that are the same in every row. Nothing is copied.

The topic and partition columns are built once, for the largest batch so far, and sliced.
"""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa

from barnabas.pipeline.reading.schema import CORRUPT_RECORD, HEADERS, Projection
from barnabas.protocol.records.kernels.columns_types import Columns, HeaderColumn, NullableBytes
from barnabas.protocol.topic_partition import TopicPartition

_NOW_ROWS = 1024


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
            return _fixed(data_type, columns.rows, columns.timestamp_us)
        if name == "timestampType":
            return _fixed(data_type, columns.rows, columns.timestamp_type)
        if name == HEADERS:
            return _headers_array(data_type, columns.rows, columns.headers)
        return self._constants[name].slice(0, columns.rows)

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
