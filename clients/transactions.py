"""Transactions as their coordinators know them: listing and describing, for the admin and for prepared transactions."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import ClientError, RefusedError, reason_of
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.connection import Connection
from barnabas.clients.network.routing import ask_brokers, ask_coordinators
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups.find_coordinator import TRANSACTION_KEY
from barnabas.protocol.messages.transactions.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionDescription,
)
from barnabas.protocol.messages.transactions.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionListing,
)


async def list_transactions(
    cluster: Cluster, config: ClientConfig, request: ListTransactionsRequest
) -> list[TransactionListing]:
    """List transactional ids by name: each broker knows those that it coordinates.

    Raises RefusedError for unknown states, an invalid pattern, and a filter that a broker is too old for.
    """

    async def ask(connection: Connection) -> list[TransactionListing]:
        served = connection.version_of(request.api_key)
        if served is not None and served < request.lowest:
            raise RefusedError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"{connection.address} lists transactions without this filter (version {served}, not {request.lowest})",
            )
        response: ListTransactionsResponse = await connection.request(request)
        if response.error is not ErrorCode.NONE:
            raise RefusedError(response.error, f"transactions cannot be listed: {reason_of(response.error)}")
        if response.unknown_states:
            raise RefusedError(
                ErrorCode.INVALID_REQUEST, f"transactions have no state {', '.join(response.unknown_states)}"
            )
        return list(response.transactions)

    answers = await ask_brokers(cluster, config, request.api_key.label, ask)
    # An id whose coordinator moves meanwhile is listed twice.
    found = {each.transactional_id: each for listed in answers.values() for each in listed}
    return sorted(found.values(), key=lambda each: each.transactional_id)


async def describe_transactions(
    cluster: Cluster, config: ClientConfig, transactional_ids: Iterable[str]
) -> dict[str, TransactionDescription | RefusedError]:
    """Describe each id, or return its error. A coordinator that is still loading is waited for."""

    async def ask(connection: Connection, ids: list[str]) -> dict[str, TransactionDescription | ClientError]:
        response: DescribeTransactionsResponse = await connection.request(
            DescribeTransactionsRequest(transactional_ids=ids)
        )
        return {
            each.transactional_id: (
                each
                if each.error is ErrorCode.NONE
                else RefusedError(each.error, f"transactional id {each.transactional_id!r}: {reason_of(each.error)}")
            )
            for each in response.transactions
        }

    what = DescribeTransactionsRequest.api_key.label
    return await ask_coordinators(cluster, config, what, TRANSACTION_KEY, transactional_ids, ask)
