"""write_txn_markers (27), describe_transactions (65), list_transactions (66): transactions, for operators.

write_txn_markers      request   markers [[producer_id, producer_epoch, commit bool, coordinator_epoch,
                                           transaction_version, [[topic, [partition]]]]]
                       response  markers [[producer_id, [[topic, [[partition, error]]]]]]
list_transactions      request   states [str], producer_ids [int], duration_ms int, pattern str or nil
                       response  error, transactions [[transactional_id, producer_id, state]], unknown_states [str]
describe_transactions  request   transactional_ids [str]
                       response  transactions [[transactional_id, error, state, timeout_ms, start_time_ms, producer_id,
                                                producer_epoch, [[topic, [partition]]]]]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas.protocol.messages.transactions.add_partitions_to_txn import TxnPartitionResult, TxnTopic, TxnTopicResult
from barnabas.protocol.messages.transactions.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionDescription,
)
from barnabas.protocol.messages.transactions.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionListing,
)
from barnabas.protocol.messages.transactions.write_txn_markers import (
    TxnMarker,
    TxnMarkerResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.protocol.native.fields import (
    INT8,
    INT16,
    INT32,
    INT64,
    array,
    boolean,
    error_code,
    field,
    integer,
    optional_text,
    partition_number,
    row,
    text,
    topics_of,
)


def encode_markers(request: WriteTxnMarkersRequest) -> dict[str, Any]:
    """A row for each marker."""
    return {
        "markers": [
            [
                each.producer_id,
                each.producer_epoch,
                each.is_commit,
                each.coordinator_epoch,
                each.transaction_version,
                _rows_of(each.topics),
            ]
            for each in request.markers
        ]
    }


def decode_markers(body: dict[str, Any]) -> WriteTxnMarkersRequest:
    """Raises DecodeError, naming the field."""
    return WriteTxnMarkersRequest(markers=[_marker(each) for each in array(field(body, "markers"), "markers")])


def encode_markers_response(response: WriteTxnMarkersResponse) -> dict[str, Any]:
    """A row for each marker."""
    return {"markers": [[each.producer_id, _results(each.topics)] for each in response.markers]}


def decode_markers_response(body: dict[str, Any]) -> WriteTxnMarkersResponse:
    """Raises DecodeError, naming the field."""
    return WriteTxnMarkersResponse(markers=[_marker_result(each) for each in array(field(body, "markers"), "markers")])


def encode_list(request: ListTransactionsRequest) -> dict[str, Any]:
    """The filters."""
    return {
        "states": request.states,
        "producer_ids": request.producer_ids,
        "duration_ms": request.duration_ms,
        "pattern": request.transactional_id_pattern,
    }


def decode_list(body: dict[str, Any]) -> ListTransactionsRequest:
    """Raises DecodeError, naming the field."""
    return ListTransactionsRequest(
        states=[text(each, "states[]") for each in array(field(body, "states", []), "states")],
        producer_ids=[
            integer(each, "producer_ids[]", INT64) for each in array(field(body, "producer_ids", []), "producer_ids")
        ],
        duration_ms=integer(field(body, "duration_ms", -1), "duration_ms", INT64),
        transactional_id_pattern=optional_text(field(body, "pattern", None), "pattern"),
    )


def encode_list_response(response: ListTransactionsResponse) -> dict[str, Any]:
    """A row for each transactional id."""
    return {
        "error": int(response.error),
        "transactions": [[each.transactional_id, each.producer_id, each.state] for each in response.transactions],
        "unknown_states": response.unknown_states,
    }


def decode_list_response(body: dict[str, Any]) -> ListTransactionsResponse:
    """Raises DecodeError, naming the field."""
    return ListTransactionsResponse(
        transactions=[_listing(each) for each in array(field(body, "transactions"), "transactions")],
        unknown_states=[
            text(each, "unknown_states[]") for each in array(field(body, "unknown_states"), "unknown_states")
        ],
        error=error_code(field(body, "error"), "error"),
    )


def encode_describe(request: DescribeTransactionsRequest) -> dict[str, Any]:
    """The ids."""
    return {"transactional_ids": request.transactional_ids}


def decode_describe(body: dict[str, Any]) -> DescribeTransactionsRequest:
    """Raises DecodeError, naming the field."""
    ids = array(field(body, "transactional_ids"), "transactional_ids")
    return DescribeTransactionsRequest(transactional_ids=[text(each, "transactional_ids[]") for each in ids])


def encode_describe_response(response: DescribeTransactionsResponse) -> dict[str, Any]:
    """A row for each transactional id."""
    return {
        "transactions": [
            [
                each.transactional_id,
                int(each.error),
                each.state,
                each.timeout_ms,
                each.start_time_ms,
                each.producer_id,
                each.producer_epoch,
                _rows_of(each.topics),
            ]
            for each in response.transactions
        ]
    }


def decode_describe_response(body: dict[str, Any]) -> DescribeTransactionsResponse:
    """Raises DecodeError, naming the field."""
    return DescribeTransactionsResponse(
        transactions=[_description(each) for each in array(field(body, "transactions"), "transactions")]
    )


def _rows_of(topics: Sequence[TxnTopic]) -> list[Any]:
    return [[topic.name, topic.partitions] for topic in topics]


def _results(topics: Sequence[TxnTopicResult]) -> list[Any]:
    return [[topic.name, [[each.partition, int(each.error)] for each in topic.partitions]] for topic in topics]


def _partition_result(entry: Any) -> TxnPartitionResult:
    partition, error = row(entry, "partitions[]", 2)
    return TxnPartitionResult(partition=integer(partition, "partition", INT32), error=error_code(error, "error"))


def _marker(entry: Any) -> TxnMarker:
    producer_id, epoch, is_commit, coordinator_epoch, version, topics = row(entry, "markers[]", 6)
    return TxnMarker(
        producer_id=integer(producer_id, "producer_id", INT64),
        producer_epoch=integer(epoch, "producer_epoch", INT16),
        is_commit=boolean(is_commit, "commit"),
        topics=topics_of(topics, TxnTopic, partition_number),
        coordinator_epoch=integer(coordinator_epoch, "coordinator_epoch", INT32),
        transaction_version=integer(version, "transaction_version", INT8),
    )


def _marker_result(entry: Any) -> TxnMarkerResult:
    producer_id, topics = row(entry, "markers[]", 2)
    return TxnMarkerResult(
        producer_id=integer(producer_id, "producer_id", INT64),
        topics=topics_of(topics, TxnTopicResult, _partition_result),
    )


def _listing(entry: Any) -> TransactionListing:
    transactional_id, producer_id, state = row(entry, "transactions[]", 3)
    return TransactionListing(
        transactional_id=text(transactional_id, "transactional_id"),
        producer_id=integer(producer_id, "producer_id", INT64),
        state=text(state, "state"),
    )


def _description(entry: Any) -> TransactionDescription:
    transactional_id, error, state, timeout_ms, start_time_ms, producer_id, epoch, topics = row(
        entry, "transactions[]", 8
    )
    return TransactionDescription(
        transactional_id=text(transactional_id, "transactional_id"),
        error=error_code(error, "error"),
        state=text(state, "state"),
        timeout_ms=integer(timeout_ms, "timeout_ms", INT32),
        start_time_ms=integer(start_time_ms, "start_time_ms", INT64),
        producer_id=integer(producer_id, "producer_id", INT64),
        producer_epoch=integer(epoch, "producer_epoch", INT16),
        topics=topics_of(topics, TxnTopic, partition_number),
    )
