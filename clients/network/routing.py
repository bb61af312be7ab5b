"""Where a request goes in a cluster: the leaders of partitions, the coordinators of keys, one broker, or all of them.

Each function asks again, for api_timeout_ms, what a lost connection or a retriable error has left without an answer,
and first looks again for leaders, coordinators and brokers. So a leader that moves meanwhile is a pause.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import ClientError, RefusedError, UnknownTopicError
from barnabas.clients.network.cluster import NO_LEADER, Cluster
from barnabas.clients.network.connection import Connection
from barnabas.clients.network.retrying import with_retries
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_partition import TopicPartition

Item = TypeVar("Item", TopicPartition, str)
Answer = TypeVar("Answer")
T = TypeVar("T")

ITEMS_PER_REQUEST: Final = 500
"""As in Kafka's tools: a request about all partitions or ids of a large cluster would block the broker for long."""

Ask = Callable[[Connection, list[Item]], Awaitable[Mapping[Item, Answer | ClientError]]]
"""Sends one broker the request about its items, and returns an answer or error for each. It may raise ClientError."""


async def ask_leaders(
    cluster: Cluster,
    config: ClientConfig,
    what: str,
    partitions: Iterable[TopicPartition],
    ask: Ask[TopicPartition, Answer],
    *,
    at_once: int = ITEMS_PER_REQUEST,
) -> dict[TopicPartition, Answer | RefusedError]:
    """Ask the leader of each partition; one that does not exist has an UnknownTopicError. Raises ClientError."""

    async def leader(partition: TopicPartition) -> Connection:
        await ensure_partition(cluster, config, partition)
        node_id = cluster.leader(partition)
        if node_id == NO_LEADER:
            raise RefusedError.of_partition(partition, ErrorCode.LEADER_NOT_AVAILABLE, None)
        return await cluster.connections.connect(node_id)

    async def refresh() -> None:
        await cluster.refresh_soon()

    return await _ask_owners(config, what, partitions, leader, ask, refresh, at_once)


async def ask_coordinators(
    cluster: Cluster, config: ClientConfig, what: str, key_type: int, keys: Iterable[str], ask: Ask[str, Answer]
) -> dict[str, Answer | RefusedError]:
    """Ask the coordinator of each group or transactional id. Raises ClientError."""

    async def coordinator(key: str) -> Connection:
        return await cluster.coordinator(key_type, key)

    async def forget() -> None:
        cluster.forget_coordinators()

    return await _ask_owners(config, what, keys, coordinator, ask, forget, ITEMS_PER_REQUEST)


async def ask_brokers(
    cluster: Cluster, config: ClientConfig, what: str, ask: Callable[[Connection], Awaitable[Answer]]
) -> dict[int, Answer]:
    """Ask every broker, and return the answers by node id. Raises ClientError if one of them gives none.

    A broker that the cluster drops meanwhile is left out.
    """
    found: dict[int, Answer] = {}

    async def attempt() -> None:
        await cluster.load([])
        missing = [node_id for node_id in cluster.connections.brokers if node_id not in found]

        async def one(node_id: int) -> None:
            found[node_id] = await ask(await cluster.connections.connect(node_id))

        _raise_first(await asyncio.gather(*map(one, missing), return_exceptions=True))

    await with_retries(config, what, attempt)
    return dict(sorted(found.items()))


async def ensure_partition(cluster: Cluster, config: ClientConfig, topic_partition: TopicPartition) -> None:
    """Raises RefusedError if the topic or partition does not exist."""
    view = await cluster.require_topic(topic_partition.topic, config.api_timeout_ms)
    if topic_partition.partition >= len(view.leaders):  # perhaps it was added meanwhile
        await cluster.load([topic_partition.topic])
        view = await cluster.require_topic(topic_partition.topic, config.api_timeout_ms)
    if not 0 <= topic_partition.partition < len(view.leaders):
        raise UnknownTopicError(
            topic_partition.topic,
            topic_partition.partition,
            f"{topic_partition}: the topic has {len(view.leaders)} partitions, 0..{len(view.leaders) - 1}",
        )


async def _ask_owners(
    config: ClientConfig,
    what: str,
    items: Iterable[Item],
    owner: Callable[[Item], Awaitable[Connection]],
    ask: Ask[Item, Answer],
    look_again: Callable[[], Awaitable[None]],
    at_once: int,
) -> dict[Item, Answer | RefusedError]:
    """Ask each item's owner. An item's own retriable error becomes its answer when api_timeout_ms is over.

    Raises the first error of another kind, be it of an item or of a whole request.
    """
    wanted = list(dict.fromkeys(items))
    found: dict[Item, Answer | RefusedError] = {}
    refused: dict[Item, RefusedError] = {}
    unknown: list[ClientError] = []  # requests that must not be sent again

    async def attempt() -> None:
        missing = [item for item in wanted if item not in found]
        refused.clear()
        failures: list[object] = []
        owned: dict[Connection, list[Item]] = {}
        owners = await asyncio.gather(*map(owner, missing), return_exceptions=True)
        for item, connection in zip(missing, owners, strict=True):
            if isinstance(connection, Connection):
                owned.setdefault(connection, []).append(item)
            elif isinstance(connection, RefusedError):
                note(item, connection)
            else:
                failures.append(connection)
        parts = [(each, part) for each, mine in owned.items() for part in parts_of(mine, at_once)]
        answers = await asyncio.gather(*(ask(*each) for each in parts), return_exceptions=True)
        for (_, asked), answer in zip(parts, answers, strict=True):
            if isinstance(answer, BaseException):
                failures.append(answer)
                continue
            for item in asked:
                note(item, answer.get(item, _left_out(item)))
        if len(found) < len(wanted):
            await look_again()
            _raise_first([*failures, *refused.values()])

    def note(item: Item, answer: Answer | ClientError) -> None:
        if isinstance(answer, RefusedError) and answer.retriable:
            refused[item] = answer
        elif isinstance(answer, ClientError) and not isinstance(answer, RefusedError):
            unknown.append(answer)
            found[item] = RefusedError(ErrorCode.UNKNOWN_SERVER_ERROR, str(answer))
        else:
            found[item] = answer

    try:
        await with_retries(config, what, attempt)
    except RefusedError:
        if len(found) + len(refused) < len(wanted):
            raise
    if unknown:
        raise unknown[0]
    return {item: found[item] if item in found else refused[item] for item in wanted}


def parts_of(items: Sequence[T], size: int = ITEMS_PER_REQUEST) -> Iterator[list[T]]:
    """Split into lists that fit a request."""
    return (list(items[start : start + size]) for start in range(0, len(items), size))


def _raise_first(outcomes: Sequence[object]) -> None:
    """Raise the error that is least likely to pass, if there is one."""
    errors = [each for each in outcomes if isinstance(each, BaseException)]
    if errors:
        raise min(errors, key=lambda error: isinstance(error, RefusedError) and error.retriable)


def _left_out(item: object) -> RefusedError:
    return RefusedError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{item}: the broker left it out of its answer")
