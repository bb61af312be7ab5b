"""One record, and what a deep check of a batch's records found."""

from __future__ import annotations

from typing import NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]
"""Header keys need not be unique; their order is kept."""


class Record(NamedTuple):
    """One record of a log. `timestamp` in ms, -1 = none. A null value on a compacted topic is a tombstone.

    A header key that is not UTF-8 is shown with replacement characters, as Java does; its bytes stay as they are in
    the batch.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class RecordsSummary(NamedTuple):
    """What `check_records` learns on its way through a batch.

    max_timestamp                    the largest, as readers see it (under LogAppendTime the header's); -1 = none
    offset_of_max_timestamp_delta    offset - base offset of the first record that has it; -1 = none
    min_timestamp                    the smallest of those that have one; -1 = none
    null_keys                        how many records have no key (a compacted topic takes none)
    decompressed_bytes               size of the records without compression
    """

    max_timestamp: int
    offset_of_max_timestamp_delta: int
    min_timestamp: int
    null_keys: int
    decompressed_bytes: int
