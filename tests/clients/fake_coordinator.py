"""A transaction coordinator for the fake broker: epochs and outcomes of transactional ids, without markers in logs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.data.produce import ProduceRequest
from barnabas.protocol.messages.groups.offset_commit import OffsetCommitPartitionResult, OffsetCommitTopicResult
from barnabas.protocol.messages.transactions.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from barnabas.protocol.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    refused_topics,
)
from barnabas.protocol.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from barnabas.protocol.topic_partition import TopicPartition

FENCED = EndTxnResponse(error=ErrorCode.PRODUCER_FENCED)


@dataclass
class FakeTransactionalId:
    """`outcomes` has one entry per ended transaction: True for a commit. `added`: partitions and groups, until then."""

    producer_id: int
    epoch: int = 0
    is_open: bool = False
    outcomes: list[bool] = field(default_factory=list)
    offsets: list[TxnOffsetCommitRequest] = field(default_factory=list)
    added: set[TopicPartition | str] = field(default_factory=set)


class FakeCoordinator:
    """`raises_epoch`: as with transaction.version 2, each end of a transaction raises the epoch.

    Otherwise it is 0: nothing may be written that was not added to the transaction before.
    """

    def __init__(self) -> None:
        self.raises_epoch = True
        self.will_raise_epoch = False
        self.ids: dict[str, FakeTransactionalId] = {}
        self._next_producer_id = 7000

    def initialize(self, request: InitProducerIdRequest) -> InitProducerIdResponse:
        assert request.transactional_id is not None
        known = self.ids.get(request.transactional_id)
        if known is None:
            known = self.ids[request.transactional_id] = FakeTransactionalId(self._next_producer_id)
            self._next_producer_id += 1
        else:
            if request.producer_id >= 0 and request.producer_epoch != known.epoch:
                return InitProducerIdResponse(error=ErrorCode.PRODUCER_FENCED)
            if known.is_open:  # aborted in the next epoch, which the new producer does not get
                known.outcomes.append(False)
                known.epoch += 1
            known.is_open = False
            known.added.clear()
            known.epoch += 1
        return InitProducerIdResponse(producer_id=known.producer_id, producer_epoch=known.epoch)

    @property
    def transaction_version(self) -> int:
        """The finalized level."""
        return 2 if self.raises_epoch or self.will_raise_epoch else 0

    def add(self, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        known = self.ids[request.transactional_id]
        error = ErrorCode.NONE if request.producer_epoch == known.epoch else ErrorCode.PRODUCER_FENCED
        if error is ErrorCode.NONE:
            known.is_open = True
            known.added |= {TopicPartition(topic.name, each) for topic in request.topics for each in topic.partitions}
        return AddPartitionsToTxnResponse(topics=refused_topics(request.topics, error))

    def add_group(self, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
        known = self.ids[request.transactional_id]
        if request.producer_epoch != known.epoch:
            return AddOffsetsToTxnResponse(error=ErrorCode.PRODUCER_FENCED)
        known.is_open = True
        known.added.add(request.group_id)
        return AddOffsetsToTxnResponse()

    def takes(self, request: ProduceRequest, partition: TopicPartition) -> bool:
        """Whether a transactional write may happen, by the rules of the version of its request."""
        assert request.transactional_id is not None
        known = self.ids[request.transactional_id]
        assert (request.version > 11) == self.raises_epoch
        if self.raises_epoch:
            known.is_open = True
        return self.raises_epoch or partition in known.added

    def end(self, request: EndTxnRequest) -> EndTxnResponse:
        known = self.ids[request.transactional_id]
        assert request.bumps_epoch == self.raises_epoch
        if request.producer_epoch == known.epoch - 1 and not known.is_open and self.raises_epoch:
            return EndTxnResponse(
                error=ErrorCode.NONE, producer_id=known.producer_id, producer_epoch=known.epoch
            )  # repeated
        if request.producer_epoch != known.epoch:
            return FENCED
        if not known.is_open and not self.raises_epoch:
            repeated = bool(known.outcomes) and known.outcomes[-1] is request.is_commit
            return self._ended(known) if repeated else EndTxnResponse(error=ErrorCode.INVALID_TXN_STATE)
        known.outcomes.append(request.is_commit)
        known.is_open = False
        known.added.clear()
        known.epoch += self.raises_epoch
        return self._ended(known)

    def commit_offsets(self, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
        known = self.ids[request.transactional_id]
        error = ErrorCode.NONE if request.producer_epoch == known.epoch else ErrorCode.INVALID_PRODUCER_EPOCH
        assert request.adds_offsets == self.raises_epoch
        if not self.raises_epoch and request.group_id not in known.added:
            error = ErrorCode.INVALID_TXN_STATE
        if error is ErrorCode.NONE:
            known.is_open = True
            known.offsets.append(request)
        return refused_offsets(request, error)

    def _ended(self, known: FakeTransactionalId) -> EndTxnResponse:
        return EndTxnResponse(error=ErrorCode.NONE, producer_id=known.producer_id, producer_epoch=known.epoch)


def refused_offsets(request: Any, error: ErrorCode) -> TxnOffsetCommitResponse:
    """A response with this code for every partition."""
    return TxnOffsetCommitResponse(
        topics=[
            OffsetCommitTopicResult(
                name=topic.name,
                partitions=[OffsetCommitPartitionResult(each.partition, error) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )
