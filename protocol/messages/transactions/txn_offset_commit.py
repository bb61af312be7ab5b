"""TxnOffsetCommit (key 28): offsets of a group that take effect when the transaction commits."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups.offset_commit import (
    NO_GENERATION,
    OffsetCommitPartitionResult,
    OffsetCommitTopic,
    OffsetCommitTopicResult,
)


@dataclass(slots=True)
class TxnOffsetCommitRequest:
    """The topics are those of an OffsetCommit, by name.

    `adds_offsets`: the request has version 5 or later, which includes the group in the transaction where it is not yet,
    so that the client sends no AddOffsetsToTxn. `generation`, `member_id` and `group_instance_id` (version 3) are
    checked if they are given.
    """

    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    topics: list[OffsetCommitTopic]
    generation: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None
    adds_offsets: bool = False


@dataclass(slots=True)
class TxnOffsetCommitResponse:
    """In the order of the request."""

    topics: list[OffsetCommitTopicResult]


def refuse_txn_commit(request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    """Return a response with the error for every partition: the message has no error of the whole request."""
    return TxnOffsetCommitResponse(
        [
            OffsetCommitTopicResult(
                topic.name, [OffsetCommitPartitionResult(each.partition, error) for each in topic.partitions]
            )
            for topic in request.topics
        ]
    )
