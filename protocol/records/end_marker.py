"""The control batch that ends a transaction in a partition, with one record.

    key    int16 version 0 | int16 type: 0 abort, 1 commit
    value  int16 version | int32 coordinator epoch         higher versions only append fields

Source: Kafka ControlRecordType, EndTransactionMarker, EndTxnMarker.json, MemoryRecords.withEndTransactionMarker.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from barnabas.protocol.crc32c import crc32c
from barnabas.protocol.records.errors import InvalidRecordError
from barnabas.protocol.records.layout import (
    ATTRIBUTES_POSITION,
    CONTROL_MASK,
    CRC_POSITION,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    NO_PARTITION_LEADER_EPOCH,
    NO_SEQUENCE,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
)

ABORT_TYPE: Final = 0
COMMIT_TYPE: Final = 1

_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")

assert _KEY.size == 4
assert _VALUE.size == 6

_BATCH: Final = Struct(HEADER.format + "BBBBBhhBhiB")
"""Header and record: size, attributes, both deltas, key size, key, value size, value, header count."""

MARKER_BATCH_BYTES: Final = _BATCH.size
_RECORD_BYTES: Final = MARKER_BATCH_BYTES - HEADER_SIZE - 1
_ATTRIBUTES: Final = TRANSACTIONAL_MASK | CONTROL_MASK

assert MARKER_BATCH_BYTES == 78


class EndMarker(NamedTuple):
    """How a transaction ended, and the epoch of the coordinator that ended it."""

    is_commit: bool
    coordinator_epoch: int


def is_end_marker(key: bytes | None) -> bool:
    """Return whether a control record's key is an end marker's; other control records belong to the metadata log."""
    return key is not None and len(key) >= _KEY.size and _KEY.unpack_from(key)[1] in (ABORT_TYPE, COMMIT_TYPE)


def decode_end_marker(key: bytes | None, value: bytes | None) -> EndMarker:
    """Decode a control record's key and value. Raises InvalidRecordError if it is not an end marker."""
    if key is None or not is_end_marker(key):
        raise InvalidRecordError(InvalidRecordError.BATCH, "a control record that ends no transaction")
    if value is None or len(value) < _VALUE.size:
        raise InvalidRecordError(InvalidRecordError.BATCH, f"an end marker of {len(value or b'')} bytes")
    version, coordinator_epoch = _VALUE.unpack_from(value)
    if version < 0:
        raise InvalidRecordError(InvalidRecordError.BATCH, f"an end marker of version {version}")
    return EndMarker(_KEY.unpack_from(key)[1] == COMMIT_TYPE, coordinator_epoch)


def encode_end_marker(marker: EndMarker) -> tuple[bytes, bytes]:
    """Return key and value."""
    control_type = COMMIT_TYPE if marker.is_commit else ABORT_TYPE
    return _KEY.pack(0, control_type), _VALUE.pack(0, marker.coordinator_epoch)


def encode_marker_batch(
    producer_id: int,
    producer_epoch: int,
    marker: EndMarker,
    timestamp_ms: int,
    *,
    log_append_time: bool = False,
) -> bytearray:
    """Return the control batch of an end marker, with base offset 0 and no leader epoch.

    `log_append_time`: the topic stores append times.
    """
    batch = bytearray(MARKER_BATCH_BYTES)
    _BATCH.pack_into(
        batch,
        0,
        0,
        MARKER_BATCH_BYTES - LOG_OVERHEAD,
        NO_PARTITION_LEADER_EPOCH,
        MAGIC_V2,
        0,
        _ATTRIBUTES | TIMESTAMP_TYPE_MASK if log_append_time else _ATTRIBUTES,
        0,
        timestamp_ms,
        timestamp_ms,
        producer_id,
        producer_epoch,
        NO_SEQUENCE,
        1,
        _RECORD_BYTES << 1,  # sizes are zigzag varints, here of one byte
        0,
        0,
        0,
        _KEY.size << 1,
        0,
        COMMIT_TYPE if marker.is_commit else ABORT_TYPE,
        _VALUE.size << 1,
        0,
        marker.coordinator_epoch,
        0,
    )
    batch[CRC_POSITION:ATTRIBUTES_POSITION] = crc32c(batch[ATTRIBUTES_POSITION:]).to_bytes(4, "big")
    return batch
