"""Arguments and results of both column kernels: wanted columns, why a fill stopped, and the finished buffers."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import NamedTuple


class Wanted(IntFlag):
    """The columns to fill. Without KEY and VALUE no payload byte is copied."""

    KEY = 1
    VALUE = 2
    OFFSET = 4
    TIMESTAMP = 8
    TIMESTAMP_TYPE = 16
    HEADERS = 32


class Stop(IntEnum):
    """Why `fill` stopped at the batch at the builder's `position`."""

    CUT = 0
    """The buffer ends within the batch or exactly before it."""
    FULL = 1
    """The requested rows or bytes are reached; the batch is not taken."""
    END = 2
    """The batch starts at or after the end offset."""
    COMPRESSED = 3
    """Its records must be decompressed: `append_payload`, then `skip`."""
    TRANSACTIONAL = 4
    """The batch is transactional, and the caller wants to decide about those itself."""
    OLD_FORMAT = 5
    """A message set of format 0 or 1."""
    CORRUPT = 6
    """The batch is damaged, as `fault` explains. Nothing of it was taken."""


class NullableBytes(NamedTuple):
    """A column of nullable byte strings in Arrow's layout.

    offsets   int32 per row and one more, native byte order: row i is data[offsets[i]:offsets[i + 1]]
    data      the bytes of all rows
    validity  a bit per row, least significant first, 0 is null
    """

    offsets: memoryview
    data: memoryview
    validity: memoryview
    null_count: int


class HeaderColumn(NamedTuple):
    """Lists of (key, value) in Arrow's layout; a row without headers is null, as in Spark's Kafka source.

    Keys are the bytes of the record, which may be no UTF-8.
    """

    offsets: memoryview
    validity: memoryview
    null_count: int
    header_count: int
    keys: NullableBytes
    values: NullableBytes


class Columns(NamedTuple):
    """The rows of one `take`; a column that was not wanted is None. Integers are in native byte order.

    offset          int64
    timestamp_ms    int64, milliseconds since 1970
    timestamp_type  int32: 0 CreateTime, 1 LogAppendTime
    """

    rows: int
    key: NullableBytes | None
    value: NullableBytes | None
    offset: memoryview | None
    timestamp_ms: memoryview | None
    timestamp_type: memoryview | None
    headers: HeaderColumn | None
