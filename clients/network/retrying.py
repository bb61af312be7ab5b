"""Retries until api_timeout_ms is over, for requests other than a producer's and consumer's stream of records."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import (
    BrokerConnectionError,
    BrokerTimeoutError,
    ClientError,
    ProtocolViolationError,
    RefusedError,
)
from barnabas.clients.network.backoff import backoff_s
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.connection import Connection
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.wire.structures import Request

T = TypeVar("T")


async def with_retries(
    config: ClientConfig, what: str, attempt: Callable[[], Awaitable[T]], *, coordinated_by: Cluster | None = None
) -> T:
    """Return the result of `attempt`, repeated after connection losses, timeouts and retriable errors.

    `coordinated_by`: the attempt asks a coordinator of this cluster, which may be another one the next time. Raises
    other errors as they are, and the last error with `what` in front when api_timeout_ms is over.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + config.api_timeout_ms / 1000
    attempts = 0
    while True:
        try:
            return await attempt()
        except ProtocolViolationError:
            raise
        except (BrokerConnectionError, BrokerTimeoutError, RefusedError) as error:
            if isinstance(error, RefusedError) and not error.retriable:
                raise
            if coordinated_by is not None:
                coordinated_by.forget_coordinators()
            attempts += 1
            pause = backoff_s(attempts, config.retry_backoff_ms, config.retry_backoff_max_ms)
            if loop.time() + pause > deadline:
                raise _with_context(
                    error, f"{what}: gave up after {attempts} attempts in {config.api_timeout_ms} ms"
                ) from error
        await asyncio.sleep(pause)


async def ask_any(cluster: Cluster, config: ClientConfig, request: Request[Any], *, node_id: int | None = None) -> Any:
    """Send any broker, or that one, a request that may be repeated, and return the response."""

    async def attempt() -> Any:
        connection = await cluster.broker(node_id)
        return await connection.request(request)

    return await with_retries(config, request.api_key.label, attempt)


async def command_any(
    cluster: Cluster, config: ClientConfig, request: Request[Any], timeout_ms: int, *, node_id: int | None = None
) -> Any:
    """Send any broker, or that one, a request that must not be repeated once it may have arrived.

    Only connecting is retried.
    """
    connection = await with_retries(config, request.api_key.label, lambda: cluster.broker(node_id))
    return await command(connection, request, timeout_ms)


async def command(connection: Connection, request: Request[Any], timeout_ms: int) -> Any:
    """Send a request once. The error of one whose answer is lost says that it may have been carried out."""
    try:
        return await connection.request(request, timeout_ms=timeout_ms)
    except (BrokerConnectionError, BrokerTimeoutError) as error:
        raise _with_context(error, f"{request.api_key.label}: it is not known whether this was carried out") from error


def _with_context(error: ClientError, context: str) -> ClientError:
    if isinstance(error, RefusedError):
        return RefusedError(error.code, f"{error.message} ({context})", topic=error.topic, partition=error.partition)
    if isinstance(error, BrokerConnectionError):
        return BrokerConnectionError(f"{context}: {error}")
    return BrokerTimeoutError(f"{context}: {error}")


def ensure_no_error(code: ErrorCode, message: str | None, topic: str) -> None:
    """Raises RefusedError for a topic's or resource's error code."""
    if code is not ErrorCode.NONE:
        raise RefusedError.of_topic(topic, code, message)
