"""Handlers whose work grows with a list of the request: after a millisecond, other connections have their turn.

The handler is a coroutine that awaits `Turns.next` between items. `in_turns` runs it immediately: a small request is
answered in the same turn of the event loop, without a task, and a large one by the task that the dispatcher creates.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from time import perf_counter
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from barnabas.broker.network.deferred import Deferred

if TYPE_CHECKING:
    from barnabas.broker.network.session import Session
    from barnabas.protocol.messages.api_key import ApiKey
    from barnabas.protocol.messages.security.resources import Operation, ResourceType

TURN_SECONDS: Final = 0.001

T = TypeVar("T")


class Turns:
    """The time of one request in the current turn of the event loop.

    for item in items:
        if turns.is_over:
            await turns.next()
    """

    __slots__ = ("_ends",)

    def __init__(self) -> None:
        self._ends = perf_counter() + TURN_SECONDS

    @property
    def is_over(self) -> bool:
        """Whether the request has used up its time."""
        return perf_counter() > self._ends

    async def next(self) -> None:
        """Wait for the event loop's next turn. The metadata image, ACLs and partitions may have changed then."""
        await asyncio.sleep(0)
        self._ends = perf_counter() + TURN_SECONDS


def in_turns(work: Coroutine[Any, Any, T]) -> T | Coroutine[Any, Any, T]:
    """Run `work` up to its first `Turns.next`; return its result, or what is left of it if it has not ended.

    Before its first `Turns.next`, `work` must not await anything else.
    """
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    return _rest(work)


async def _rest(work: Coroutine[Any, Any, T]) -> T:
    # A coroutine that has begun cannot be awaited again: it is continued by hand, and only ever waits for a turn.
    while True:
        await asyncio.sleep(0)
        try:
            work.send(None)
        except StopIteration as end:
            result: T = end.value
            return result


def in_turns_then_deferred(
    work: Coroutine[Any, Any, T | Deferred[T]],
) -> T | Deferred[T] | Coroutine[Any, Any, T]:
    """Run `work` as `in_turns` does; its result is the response, or a Deferred of it."""
    begun = in_turns(work)
    if isinstance(begun, CoroutineType):
        return _awaited(begun)
    return cast("T | Deferred[T]", begun)


async def _awaited(work: Coroutine[Any, Any, T | Deferred[T]]) -> T:
    response = await work
    if not isinstance(response, Deferred):
        return response
    late: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    response.then(late.set_result)
    return await late


async def denied_in_turns(
    turns: Turns,
    session: Session,
    operation: Operation,
    resource: ResourceType,
    names: Iterable[str],
    api: ApiKey,
    *,
    log_denied: bool = True,
) -> frozenset[str]:
    """Return what `authorization.denied_names` returns."""
    access = session.access
    if access is None:
        return frozenset()
    denied = []
    for name in dict.fromkeys(names):
        if not access.allows(operation, resource, name, api=api, log_denied=log_denied):
            denied.append(name)
        if turns.is_over:
            await turns.next()
    return frozenset(denied)
