"""AddPartitionsToTxn (24), versions 0-5: one transaction up to version 3, several from version 4 on.

Versions up to 3 come from clients, later ones from brokers. PRODUCER_FENCED came with version 2; older clients get
INVALID_PRODUCER_EPOCH, as in Kafka. A batched request that is refused as a whole is
answered by its code without results.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
    NO_THROTTLE,
    STRING,
    Array,
    Computed,
    Message,
    Struct,
    rows,
    since,
    until,
)
from barnabas.protocol.kafka.transactions.old_errors import ERROR_WITHOUT_FENCING
from barnabas.protocol.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    TxnPartitions,
    TxnTopic,
    TxnTopicResult,
    refuse_partitions,
)

_BATCHED_FROM: Final = 4
_LAST_UNBATCHED: Final = 3
_FENCED_FROM: Final = 2


def _request(
    transactions: list[TxnPartitions] | None = None,
    transactional_id: str = "",
    producer_id: int = -1,
    producer_epoch: int = -1,
    topics: list[TxnTopic] | None = None,
) -> AddPartitionsToTxnRequest:
    if transactions is not None:
        return AddPartitionsToTxnRequest(transactions, is_batched=True)
    return AddPartitionsToTxnRequest([TxnPartitions(transactional_id, producer_id, producer_epoch, topics or [])])


_TOPICS = rows(TxnTopic, name=STRING, partitions=Array(INT32))
REQUEST = Message(
    3,
    _request,
    transactions=since(
        _BATCHED_FROM,
        rows(
            TxnPartitions,
            transactional_id=STRING,
            producer_id=INT64,
            producer_epoch=INT16,
            verify_only=BOOL,
            topics=_TOPICS,
        ),
    ),
    transactional_id=until(_LAST_UNBATCHED, STRING),
    producer_id=until(_LAST_UNBATCHED, INT64),
    producer_epoch=until(_LAST_UNBATCHED, INT16),
    topics=until(_LAST_UNBATCHED, _TOPICS),
)


def _topics_of_one(response: AddPartitionsToTxnResponse) -> list[TxnTopicResult]:
    (only,) = response.transactions
    return only.topics


_PARTITION = Struct(
    partition=INT32, error=since(_FENCED_FROM, INT16), error_without_fencing=until(1, ERROR_WITHOUT_FENCING)
)
_TOPIC_RESULTS = rows(name=STRING, partitions=Array(_PARTITION))
RESPONSE = Message(
    3,
    throttle_ms=NO_THROTTLE,
    error=since(_BATCHED_FROM, INT16),
    transactions=since(_BATCHED_FROM, rows(transactional_id=STRING, topics=_TOPIC_RESULTS)),
    topics=until(_LAST_UNBATCHED, Computed(_TOPIC_RESULTS, _topics_of_one)),
)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: AddPartitionsToTxnRequest, code: ErrorCode, message: str) -> bytes:
    """The code for every partition, or for the batched request."""
    if request.is_batched:
        return RESPONSE.write(version, AddPartitionsToTxnResponse([], code))
    return RESPONSE.write(version, refuse_partitions(request, code))
