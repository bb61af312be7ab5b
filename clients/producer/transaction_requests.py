"""A transactional producer's requests to its coordinator, repeated until they are answered or api_timeout_ms is over.

Each may be repeated after a lost answer: the coordinator recognizes a repeated InitProducerId and EndTxn by the epoch,
and a repeated commit of offsets replaces the first one. Whole-request refusals and codes in answers are the same here.
Source: the handlers in Kafka's TransactionManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from barnabas.clients.config import ProducerConfig
from barnabas.clients.errors import CommitFailedError, RefusedError, reason_of
from barnabas.clients.group_offsets import CommittedOffset, ConsumerGroupMetadata, offset_topics
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.retrying import with_retries
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.groups.find_coordinator import GROUP_KEY, TRANSACTION_KEY
from barnabas.protocol.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from barnabas.protocol.topic_partition import TopicPartition

_NOT_A_MEMBER = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class ProducerEpoch(NamedTuple):
    """A producer id and epoch."""

    producer_id: int
    epoch: int


class TransactionRequests:
    """All methods raise RefusedError, BrokerConnectionError and BrokerTimeoutError."""

    def __init__(self, cluster: Cluster, config: ProducerConfig, transactional_id: str) -> None:
        self._cluster = cluster
        self._config = config
        self._transactional_id = transactional_id

    async def initialize(self, current: ProducerEpoch | None) -> ProducerEpoch:
        """Get an id and epoch that fence earlier producers; with `current`, the next epoch of this one.

        The coordinator aborts the transaction that an earlier producer left open.
        """
        request = InitProducerIdRequest(
            transactional_id=self._transactional_id,
            producer_id=-1 if current is None else current.producer_id,
            producer_epoch=-1 if current is None else current.epoch,
            transaction_timeout_ms=self._config.transaction_timeout_ms,
            enable_2pc=self._config.two_phase_commit,
        )

        async def attempt() -> ProducerEpoch:
            response: InitProducerIdResponse = await self._send(request)
            self._ensure_no_error(response.error)
            return ProducerEpoch(response.producer_id, response.producer_epoch)

        return await with_retries(self._config, ApiKey.INIT_PRODUCER_ID.label, attempt, coordinated_by=self._cluster)

    async def end(self, current: ProducerEpoch, *, commit: bool) -> ProducerEpoch:
        """Commit or abort. Returns the next transaction's id and epoch, which may be the same."""
        request = EndTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=current.producer_id,
            producer_epoch=current.epoch,
            is_commit=commit,
        )

        async def attempt() -> ProducerEpoch:
            response: EndTxnResponse = await self._send(request)
            self._ensure_no_error(response.error)
            if response.producer_id < 0:
                return current
            return ProducerEpoch(response.producer_id, response.producer_epoch)

        return await with_retries(self._config, ApiKey.END_TXN.label, attempt, coordinated_by=self._cluster)

    async def commit_offsets(
        self, current: ProducerEpoch, group: ConsumerGroupMetadata, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> None:
        """Make offsets of a group a part of the transaction. Raises CommitFailedError for a consumer that was replaced.

        Only partitions whose offset is not accepted yet are sent again.
        """
        left = dict(offsets)

        async def attempt() -> None:
            request = TxnOffsetCommitRequest(
                transactional_id=self._transactional_id,
                group_id=group.group,
                producer_id=current.producer_id,
                producer_epoch=current.epoch,
                generation=group.generation,
                member_id=group.member_id,
                group_instance_id=group.group_instance_id,
                topics=offset_topics(left),
            )
            connection = await self._cluster.coordinator(GROUP_KEY, group.group)
            response: TxnOffsetCommitResponse = await connection.request(request)
            refused: list[RefusedError] = []
            for topic in response.topics:
                for entry in topic.partitions:
                    partition = TopicPartition(topic.name, entry.partition)
                    if entry.error is ErrorCode.NONE:
                        left.pop(partition, None)
                    elif entry.error in _NOT_A_MEMBER:
                        raise CommitFailedError(group.group, entry.error)
                    else:
                        refused.append(RefusedError.of_partition(partition, entry.error, None))
            if refused:
                raise min(refused, key=lambda error: error.retriable)

        await with_retries(self._config, ApiKey.TXN_OFFSET_COMMIT.label, attempt, coordinated_by=self._cluster)

    async def _send(self, request: Any) -> Any:
        connection = await self._cluster.coordinator(TRANSACTION_KEY, self._transactional_id)
        return await connection.request(request)

    def _ensure_no_error(self, code: ErrorCode) -> None:
        if code is not ErrorCode.NONE:
            raise RefusedError(code, f"transactional id {self._transactional_id!r}: {reason_of(code)}")
