"""Transactions of any client: listing, describing and aborting them, and finding those that hang.

A transaction hangs when a partition has it open and its coordinator does not know it: a broker without verification of
partitions, or a damaged `__transaction_state`, can leave one. read_committed readers then stop at its first record for
ever. Source: Kafka's TransactionsCommand, AbortTransactionHandler, FenceProducersHandler.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import ClientError, RefusedError, reason_of
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.connection import Connection
from barnabas.clients.network.retrying import with_retries
from barnabas.clients.network.routing import ask_leaders, parts_of
from barnabas.clients.partition_producers import describe_producers
from barnabas.clients.transactions import describe_transactions, list_transactions
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.init_producer_id import (
    DEFAULT_TRANSACTION_TIMEOUT_MS,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.protocol.messages.groups.find_coordinator import TRANSACTION_KEY
from barnabas.protocol.messages.transactions.add_partitions_to_txn import TxnTopic
from barnabas.protocol.messages.transactions.describe_transactions import TransactionDescription
from barnabas.protocol.messages.transactions.list_transactions import ListTransactionsRequest
from barnabas.protocol.messages.transactions.write_txn_markers import (
    TxnMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.protocol.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """An open transaction of a partition. `last_timestamp`: of the producer's last batch, in ms. -1: not known."""

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp: int


async def abort_transaction(cluster: Cluster, config: ClientConfig, transactional_id: str) -> None:
    """Abort the id's open transaction and fence its producer, as a new producer with this id would.

    Raises RefusedError: for an unknown id, which would otherwise be created.
    """
    found = (await describe_transactions(cluster, config, [transactional_id]))[transactional_id]
    if isinstance(found, RefusedError):
        raise found
    # The id keeps this timeout until its next producer starts; that of a two-phase producer is above the maximum.
    timeout_ms = min(max(found.timeout_ms, 1), DEFAULT_TRANSACTION_TIMEOUT_MS)
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)

    async def attempt() -> None:
        connection = await cluster.coordinator(TRANSACTION_KEY, transactional_id)
        response: InitProducerIdResponse = await connection.request(request)
        if response.error is not ErrorCode.NONE:
            raise RefusedError(
                response.error, f"transactional id {transactional_id!r}: not aborted: {reason_of(response.error)}"
            )

    await with_retries(config, request.api_key.label, attempt, coordinated_by=cluster)


async def open_transactions(
    cluster: Cluster, config: ClientConfig, partitions: Iterable[TopicPartition], *, missing_ok: bool
) -> list[OpenTransaction]:
    """Find all open transactions of these partitions. Raises RefusedError for a partition.

    `missing_ok`: partitions that do not exist have none, as those of a listing that are deleted meanwhile, or whose
    logs are still being created.
    """
    found: list[OpenTransaction] = []
    for topic_partition, answer in (await describe_producers(cluster, config, partitions)).items():
        if isinstance(answer, RefusedError):
            if answer.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and missing_ok:
                continue
            raise answer
        found += [
            OpenTransaction(
                topic_partition,
                each.producer_id,
                each.epoch,
                each.coordinator_epoch,
                each.transaction_start_offset,
                each.last_timestamp,
            )
            for each in answer
            if each.transaction_start_offset >= 0
        ]
    return found


async def find_hanging(
    cluster: Cluster,
    config: ClientConfig,
    partitions: Iterable[TopicPartition],
    longer_than_ms: int,
    *,
    missing_ok: bool,
) -> list[OpenTransaction]:
    """Find open transactions of these partitions that no coordinator will end; see `open_transactions`."""
    oldest = time.time_ns() // 1_000_000 - longer_than_ms
    opened = await open_transactions(cluster, config, partitions, missing_ok=missing_ok)
    candidates = [found for found in opened if found.last_timestamp < oldest]
    if not candidates:
        return []
    known = await _known_partitions(cluster, config, {each.producer_id for each in candidates})
    unknown = [each for each in candidates if each.topic_partition not in known.get(each.producer_id, ())]
    where = dict.fromkeys(each.topic_partition for each in unknown)
    still_open = {
        (each.topic_partition, each.start_offset)
        for each in await open_transactions(cluster, config, where, missing_ok=missing_ok)
    }  # a transaction that ended between the requests does not hang
    return [each for each in unknown if (each.topic_partition, each.start_offset) in still_open]


async def abort_hanging(cluster: Cluster, config: ClientConfig, transaction: OpenTransaction) -> None:
    """Write an abort marker. Raises RefusedError, e.g. INVALID_PRODUCER_EPOCH if the producer has gone on meanwhile."""
    topic, partition = transaction.topic_partition
    marker = TxnMarker(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        is_commit=False,
        topics=[TxnTopic(name=topic, partitions=[partition])],
        coordinator_epoch=max(transaction.coordinator_epoch, 0),  # -1 before the producer's first marker
    )

    async def ask(connection: Connection, partitions: list[TopicPartition]) -> dict[TopicPartition, bool | ClientError]:
        response: WriteTxnMarkersResponse = await connection.request(WriteTxnMarkersRequest(markers=[marker]))
        return {
            TopicPartition(written.name, entry.partition): (
                True
                if entry.error is ErrorCode.NONE
                else RefusedError.of_partition(transaction.topic_partition, entry.error, None)
            )
            for result in response.markers
            for written in result.topics
            for entry in written.partitions
        }

    what = WriteTxnMarkersRequest.api_key.label
    for answer in (await ask_leaders(cluster, config, what, [transaction.topic_partition], ask)).values():
        if isinstance(answer, RefusedError):
            raise answer


async def _known_partitions(
    cluster: Cluster, config: ClientConfig, producer_ids: set[int]
) -> dict[int, set[TopicPartition]]:
    """Return the partitions of each producer's transaction in which its coordinator will write a marker."""
    listed = [
        each
        for part in parts_of(sorted(producer_ids))
        for each in await list_transactions(cluster, config, ListTransactionsRequest(producer_ids=part))
    ]
    described = await describe_transactions(cluster, config, [each.transactional_id for each in listed])
    known: dict[int, set[TopicPartition]] = {}
    for each in described.values():
        if isinstance(each, TransactionDescription):
            known.setdefault(each.producer_id, set()).update(
                TopicPartition(topic.name, partition) for topic in each.topics for partition in topic.partitions
            )
        elif each.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:  # that one has expired since it was listed
            raise each
    return known
