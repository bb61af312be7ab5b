"""The set of all connections: how many are closed at a time, and sweeps that go on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.network.connection_registry import CLOSES_PER_TURN, TRIM_SECONDS, ConnectionRegistry
from barnabas.broker.probes import ConnectionProbe
from tests.support.manual_loop import ManualLoop
from tests.support.piped_connection import Clock


def test_connections_that_end_together_are_closed_in_several_turns_of_the_loop() -> None:
    clock, closed = Clock(), []
    registry = ConnectionRegistry(
        cast("Any", clock),
        cast("Any", None),
        cast("Any", None),
        ConnectionProbe(),
        max_frame_bytes=1,
        quotas=cast("Any", None),
        max_idle_seconds=None,
    )
    count = 2 * CLOSES_PER_TURN + 1
    for number in range(count):
        registry.close_soon(cast("Any", SimpleNamespace(close=lambda reason, number=number: closed.append(number))))
    found = []
    for _ in range(4):
        clock.turn()
        found.append(len(closed))
    assert found == [CLOSES_PER_TURN, 2 * CLOSES_PER_TURN, count, count]
    assert closed == list(range(count))


@pytest.mark.parametrize("fails", ["trim", "abort"])
def test_an_error_of_a_connection_does_not_end_the_sweeps(fails: str) -> None:
    loop = ManualLoop()
    registry = ConnectionRegistry(
        loop,
        cast("Any", None),
        cast("Any", None),
        ConnectionProbe(),
        max_frame_bytes=1,
        quotas=cast("Any", None),
        max_idle_seconds=TRIM_SECONDS,
    )
    reached: list[object] = []
    loop.set_exception_handler(lambda _, context: reached.append(context["exception"]))

    class Broken:
        session = "a client"
        last_active = -2 * TRIM_SECONDS
        waits_for_broker = False

        def trim(self, before: float) -> None:
            self._act("trim")

        def abort(self, reason: str) -> None:
            self._act("abort")

        def _act(self, name: str) -> None:
            if name == fails:
                raise RuntimeError(name)

    registry.opened(cast("Any", Broken()))
    loop.run(registry.start)
    for _ in range(2):
        found = len(reached)
        loop.pass_time(round(2000 * TRIM_SECONDS))
        assert len(reached) > found
    loop.close()
