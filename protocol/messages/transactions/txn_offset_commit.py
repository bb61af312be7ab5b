"""TxnOffsetCommit (key 28): offsets of a group that take effect when the transaction commits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.offset_commit import (
    NO_GENERATION,
    OffsetCommitPartition,
    OffsetCommitTopic,
    OffsetCommitTopicResult,
    refused_topics,
)
from barnabas.protocol.messages.transactions.old_errors import without_abortable, without_loading
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Int16, Int32, Int64, NullableString, String

_LOADING_FROM: Final = 2
_ABORTABLE_FROM: Final = 4
_ADDS_OFFSETS_FROM: Final = 5


class TxnOffsetCommitResponse(Struct, flexible=3):
    """In the order of the request."""

    throttle_ms: Int32 = 0
    topics: Sequence[OffsetCommitTopicResult]

    def encode(self, version: int) -> bytes:
        """Replace the errors that a client of the version does not know."""
        if version < _ABORTABLE_FROM:
            for topic in self.topics:
                for each in topic.partitions:
                    each.error = without_abortable(each.error)
                    if version < _LOADING_FROM:
                        each.error = without_loading(each.error)
        return super().encode(version)


class TxnOffsetCommitPartition(OffsetCommitPartition):
    """That of an OffsetCommit, in other versions."""

    leader_epoch: Int32 = since(2, default=-1)


class TxnOffsetCommitTopic(OffsetCommitTopic):
    """That of an OffsetCommit, always by name."""

    partitions: Sequence[TxnOffsetCommitPartition]


class TxnOffsetCommitRequest(Request[TxnOffsetCommitResponse], api=ApiKey.TXN_OFFSET_COMMIT, flexible=3):
    """`generation`, `member_id` and `group_instance_id` are checked if they are given."""

    transactional_id: String
    group_id: String
    producer_id: Int64
    producer_epoch: Int16
    generation: Int32 = since(3, default=NO_GENERATION)
    member_id: String = since(3, default="")
    group_instance_id: NullableString = since(3, default=None)
    topics: Sequence[TxnOffsetCommitTopic]

    @property
    def adds_offsets(self) -> bool:
        """Whether it includes the group in the transaction, so that the client sends no AddOffsetsToTxn (KIP-890)."""
        return self.version >= _ADDS_OFFSETS_FROM

    def refused(self, code: ErrorCode, message: str) -> TxnOffsetCommitResponse:
        """The code for every partition."""
        return TxnOffsetCommitResponse(topics=refused_topics(self.topics, code))
