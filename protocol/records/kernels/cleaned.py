"""Results of the cleaner's kernels, the same for both so that they can be compared."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

ENTRY_BYTES: Final = 24
"""Size of a slot of the offset table: a hash of 16 bytes and an offset of 8."""

HASH_MASK: Final = 2**128 - 1


class Stop(IntEnum):
    """Why a pass over a buffer of batches stopped."""

    CUT = 0
    """The buffer has no further complete batch."""
    ASIDE = 1
    """The next batch is compressed, transactional, a control batch or of an old format: the caller handles it."""
    FULL = 2
    """The offset table has reached its limit of keys."""
    NO_ROOM = 3
    """The next cleaned batch does not fit into the rest of the output buffer."""


class AddedBatches(NamedTuple):
    """`position` is the start of the first batch not taken completely; `latest_offset` is -1 if no offset was added."""

    position: int
    stop: Stop
    records_read: int
    latest_offset: int


class AddedRecords(NamedTuple):
    """`last_offset` is that of the record put last, -1 if none was put."""

    is_full: bool
    records_read: int
    last_offset: int


class FilterRules(NamedTuple):
    """Rules of a filter, the same for all batches of a segment."""

    latest_offset: int
    """Last offset that the table covers; records above it stay."""
    now_ms: int
    new_horizon_ms: int
    """Delete horizon for batches that get one in this pass."""
    round_end_offset: int
    """First offset that this round does not clean; the batch before it stays even when it becomes empty."""
    last_data_batches: bytes
    """Pairs of native int64 (last offset, producer id), ascending, of active producers' last batches.

    Those batches stay when they become empty.
    """


class FilteredBatches(NamedTuple):
    """`batches`: (position in the output, size, last offset, maximum timestamp) of each batch written.

    `room_needed` is set with NO_ROOM: the size of the cleaned batch at `position`.
    """

    position: int
    stop: Stop
    output_bytes: int
    batches: list[tuple[int, int, int, int]]
    records_read: int
    records_written: int
    records_invalid: int
    room_needed: int


class FilteredRecords(NamedTuple):
    """One batch's records after the filter; `payload` is None when the batch is unchanged or has no records left."""

    records_kept: int
    records_invalid: int
    payload: bytes | None
    sets_horizon: bool
    base_timestamp: int
    max_timestamp: int
