from __future__ import annotations

import asyncio
from collections.abc import Coroutine

import pytest

from barnabas.clients.errors import ClosedError
from barnabas.clients.producer.memory_limit import MemoryLimit


async def started(coroutine: Coroutine[None, None, None]) -> asyncio.Task[None]:
    task = asyncio.ensure_future(coroutine)
    await asyncio.sleep(0)
    return task


async def test_waiters_are_served_in_order_even_if_a_later_one_would_fit() -> None:
    memory = MemoryLimit(100)
    assert memory.try_take(80)
    large = await started(memory.take(50, 5))
    small = await started(memory.take(10, 5))
    assert not memory.try_take(1)
    assert not large.done()
    assert not small.done()
    memory.release(80)
    await large
    await small
    assert memory.available == 40


async def test_a_waiter_that_times_out_takes_nothing_and_lets_the_next_one_through() -> None:
    memory = MemoryLimit(100)
    assert memory.try_take(60)
    large = await started(memory.take(50, 0.01))
    small = await started(memory.take(10, 5))
    with pytest.raises(TimeoutError):
        await large
    await small
    assert memory.available == 30


async def test_a_waiter_cancelled_as_it_is_granted_returns_its_bytes() -> None:
    memory = MemoryLimit(100)
    assert memory.try_take(100)
    waiter = await started(memory.take(50, 5))
    memory.release(100)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert memory.available == 100
    assert not memory.has_waiters


async def test_closing_fails_waiters() -> None:
    memory = MemoryLimit(10)
    assert memory.try_take(10)
    waiter = await started(memory.take(5, 5))
    memory.fail_waiters(ClosedError("closing"))
    with pytest.raises(ClosedError, match="closing"):
        await waiter
    assert memory.available == 0
