"""Faults of record batches. All are DecodeErrors: hostile bytes raise nothing else in this package."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import DecodeError


class CorruptRecordError(DecodeError):
    """The batch is damaged: a wrong size or CRC. On the wire CORRUPT_MESSAGE (2)."""


class InvalidRecordError(DecodeError):
    """The batch is intact, but its contents break the format's rules. On the wire INVALID_RECORD (87).

    `index` is the 0-based index of the first bad record, or BATCH for the whole batch.
    """

    BATCH: Final = -1

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason if index == self.BATCH else f"record {index}: {reason}")
        self.index = index
        self.reason = reason


class UnsupportedMagicError(InvalidRecordError):
    """The batch is not of format 2 (0 and 1 are message sets of Kafka before 0.11)."""

    def __init__(self, magic: int) -> None:
        super().__init__(self.BATCH, f"magic {magic} is not 2, the only record batch version that is served")
        self.magic = magic


# Faults of one record. Both kernels use these texts, so that they can be compared.
CUT_SHORT = "the records end before it does"
BAD_VARINT = "a varint in it does not fit its type"
BAD_SIZE = "its size is smaller than its parts"
BAD_OFFSET = "its offset delta is out of order"
BAD_TIMESTAMP = "its timestamp does not fit an int64"
BAD_KEY = "its key does not fit in it"
BAD_VALUE = "its value does not fit in it"
BAD_HEADERS = "its headers do not fit in it"
LEFT_OVER = "bytes are left over at its end"
# Faults of the batch (index BATCH).
BAD_COUNT = "the header counts more records than its bytes can hold"
BYTES_AFTER_LAST = "bytes are left over after the last record"

REASONS: Final = (
    "",
    CUT_SHORT,
    BAD_VARINT,
    BAD_SIZE,
    BAD_OFFSET,
    BAD_TIMESTAMP,
    BAD_KEY,
    BAD_VALUE,
    BAD_HEADERS,
    LEFT_OVER,
    BAD_COUNT,
    BYTES_AFTER_LAST,
)
"""In the order of Fault in _walk.pxd, for the compiled kernels."""
