"""TokenSweep goes on after a failure."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from barnabas.broker.security.tokens.sweep import TokenSweep
from barnabas.protocol.errors import BrokerError, ErrorCode


@pytest.mark.parametrize("error", [BrokerError(ErrorCode.NOT_CONTROLLER, "no"), RuntimeError("a bug")])
def test_tokens_are_swept_again_after_a_failure(error: Exception) -> None:
    async def scenario() -> None:
        swept = asyncio.Event()
        failures = [error]

        class Changes:
            async def change(self, plan: object) -> list[object]:
                if failures:
                    raise failures.pop()
                swept.set()
                return []

        task = asyncio.create_task(TokenSweep(cast("Any", Changes()), lambda: 0, 0).run())
        await asyncio.wait_for(swept.wait(), 20)
        task.cancel()

    asyncio.run(scenario())
