"""Results of a scan over stored batches, the same for both implementations."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class ScanFault(Enum):
    """Why a scan stopped before the end; the value completes "the batch at position P ..."."""

    TORN = "is cut short by the end of the file"
    OLD_FORMAT = "is no batch, and no whole message of format version 0 or 1"
    BAD_HEADER = "has no header that was ever written"
    BAD_CRC = "does not have the CRC-32C that its header says"
    BAD_OFFSETS = "begins below the end of the batch before it"
    OVERFLOW = "is whole, but lies beyond what the segment's indexes can hold"


class ProducerBatch(NamedTuple):
    """Fields of a stored batch with a producer id that producer state needs."""

    position: int
    size_bytes: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_offset: int
    last_offset_delta: int
    max_timestamp: int
    record_count: int
    is_transactional: bool
    is_control: bool
