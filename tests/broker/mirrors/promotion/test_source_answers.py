"""Answers of a source about open transactions, scripted: the leader's and the coordinator's."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from barnabas.broker.mirrors.promotion import source_answers as answers
from barnabas.broker.mirrors.promotion.settling import OpenTransaction, Outcome
from barnabas.broker.mirrors.promotion.source_answers import source_answers
from barnabas.clients.errors import BrokerConnectionError
from barnabas.clients.network.cluster import Cluster
from barnabas.protocol.messages.data.fetch import (
    AbortedTransaction,
    FetchPartitionResult,
    FetchResponse,
    FetchTopicResult,
)
from barnabas.protocol.messages.nodes import LeaderAndEpoch
from barnabas.protocol.messages.transactions.add_partitions_to_txn import TxnTopic
from barnabas.protocol.messages.transactions.describe_transactions import (
    DescribeTransactionsResponse,
    TransactionDescription,
)
from barnabas.protocol.messages.transactions.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionListing,
)
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.wire.pieces import RecordBytes
from tests.support.storage.bench import START_MS, batch

OPEN = OpenTransaction(TopicPartition("t", 0), 7, 3, 100)


def records(producer_id: int = 7, base_offset: int = 100) -> memoryview:
    data = batch((START_MS, b"k", b"v"), producer_id=producer_id, base_sequence=0, is_transactional=True)
    content = bytearray(data)
    content[:8] = base_offset.to_bytes(8, "big")
    return memoryview(content)


class Scripted:
    """A cluster of one broker, which is its own connection."""

    node_ids = (1,)

    def __init__(self, part: FetchPartitionResult, state: TransactionDescription | None = None) -> None:
        self._part = part
        self._state = state
        self.is_silent = False
        self.connections = self

    async def load(self, topics: object) -> None:
        if self.is_silent:
            await asyncio.Event().wait()

    def leader_of(self, _: object) -> LeaderAndEpoch:
        return LeaderAndEpoch(node_id=1, epoch=0)

    async def connect(self, _: int) -> Scripted:
        return self

    async def request(self, query: object, *, highest: int) -> FetchResponse:
        return FetchResponse(topics=[FetchTopicResult(name="t", partitions=[self._part])])

    async def ask(self, _: int, request: object) -> Any:
        if self._state is None:
            raise BrokerConnectionError("no coordinator")
        if isinstance(request, ListTransactionsRequest):
            return ListTransactionsResponse(
                transactions=[TransactionListing(transactional_id="x", producer_id=7, state=self._state.state)]
            )
        return DescribeTransactionsResponse(transactions=[self._state])


def fetched(stable: int, *aborted: tuple[int, int], data: memoryview | None = None) -> FetchPartitionResult:
    rows = [AbortedTransaction(producer_id=each, first_offset=offset) for each, offset in aborted]
    return FetchPartitionResult(
        partition=0,
        high_watermark=200,
        last_stable_offset=stable,
        records=RecordBytes(records() if data is None else data),
        aborted=rows or None,
    )


def described(state: str, epoch: int = 3, topic: str = "t") -> TransactionDescription:
    return TransactionDescription(
        transactional_id="x",
        state=state,
        producer_id=7,
        producer_epoch=epoch,
        topics=[TxnTopic(name=topic, partitions=[0])],
    )


async def answer(part: FetchPartitionResult, state: TransactionDescription | None = None) -> Outcome | None:
    found = await source_answers(cast(Cluster, Scripted(part, state)), [OPEN])
    return found.get(OPEN)


async def test_the_leader_knows_how_a_transaction_has_ended() -> None:
    assert await answer(fetched(101)) is Outcome.COMMIT
    assert await answer(fetched(150, (7, 90), (8, 100))) is Outcome.COMMIT
    assert await answer(fetched(150, (7, 100))) is Outcome.ABORT
    assert await answer(fetched(150), described("PrepareAbort")) is Outcome.COMMIT


@pytest.mark.parametrize("data", [memoryview(b""), records(8), records(7, 101)])
async def test_records_that_are_gone_at_the_leader_decide_nothing(data: memoryview) -> None:
    assert await answer(fetched(150, data=data)) is None


async def test_the_coordinator_decides_about_a_transaction_that_is_open_at_its_leader() -> None:
    assert await answer(fetched(100), described("PrepareCommit")) is Outcome.COMMIT
    assert await answer(fetched(100), described("PrepareCommit", epoch=4)) is Outcome.COMMIT
    assert await answer(fetched(100), described("PrepareAbort")) is Outcome.ABORT
    assert await answer(fetched(100), described("Ongoing")) is Outcome.ABORT
    assert await answer(fetched(100), described("CompleteCommit")) is None
    assert await answer(fetched(100), described("PrepareCommit", epoch=5)) is None
    assert await answer(fetched(100), described("PrepareCommit", topic="other")) is None
    assert await answer(fetched(90), described("PrepareCommit")) is None
    assert await answer(fetched(100)) is None


async def test_a_silent_source_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "ANSWER_SECONDS", 0.01)
    cluster = Scripted(fetched(150))
    cluster.is_silent = True
    assert await source_answers(cast(Cluster, cluster), [OPEN]) == {}
