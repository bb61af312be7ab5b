"""Keys of the records in `__transaction_state`: int16 version 0, transactional id (int16 size, UTF-8).

Keys of other versions are of records that this version does not know, and a load skips them, as in Kafka.
Source: Kafka's TransactionLogKey.json, TransactionLog.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Final

from barnabas.protocol.errors import DecodeError

_VERSION: Final = 0
_HEAD: Final = Struct(">hh")
_MAX_STRING_BYTES: Final = 0x7FFF
_KEPT_CHARACTERS: Final = 256


def encode_transaction_key(transactional_id: str) -> bytes:
    """Encode a key. Raises ValueError for an id above 32,767 bytes."""
    # Each transaction writes three. Clients choose the ids, so long ones are not kept.
    return _kept(transactional_id) if len(transactional_id) <= _KEPT_CHARACTERS else _encode(transactional_id)


def _encode(transactional_id: str) -> bytes:
    data = transactional_id.encode()
    if len(data) > _MAX_STRING_BYTES:
        raise ValueError(f"a transactional id of {len(data)} bytes is longer than {_MAX_STRING_BYTES}")
    return _HEAD.pack(_VERSION, len(data)) + data


_kept: Final = lru_cache(maxsize=1024)(_encode)


def decode_transaction_key(data: bytes) -> str | None:
    """Return the transactional id, None for a key of another version. Raises DecodeError."""
    if len(data) < _HEAD.size:
        raise DecodeError(f"a key of {len(data)} bytes is not a transactional id's")
    version, size = _HEAD.unpack_from(data)
    if version != _VERSION:
        return None
    if len(data) != _HEAD.size + size:
        raise DecodeError(f"a key of {len(data)} bytes has a transactional id of {size} bytes")
    try:
        return data[_HEAD.size :].decode()
    except UnicodeDecodeError as error:
        raise DecodeError(f"a transactional id is not UTF-8: {error}") from error
