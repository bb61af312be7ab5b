"""end_txn (26), txn_offset_commit (28): a producer's transactions; the operators' requests are in transaction_admin.

end_txn            request   transactional_id, producer_id, producer_epoch, commit bool
                   response  error, producer_id, producer_epoch: those of the next transaction
txn_offset_commit  request   as commit_offsets, and transactional_id, producer_id, producer_epoch
                   response  topics [[name, [[partition, error]]]]

A transaction's partitions are added by produce and txn_offset_commit, so there is no request that adds them. The
producer takes a new epoch for each transaction if the cluster's transaction.version is 2; below, end_txn answers the
id and epoch that it was given.
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages.groups.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from barnabas.protocol.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitTopic,
)
from barnabas.protocol.native.fields import INT16, INT64, boolean, error_code, field, integer, text
from barnabas.protocol.native.groups import decode_commit, decode_commit_response, encode_commit, encode_commit_response


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
    transactional_id, producer_id, producer_epoch = _producer(body)
    return EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_commit=boolean(field(body, "commit"), "commit"),
    )


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
        error=error_code(field(body, "error"), "error"),
        producer_id=integer(field(body, "producer_id"), "producer_id", INT64),
        producer_epoch=integer(field(body, "producer_epoch"), "producer_epoch", INT16),
    )


def encode_commit_offsets(request: TxnOffsetCommitRequest) -> dict[str, Any]:
    """The body of a commit of offsets: that of commit_offsets, and the producer."""
    commit = OffsetCommitRequest(
        group_id=request.group_id,
        topics=request.topics,
        generation=request.generation,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
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
        transactional_id=transactional_id,
        group_id=commit.group_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        topics=[
            TxnOffsetCommitTopic(name=topic.name, partitions=[_transactional(each) for each in topic.partitions])
            for topic in commit.topics
        ],
        generation=commit.generation,
        member_id=commit.member_id,
        group_instance_id=commit.group_instance_id,
    )


def encode_commit_offsets_response(response: TxnOffsetCommitResponse) -> dict[str, Any]:
    """A code for each partition, as of commit_offsets."""
    return encode_commit_response(OffsetCommitResponse(topics=response.topics))


def decode_commit_offsets_response(body: dict[str, Any]) -> TxnOffsetCommitResponse:
    """Raises DecodeError, naming the field."""
    return TxnOffsetCommitResponse(topics=decode_commit_response(body).topics)


def _transactional(entry: OffsetCommitPartition) -> TxnOffsetCommitPartition:
    return TxnOffsetCommitPartition(
        partition=entry.partition, offset=entry.offset, leader_epoch=entry.leader_epoch, metadata=entry.metadata
    )


def _producer(body: dict[str, Any]) -> tuple[str, int, int]:
    return (
        text(field(body, "transactional_id"), "transactional_id"),
        integer(field(body, "producer_id"), "producer_id", INT64),
        integer(field(body, "producer_epoch"), "producer_epoch", INT16),
    )
