"""end_txn (26), write_txn_markers (27), txn_offset_commit (28), describe_transactions (65), list_transactions (66).

end_txn                request   transactional_id, producer_id, producer_epoch, commit bool
                       response  error, producer_id, producer_epoch: those of the next transaction
txn_offset_commit      request   as commit_offsets, and transactional_id, producer_id, producer_epoch
                       response  topics [[name, [[partition, error]]]]
write_txn_markers      request   markers [[producer_id, producer_epoch, commit bool, coordinator_epoch,
                                           transaction_version, [[topic, [partition]]]]]
                       response  markers [[producer_id, [[topic, [[partition, error]]]]]]
list_transactions      request   states [str], producer_ids [int], duration_ms int, pattern str or nil
                       response  error, transactions [[transactional_id, producer_id, state]], unknown_states [str]
describe_transactions  request   transactional_ids [str]
                       response  transactions [[transactional_id, error, state, timeout_ms, start_time_ms, producer_id,
                                                producer_epoch, [[topic, [partition]]]]]

A transaction's partitions are added by produce and txn_offset_commit, so there is no request that adds them. The
producer takes a new epoch for each transaction if the cluster's transaction.version is 2; below, end_txn answers the
id and epoch that it was given.
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages.groups.offset_commit import (
    OffsetCommitPartitionResult,
    OffsetCommitRequest,
    OffsetCommitTopicResult,
)
from barnabas.protocol.messages.transactions.add_partitions_to_txn import TxnPartitionResult, TxnTopic, TxnTopicResult
from barnabas.protocol.messages.transactions.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionDescription,
)
from barnabas.protocol.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.transactions.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionListing,
)
from barnabas.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
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
from barnabas.protocol.native.groups import decode_commit, encode_commit


def encode_end(request: EndTxnRequest) -> dict[str, Any]:
    """The body of an end_txn request."""
    return {
        "transactional_id": request.transactional_id,
        "producer_id": request.producer_id,
        "producer_epoch": request.producer_epoch,
        "commit": request.is_commit,
    }


def decode_end(body: dict[str, Any]) -> EndTxnRequest:
    """Raises DecodeError, naming the field."""
    return EndTxnRequest(*_producer(body), boolean(field(body, "commit"), "commit"), bumps_epoch=True)


def encode_end_response(response: EndTxnResponse) -> dict[str, Any]:
    """The next transaction's id and epoch, or the error."""
    return {
        "error": int(response.error),
        "producer_id": response.producer_id,
        "producer_epoch": response.producer_epoch,
    }


def decode_end_response(body: dict[str, Any]) -> EndTxnResponse:
    """Raises DecodeError, naming the field."""
    return EndTxnResponse(
        error_code(field(body, "error"), "error"),
        integer(field(body, "producer_id"), "producer_id", INT64),
        integer(field(body, "producer_epoch"), "producer_epoch", INT16),
    )


def encode_commit_offsets(request: TxnOffsetCommitRequest) -> dict[str, Any]:
    """The body of a commit of offsets: that of commit_offsets, and the producer."""
    commit = OffsetCommitRequest(
        request.group_id, request.topics, request.generation, request.member_id, request.group_instance_id
    )
    return {
        **encode_commit(commit),
        "transactional_id": request.transactional_id,
        "producer_id": request.producer_id,
        "producer_epoch": request.producer_epoch,
    }


def decode_commit_offsets(body: dict[str, Any]) -> TxnOffsetCommitRequest:
    """Raises DecodeError, naming the field."""
    commit = decode_commit(body)
    transactional_id, producer_id, producer_epoch = _producer(body)
    return TxnOffsetCommitRequest(
        transactional_id,
        commit.group_id,
        producer_id,
        producer_epoch,
        commit.topics,
        commit.generation,
        commit.member_id,
        commit.group_instance_id,
        adds_offsets=True,
    )


def encode_commit_offsets_response(response: TxnOffsetCommitResponse) -> dict[str, Any]:
    """A code for each partition."""
    return {"topics": _results(response.topics)}


def decode_commit_offsets_response(body: dict[str, Any]) -> TxnOffsetCommitResponse:
    """Raises DecodeError, naming the field."""
    return TxnOffsetCommitResponse(
        topics_of(
            field(body, "topics"),
            OffsetCommitTopicResult,
            lambda entry: OffsetCommitPartitionResult(*_partition_and_error(entry)),
        )
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
    return WriteTxnMarkersRequest([_marker(each) for each in array(field(body, "markers"), "markers")])


def encode_markers_response(response: WriteTxnMarkersResponse) -> dict[str, Any]:
    """A row for each marker."""
    return {"markers": [[each.producer_id, _results(each.topics)] for each in response.markers]}


def decode_markers_response(body: dict[str, Any]) -> WriteTxnMarkersResponse:
    """Raises DecodeError, naming the field."""
    return WriteTxnMarkersResponse([_marker_result(each) for each in array(field(body, "markers"), "markers")])


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
        [text(each, "states[]") for each in array(field(body, "states", []), "states")],
        [integer(each, "producer_ids[]", INT64) for each in array(field(body, "producer_ids", []), "producer_ids")],
        integer(field(body, "duration_ms", -1), "duration_ms", INT64),
        optional_text(field(body, "pattern", None), "pattern"),
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
        [_listing(each) for each in array(field(body, "transactions"), "transactions")],
        [text(each, "unknown_states[]") for each in array(field(body, "unknown_states"), "unknown_states")],
        error_code(field(body, "error"), "error"),
    )


def encode_describe(request: DescribeTransactionsRequest) -> dict[str, Any]:
    """The ids."""
    return {"transactional_ids": request.transactional_ids}


def decode_describe(body: dict[str, Any]) -> DescribeTransactionsRequest:
    """Raises DecodeError, naming the field."""
    ids = array(field(body, "transactional_ids"), "transactional_ids")
    return DescribeTransactionsRequest([text(each, "transactional_ids[]") for each in ids])


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
        [_description(each) for each in array(field(body, "transactions"), "transactions")]
    )


def _producer(body: dict[str, Any]) -> tuple[str, int, int]:
    return (
        text(field(body, "transactional_id"), "transactional_id"),
        integer(field(body, "producer_id"), "producer_id", INT64),
        integer(field(body, "producer_epoch"), "producer_epoch", INT16),
    )


def _rows_of(topics: list[TxnTopic]) -> list[Any]:
    return [[topic.name, topic.partitions] for topic in topics]


def _results(topics: list[TxnTopicResult] | list[OffsetCommitTopicResult]) -> list[Any]:
    return [[topic.name, [[each.partition, int(each.error)] for each in topic.partitions]] for topic in topics]


def _partition_and_error(entry: Any) -> tuple[int, Any]:
    partition, error = row(entry, "partitions[]", 2)
    return integer(partition, "partition", INT32), error_code(error, "error")


def _marker(entry: Any) -> TxnMarker:
    producer_id, epoch, is_commit, coordinator_epoch, version, topics = row(entry, "markers[]", 6)
    return TxnMarker(
        integer(producer_id, "producer_id", INT64),
        integer(epoch, "producer_epoch", INT16),
        boolean(is_commit, "commit"),
        topics_of(topics, TxnTopic, partition_number),
        integer(coordinator_epoch, "coordinator_epoch", INT32),
        integer(version, "transaction_version", INT8),
    )


def _marker_result(entry: Any) -> TxnMarkerResult:
    producer_id, topics = row(entry, "markers[]", 2)
    return TxnMarkerResult(
        integer(producer_id, "producer_id", INT64),
        topics_of(topics, TxnTopicResult, lambda each: TxnPartitionResult(*_partition_and_error(each))),
    )


def _listing(entry: Any) -> TransactionListing:
    transactional_id, producer_id, state = row(entry, "transactions[]", 3)
    return TransactionListing(
        text(transactional_id, "transactional_id"), integer(producer_id, "producer_id", INT64), text(state, "state")
    )


def _description(entry: Any) -> TransactionDescription:
    transactional_id, error, state, timeout_ms, start_time_ms, producer_id, epoch, topics = row(
        entry, "transactions[]", 8
    )
    return TransactionDescription(
        text(transactional_id, "transactional_id"),
        error_code(error, "error"),
        text(state, "state"),
        integer(timeout_ms, "timeout_ms", INT32),
        integer(start_time_ms, "start_time_ms", INT64),
        integer(producer_id, "producer_id", INT64),
        integer(epoch, "producer_epoch", INT16),
        topics_of(topics, TxnTopic, partition_number),
    )
