"""A transactional producer's requests to its coordinator, repeated until they are answered or api_timeout_ms is over.

Each may be repeated after a lost answer: the coordinator recognizes a repeated InitProducerId and EndTxn by the epoch,
and a repeated commit of offsets replaces the first one. Whole-request refusals and codes in answers are the same here.

With transaction.version 2, a produce and a commit of offsets add what they write to the transaction, and its end gives
the next epoch. With 0 and 1, also that of every broker before Kafka 4.0, the coordinator is told before the first write
to a partition and of a group; the versions of the requests say which rules their sender follows.
Source: the handlers in Kafka's TransactionManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from barnabas.clients.config import ProducerConfig
from barnabas.clients.errors import CommitFailedError, RefusedError, reason_of
from barnabas.clients.group_offsets import CommittedOffset, ConsumerGroupMetadata, offset_topics
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.connection import Connection
from barnabas.clients.network.retrying import with_retries
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.groups.find_coordinator import GROUP_KEY, TRANSACTION_KEY
from barnabas.protocol.messages.transactions.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from barnabas.protocol.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    TxnTopic,
)
from barnabas.protocol.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from barnabas.protocol.metadata.levels import TRANSACTION_VERSION
from barnabas.protocol.topic_partition import TopicPartition

_NAMED_FIRST: Final = 2
"""The transaction.version from which on requests name no partitions before they write them."""

_HIGHEST_BELOW: Final = {ApiKey.PRODUCE: 11, ApiKey.TXN_OFFSET_COMMIT: 4, ApiKey.END_TXN: 4}
"""The highest versions that keep to the rules of transaction.version 0 and 1."""

_HIGHEST_OF_CLIENTS: Final = 3
"""Of AddPartitionsToTxn: the later versions are for brokers."""

_TWO_PHASE_FROM: Final = 6
"""The first version of InitProducerId with two-phase commit (KIP-939)."""

_ADD_BACKOFF_MS: Final = 20
"""As in Kafka: the last transaction's markers, which an addition waits for, are written soon."""

_NOT_A_MEMBER = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class ProducerEpoch(NamedTuple):
    """A producer id and epoch."""

    producer_id: int
    epoch: int


def adds_first(connection: Connection) -> bool:
    """Whether a transaction is told its partitions and groups before they are written, by the cluster's features."""
    return connection.features.get(TRANSACTION_VERSION, 0) < _NAMED_FIRST


def highest_version(api: ApiKey, *, adds_first: bool) -> int | None:
    """Return the highest version of an API within a transaction, None without a limit."""
    return _HIGHEST_BELOW.get(api) if adds_first else None


class TransactionRequests:
    """All methods raise RefusedError, BrokerConnectionError and BrokerTimeoutError."""

    def __init__(self, cluster: Cluster, config: ProducerConfig, transactional_id: str) -> None:
        self.adds_first = True
        """Whether the next transaction names its partitions: as the coordinator's last answer says."""
        self._cluster = cluster
        self._config = config
        self._adding = replace(config, retry_backoff_ms=min(config.retry_backoff_ms, _ADD_BACKOFF_MS))
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
            if request.enable_2pc:
                await self._ensure_two_phase()
            response: InitProducerIdResponse = await self._send(request)
            self._ensure_no_error(response.error)
            return ProducerEpoch(response.producer_id, response.producer_epoch)

        return await with_retries(self._config, ApiKey.INIT_PRODUCER_ID.label, attempt, coordinated_by=self._cluster)

    async def _ensure_two_phase(self) -> None:
        """Raises RefusedError for a broker that would take a two-phase producer for one with a timeout."""
        connection = await self._cluster.coordinator(TRANSACTION_KEY, self._transactional_id)
        if (connection.version_of(ApiKey.INIT_PRODUCER_ID) or 0) < _TWO_PHASE_FROM:
            raise RefusedError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the broker at {connection.address} serves no two-phase commit: Apache Kafka needs "
                "unstable.api.versions.enable=true, and Barnabas an update",
            )

    async def add_partitions(
        self, current: ProducerEpoch, partitions: Sequence[TopicPartition], ensure_open: Callable[[], None]
    ) -> None:
        """Make partitions a part of the transaction, before the first write to them.

        `ensure_open` raises the error of a transaction that is over: an addition after its end would open the next one.
        """
        topics: dict[str, list[int]] = {}
        for topic, number in partitions:
            topics.setdefault(topic, []).append(number)
        request = AddPartitionsToTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=current.producer_id,
            producer_epoch=current.epoch,
            topics=[TxnTopic(name=name, partitions=numbers) for name, numbers in topics.items()],
        )

        async def attempt() -> None:
            ensure_open()
            response: AddPartitionsToTxnResponse = await self._send(request, _HIGHEST_OF_CLIENTS)
            refused = [
                RefusedError.of_partition(TopicPartition(topic.name, each.partition), each.error, None)
                for topic in response.topics
                for each in topic.partitions
                if each.error not in (ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED)
            ]
            if refused:
                raise min(refused, key=lambda error: error.retriable)

        await with_retries(self._adding, request.api_key.label, attempt, coordinated_by=self._cluster)

    async def add_group(self, current: ProducerEpoch, group: str) -> None:
        """Make a group's offsets a part of the transaction, before they are committed."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=current.producer_id,
            producer_epoch=current.epoch,
            group_id=group,
        )

        async def attempt() -> None:
            response: AddOffsetsToTxnResponse = await self._send(request)
            self._ensure_no_error(response.error)

        await with_retries(self._adding, request.api_key.label, attempt, coordinated_by=self._cluster)

    async def end(self, current: ProducerEpoch, *, commit: bool, adds_first: bool) -> ProducerEpoch:
        """Commit or abort. Returns the next transaction's id and epoch, which may be the same."""
        request = EndTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=current.producer_id,
            producer_epoch=current.epoch,
            is_commit=commit,
        )

        async def attempt() -> ProducerEpoch:
            highest = highest_version(ApiKey.END_TXN, adds_first=adds_first)
            response: EndTxnResponse = await self._send(request, highest)
            self._ensure_no_error(response.error)
            if response.producer_id < 0:
                return current
            return ProducerEpoch(response.producer_id, response.producer_epoch)

        return await with_retries(self._config, ApiKey.END_TXN.label, attempt, coordinated_by=self._cluster)

    async def commit_offsets(
        self,
        current: ProducerEpoch,
        group: ConsumerGroupMetadata,
        offsets: Mapping[TopicPartition, CommittedOffset],
        *,
        adds_first: bool,
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
            highest = highest_version(ApiKey.TXN_OFFSET_COMMIT, adds_first=adds_first)
            response: TxnOffsetCommitResponse = await connection.request(request, highest=highest)
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

    async def _send(self, request: Any, highest: int | None = None) -> Any:
        connection = await self._cluster.coordinator(TRANSACTION_KEY, self._transactional_id)
        answer = await connection.request(request, highest=highest)
        self.adds_first = adds_first(connection)
        return answer

    def _ensure_no_error(self, code: ErrorCode) -> None:
        if code is not ErrorCode.NONE:
            raise RefusedError(code, f"transactional id {self._transactional_id!r}: {reason_of(code)}")
