"""The one record of a control batch that ends a transaction in a partition.

    key    int16 version 0 | int16 type: 0 abort, 1 commit
    value  int16 version | int32 coordinator epoch         higher versions only append fields

Source: Kafka ControlRecordType, EndTransactionMarker, EndTxnMarker.json.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from barnabas.protocol.records.errors import InvalidRecordError

ABORT_TYPE: Final = 0
COMMIT_TYPE: Final = 1

_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")

assert _KEY.size == 4
assert _VALUE.size == 6


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
