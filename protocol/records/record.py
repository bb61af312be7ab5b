"""One record, and the summary of a batch's records."""

from __future__ import annotations

from typing import NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]
"""Header keys need not be unique; their order is kept."""


class Record(NamedTuple):
    """One record of a log. `timestamp` in ms, -1 = none. A null value on a compacted topic is a tombstone.

    Bytes of a header key that are not UTF-8 are kept as os.fsdecode keeps them (`surrogateescape`), and written again
    as they were. Java's client replaces them.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def header_name_bytes(name: str) -> bytes:
    """Return the bytes of a header key. Raises UnicodeEncodeError for a surrogate that stands for no byte."""
    return name.encode("utf-8", "surrogateescape")


class RecordsSummary(NamedTuple):
    """Summary of a batch's records, computed by `check_records`.

    max_timestamp                    the largest, as readers see it (under LogAppendTime the header's); -1 = none
    offset_of_max_timestamp_delta    offset - base offset of the first record that has it; -1 = none
    min_timestamp                    the smallest timestamp except -1; -1 = none
    null_keys                        count of records without a key (a compacted topic accepts none)
    decompressed_bytes               size of the records without compression
    """

    max_timestamp: int
    offset_of_max_timestamp_delta: int
    min_timestamp: int
    null_keys: int
    decompressed_bytes: int
