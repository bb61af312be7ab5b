"""What the cleaner's kernels give back; both make these, so that they can be compared."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

ENTRY_BYTES: Final = 24
"""One slot of the offset table: a hash of 16 bytes and an offset of 8."""

HASH_MASK: Final = 2**128 - 1


class Stop(IntEnum):
    """Why a pass over a buffer of batches ended where it did."""

    CUT = 0
    """The buffer holds no whole batch from there on."""
    ASIDE = 1
    """The batch there is compressed, of a transaction, a control batch or of an old format: the caller's."""
    FULL = 2
    """The offset table may take no more keys."""
    NO_ROOM = 3
    """What the batch there becomes does not fit into what is left of the output buffer."""


class AddedBatches(NamedTuple):
    """`position` is where the first batch that was not (wholly) taken begins; `latest_offset` -1 when there is none."""

    position: int
    stop: Stop
    records_read: int
    latest_offset: int


class AddedRecords(NamedTuple):
    """`last_offset` is that of the record put last, -1 for none."""

    is_full: bool
    records_read: int
    last_offset: int


class FilterRules(NamedTuple):
    """What a filter goes by: the same for all batches of a segment."""

    latest_offset: int
    """Up to where the table knows all keys: records above stay."""
    now_ms: int
    new_horizon_ms: int
    """From when on tombstones may go that get their delete horizon now."""
    round_end_offset: int
    """The first offset that this round does not clean: the batch before it stays even if it is emptied."""
    last_data_batches: bytes
    """Pairs of native int64 (last offset, producer id), ascending: active producers' last batches stay if emptied."""


class FilteredBatches(NamedTuple):
    """`batches`: (position in the output, size, last offset, maximum timestamp) of each batch written.

    `room_needed` is set with NO_ROOM: the bytes that the batch at `position` takes.
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
    """One batch's records after the filter; `payload` is None when it stays as it is, and for no records."""

    records_kept: int
    records_invalid: int
    payload: bytes | None
    sets_horizon: bool
    base_timestamp: int
    max_timestamp: int
