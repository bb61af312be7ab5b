"""What both column kernels take and give: which columns are wanted, why a fill ended, and the finished buffers."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import NamedTuple


class Wanted(IntFlag):
    """The columns to fill. What is not wanted is not touched: without KEY and VALUE no payload byte is copied."""

    KEY = 1
    VALUE = 2
    OFFSET = 4
    TIMESTAMP = 8
    TIMESTAMP_TYPE = 16
    HEADERS = 32


class Stop(IntEnum):
    """Why `fill` returned, with the builder's `position` at the batch that it is about."""

    CUT = 0
    """The buffer ends within the batch, or exactly before it."""
    FULL = 1
    """The rows or bytes that were asked for are there; the batch is not taken."""
    END = 2
    """The batch begins at the end offset or behind it: nothing more is wanted."""
    COMPRESSED = 3
    """Its records must be decompressed: `append_payload`, then `skip`."""
    TRANSACTIONAL = 4
    """A batch of a transaction, where the caller wants to judge those itself."""
    OLD_FORMAT = 5
    """A message set of version 0 or 1."""
    CORRUPT = 6
    """The batch is not what was written; `fault` says why. Nothing of it was taken."""


class NullableBytes(NamedTuple):
    """A column of nullable byte strings as Arrow lays them out.

    offsets   int32 per row and one more, native byte order: row i is data[offsets[i]:offsets[i + 1]]
    data      the bytes of all rows
    validity  a bit per row, least significant first, 0 is null
    """

    offsets: memoryview
    data: memoryview
    validity: memoryview
    null_count: int


class HeaderColumn(NamedTuple):
    """Lists of (key, value) as Arrow lays them out; a row without headers is null, as Spark's Kafka source has it.

    Keys are UTF-8: what is none is replaced as a client's decoder does.
    """

    offsets: memoryview
    validity: memoryview
    null_count: int
    header_count: int
    keys: NullableBytes
    values: NullableBytes


class Columns(NamedTuple):
    """The rows of one `take`. None: not wanted. Integers are in native byte order.

    offset          int64
    timestamp_us    int64, microseconds since 1970, saturated where milliseconds times 1000 would not fit
    timestamp_type  int32: 0 CreateTime, 1 LogAppendTime
    """

    rows: int
    key: NullableBytes | None
    value: NullableBytes | None
    offset: memoryview | None
    timestamp_us: memoryview | None
    timestamp_type: memoryview | None
    headers: HeaderColumn | None
