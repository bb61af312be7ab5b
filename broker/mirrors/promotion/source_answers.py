"""What the source answers about transactions that are open in a copy, if it can still be reached.

Two requests decide, and both need only rights that a mirror or its operator may have:

- The leader of the partition: a read_committed fetch at the transaction's first offset. If the last stable offset is
  beyond it, the transaction has ended, and its records are either among the aborted ones of the answer or committed.
  This needs READ on the topic, and is exact with every version.
- The transaction coordinator: ListTransactions by producer id and DescribeTransactions. A transaction that was still
  open at its leader after the coordinator had answered is the one that it has described. With `PrepareCommit` it is
  committed: only its marker was missing. With `Ongoing` no marker in a copy can be its own, and it is aborted here.
  This needs DESCRIBE on the transactional id.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.mirrors.promotion.settling import OpenTransaction, Outcome
from barnabas.clients.errors import ClientError, RefusedError, reason_of
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.fetch import (
    READ_COMMITTED,
    TOPIC_IDS_FROM,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.protocol.messages.transactions.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionDescription,
)
from barnabas.protocol.messages.transactions.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.layout import HEADER_SIZE

if TYPE_CHECKING:
    from barnabas.clients.network.cluster import Cluster

logger = logging.getLogger(__name__)

ANSWER_SECONDS: Final = 4.0
"""For all answers together: the source of a promotion is usually dead."""

_PRODUCERS_AT_ONCE: Final = 500
_OUTCOMES: Final = {"PrepareCommit": Outcome.COMMIT, "PrepareAbort": Outcome.ABORT, "Ongoing": Outcome.ABORT}


async def source_answers(cluster: Cluster, transactions: Sequence[OpenTransaction]) -> dict[OpenTransaction, Outcome]:
    """Return the outcomes that the source knows, within ANSWER_SECONDS. What fails is left out."""
    found: dict[OpenTransaction, Outcome] = {}
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await cluster.load(sorted({each.place.topic for each in transactions}))
            described = await _described_outcomes(cluster, transactions)
            for each in transactions:
                outcome = await _outcome_at_leader(cluster, each, described.get(each))
                if outcome is not None:
                    found[each] = outcome
    except (TimeoutError, ClientError) as error:
        reason = str(error) or f"no answer within {ANSWER_SECONDS:g} s"
        logger.info("the source does not answer about open transactions: %s", reason)
    return found


async def _described_outcomes(
    cluster: Cluster, transactions: Sequence[OpenTransaction]
) -> dict[OpenTransaction, Outcome]:
    """Return what the coordinators' states mean for transactions that are still open at their leaders."""
    producer_ids = sorted({each.producer_id for each in transactions})
    described: dict[int, TransactionDescription] = {}
    for node_id in cluster.node_ids:
        for start in range(0, len(producer_ids), _PRODUCERS_AT_ONCE):
            request = ListTransactionsRequest(producer_ids=producer_ids[start : start + _PRODUCERS_AT_ONCE])
            try:
                described.update(await _described(cluster, node_id, request))
            except ClientError as error:
                logger.info("the source's node %d does not answer about transactions: %s", node_id, error)
                break
    found = {}
    for each in transactions:
        state = described.get(each.producer_id)
        if state is None or not each.epoch <= state.producer_epoch <= each.epoch + 1:
            continue
        outcome = _OUTCOMES.get(state.state)
        is_part = any(
            topic.name == each.place.topic and each.place.partition in topic.partitions for topic in state.topics
        )
        if outcome is not None and is_part:
            found[each] = outcome
    return found


async def _described(
    cluster: Cluster, node_id: int, request: ListTransactionsRequest
) -> dict[int, TransactionDescription]:
    listed: ListTransactionsResponse = await cluster.ask(node_id, request)
    if listed.error is not ErrorCode.NONE:
        raise RefusedError(listed.error, f"the source's transactions: {reason_of(listed.error)}")
    ids = [each.transactional_id for each in listed.transactions]
    if not ids:
        return {}
    answer: DescribeTransactionsResponse = await cluster.ask(
        node_id, DescribeTransactionsRequest(transactional_ids=ids)
    )
    return {each.producer_id: each for each in answer.transactions if each.error is ErrorCode.NONE}


async def _outcome_at_leader(
    cluster: Cluster, transaction: OpenTransaction, described: Outcome | None
) -> Outcome | None:
    """Return how the transaction ended; `described` if it is still open. Raises ClientError."""
    place = transaction.place
    leader = cluster.leader_of(place)
    if leader is None:
        return None
    wanted = FetchPartition(partition=place.partition, offset=transaction.first_offset, max_bytes=1)
    topics = [FetchTopic(name=place.topic, partitions=[wanted])]
    query = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1, topics=topics, isolation=READ_COMMITTED)
    answer: FetchResponse = await (await cluster.connections.connect(leader.node_id)).request(
        query, highest=TOPIC_IDS_FROM - 1
    )
    for part in (each for topic in answer.topics for each in topic.partitions):
        if part.error is not ErrorCode.NONE:
            return None
        if part.last_stable_offset <= transaction.first_offset:
            return described if part.last_stable_offset == transaction.first_offset else None
        if not _has_records_of(part.data, transaction):
            return None  # compacted: the transaction index may no longer have its row
        aborted = {(each.producer_id, each.first_offset) for each in part.aborted or ()}
        has_aborted = (transaction.producer_id, transaction.first_offset) in aborted
        return Outcome.ABORT if has_aborted else Outcome.COMMIT
    return None


def _has_records_of(records: memoryview, transaction: OpenTransaction) -> bool:
    """Return whether the first batch is the one that began the transaction."""
    if len(records) < HEADER_SIZE:
        return False
    first = RecordBatch(records, 0)
    return (
        first.base_offset == transaction.first_offset
        and first.producer_id == transaction.producer_id
        and first.record_count > 0
    )
