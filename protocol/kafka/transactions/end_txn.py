"""EndTxn (26), versions 0-5.

From version 5 on the producer gets a new epoch for each transaction, in the answer (KIP-890). Below version 2,
PRODUCER_FENCED is INVALID_PRODUCER_EPOCH, as in Kafka.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import BOOL, INT16, INT64, NO_THROTTLE, STRING, Message, since, until
from barnabas.protocol.kafka.transactions.old_errors import ERROR_WITHOUT_FENCING
from barnabas.protocol.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse

_EPOCH_BUMP_FROM: Final = 5

REQUEST = Message(3, EndTxnRequest, transactional_id=STRING, producer_id=INT64, producer_epoch=INT16, is_commit=BOOL)
RESPONSE = Message(
    3,
    throttle_ms=NO_THROTTLE,
    error=since(2, INT16),
    error_without_fencing=until(1, ERROR_WITHOUT_FENCING),
    producer_id=since(_EPOCH_BUMP_FROM, INT64),
    producer_epoch=since(_EPOCH_BUMP_FROM, INT16),
)

_ONE_BYTE_SIZES: Final = 0x80
_REQUEST_END: Final = Struct(">qh?B")
"""Producer id, epoch, whether it commits, number of tagged fields."""
_RESPONSE_5: Final = Struct(">ihqhB")
"""Throttle time, error, producer id, epoch, number of tagged fields."""


def decode_request(version: int, body: memoryview) -> EndTxnRequest:
    """Raises DecodeError."""
    if version >= _EPOCH_BUMP_FROM and (request := _decode_usual(body)) is not None:
        return request
    return _decode(version, body)


def encode_response(version: int, response: EndTxnResponse) -> bytes:
    """The code, and from version 5 on the id and epoch of the next transaction."""
    if version == _EPOCH_BUMP_FROM:
        return _RESPONSE_5.pack(0, response.error, response.producer_id, response.producer_epoch, 0)
    return RESPONSE.write(version, response)


def _decode_usual(body: memoryview) -> EndTxnRequest | None:
    """Decode version 5 without tagged fields, which every transaction sends; None for what has another form."""
    end = len(body) - _REQUEST_END.size
    if end < 1 or body[0] != end or end >= _ONE_BYTE_SIZES:
        return None
    producer_id, epoch, is_commit, tagged_fields = _REQUEST_END.unpack_from(body, end)
    if tagged_fields:
        return None
    try:
        name = str(body[1:end], "utf-8")
    except UnicodeDecodeError:
        return None
    return EndTxnRequest(name, producer_id, epoch, is_commit, bumps_epoch=True)


def _decode(version: int, body: memoryview) -> EndTxnRequest:
    request: EndTxnRequest = REQUEST.read(version, body)
    request.bumps_epoch = version >= _EPOCH_BUMP_FROM
    return request


def encode_error(version: int, request: EndTxnRequest, code: ErrorCode, message: str) -> bytes:
    """The code, and no id."""
    return RESPONSE.write(version, EndTxnResponse(code))
