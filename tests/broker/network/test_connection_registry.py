"""The set of all connections: how many are closed at a time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from barnabas.broker.network.connection_registry import CLOSES_PER_TURN, ConnectionRegistry
from barnabas.broker.probes import ConnectionProbe
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
