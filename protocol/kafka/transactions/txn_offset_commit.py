"""TxnOffsetCommit (28), versions 0-5.

Version 2 added the leader epoch, version 3 the member. From version 5 on the request also adds the group to the
transaction (KIP-890). As in Kafka, TRANSACTION_ABORTABLE is INVALID_TXN_STATE below version 4, and
COORDINATOR_LOAD_IN_PROGRESS is COORDINATOR_NOT_AVAILABLE below version 2.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    INT16,
    INT32,
    INT64,
    NO_THROTTLE,
    NULLABLE_STRING,
    STRING,
    Array,
    Message,
    Struct,
    Versions,
    rows,
    since,
    until,
)
from barnabas.protocol.kafka.transactions.old_errors import ERROR_WITHOUT_ABORTABLE, ERROR_WITHOUT_LOADING
from barnabas.protocol.messages.groups.offset_commit import OffsetCommitPartition, OffsetCommitTopic
from barnabas.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest, refuse_txn_commit

_ADDS_OFFSETS_FROM: Final = 5

_OFFSET = Struct(
    OffsetCommitPartition,
    partition=INT32,
    offset=INT64,
    leader_epoch=since(2, INT32),
    metadata=NULLABLE_STRING,
)
REQUEST = Message(
    3,
    TxnOffsetCommitRequest,
    transactional_id=STRING,
    group_id=STRING,
    producer_id=INT64,
    producer_epoch=INT16,
    generation=since(3, INT32),
    member_id=since(3, STRING),
    group_instance_id=since(3, NULLABLE_STRING),
    topics=rows(OffsetCommitTopic, name=STRING, partitions=Array(_OFFSET)),
)
_RESULT = Struct(
    partition=INT32,
    error=since(4, INT16),
    error_without_abortable=Versions(ERROR_WITHOUT_ABORTABLE, since=2, until=3),
    error_without_loading=until(1, ERROR_WITHOUT_LOADING),
)
RESPONSE = Message(3, throttle_ms=NO_THROTTLE, topics=rows(name=STRING, partitions=Array(_RESULT)))

encode_response = RESPONSE.write


def decode_request(version: int, body: memoryview) -> TxnOffsetCommitRequest:
    """Raises DecodeError."""
    request: TxnOffsetCommitRequest = REQUEST.read(version, body)
    request.adds_offsets = version >= _ADDS_OFFSETS_FROM
    return request


def encode_error(version: int, request: TxnOffsetCommitRequest, code: ErrorCode, message: str) -> bytes:
    """The code for every partition."""
    return RESPONSE.write(version, refuse_txn_commit(request, code))
