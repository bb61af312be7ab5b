from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.clients.fake_broker import FakeBroker


@pytest.fixture
async def broker() -> AsyncIterator[FakeBroker]:
    """A fake broker with the topic `orders` of three partitions and `lines` of one."""
    async with FakeBroker() as running:
        running.create("orders", 3)
        running.create("lines", 1)
        yield running
