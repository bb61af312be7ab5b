"""The list of transactional ids: what is open, since when, by whom, and in which partitions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.clients.errors import ClientError, reason_of
from barnabas.clients.network.cluster import Cluster
from barnabas.console.pages.listing import Listing
from barnabas.console.web import access_of, render
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionDescription,
)
from barnabas.protocol.messages.transactions.list_transactions import ListTransactionsRequest, ListTransactionsResponse

_OPEN_STATES: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")


class TransactionRow(NamedTuple):
    """One transactional id. `description` is None unless a transaction is open."""

    transactional_id: str
    producer_id: int
    state: str
    description: TransactionDescription | None

    def age_ms(self, now_ms: int) -> int | None:
        """Time since the open transaction began."""
        if self.description is None or self.description.start_time_ms < 0:
            return None
        return max(0, now_ms - self.description.start_time_ms)

    @property
    def partitions(self) -> str:
        """The partitions of the open transaction."""
        topics = () if self.description is None else self.description.topics
        return ", ".join(f"{topic.name}-{number}" for topic in topics for number in sorted(topic.partitions))


async def _transactions(request: Request) -> Response:
    access = await access_of(request)
    await access.kafka.load(())
    problems: list[str] = []
    found: list[TransactionRow] = []
    for node_id in access.kafka.node_ids:
        try:
            found += await _of_node(access.kafka, node_id, problems)
        except ClientError as error:
            problems.append(f"transactions of broker {node_id}: {error}")
    now_ms = time.time_ns() // 1_000_000
    listing: Listing[TransactionRow] = Listing(
        found,
        request.query_params,
        {
            "name": lambda row: row.transactional_id,
            "state": lambda row: row.state,
            "age": lambda row: row.age_ms(now_ms),
            "producer": lambda row: row.producer_id,
        },
        lambda row: row.transactional_id,
    )
    return render(request, "transactions.html", listing=listing, problems=problems, count=len(found), now_ms=now_ms)


async def _of_node(kafka: Cluster, node_id: int, problems: list[str]) -> Sequence[TransactionRow]:
    listed: ListTransactionsResponse = await kafka.ask(node_id, ListTransactionsRequest())
    if listed.error is not ErrorCode.NONE:
        problems.append(f"transactions of broker {node_id}: {reason_of(listed.error)}")
        return ()
    open_ids = [each.transactional_id for each in listed.transactions if each.state in _OPEN_STATES]
    described: dict[str, TransactionDescription] = {}
    if open_ids:
        answer: DescribeTransactionsResponse = await kafka.ask(
            node_id, DescribeTransactionsRequest(transactional_ids=open_ids)
        )
        described = {each.transactional_id: each for each in answer.transactions if each.error is ErrorCode.NONE}
    return [
        TransactionRow(each.transactional_id, each.producer_id, each.state, described.get(each.transactional_id))
        for each in listed.transactions
    ]


ROUTES = (Route("/transactions", _transactions),)
