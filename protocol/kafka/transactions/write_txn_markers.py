"""WriteTxnMarkers (27), versions 1-2. Version 2 added the marker's transaction version (KIP-1228)."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import BOOL, INT8, INT16, INT32, INT64, STRING, Array, Message, Struct, rows, since
from barnabas.protocol.messages.transactions.add_partitions_to_txn import TxnTopic
from barnabas.protocol.messages.transactions.write_txn_markers import (
    TxnMarker,
    WriteTxnMarkersRequest,
    refuse_markers,
)

_MARKER = Struct(
    TxnMarker,
    producer_id=INT64,
    producer_epoch=INT16,
    is_commit=BOOL,
    topics=rows(TxnTopic, name=STRING, partitions=Array(INT32)),
    coordinator_epoch=INT32,
    transaction_version=since(2, INT8),
)
REQUEST = Message(1, WriteTxnMarkersRequest, markers=Array(_MARKER))

_TOPICS = rows(name=STRING, partitions=rows(partition=INT32, error=INT16))
RESPONSE = Message(1, markers=rows(producer_id=INT64, topics=_TOPICS))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: WriteTxnMarkersRequest, code: ErrorCode, message: str) -> bytes:
    """The code for every partition."""
    return RESPONSE.write(version, refuse_markers(request, code))
