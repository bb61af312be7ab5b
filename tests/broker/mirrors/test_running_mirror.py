"""The tasks of one running mirror: none is forgotten, and none ends because of a bug."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from barnabas.broker.mirrors.leader_fetcher import LeaderFetcher
from barnabas.broker.mirrors.leader_fetchers import LeaderFetchers
from barnabas.broker.mirrors.mirror import Mirror
from barnabas.broker.mirrors.mirrored_partition import MirroredPartition
from barnabas.broker.mirrors.parts import MirrorParts
from barnabas.broker.mirrors.status import MirrorState
from barnabas.protocol.mirrors.definition import MirrorDefinition
from barnabas.protocol.topic_partition import TopicPartition

KEY = TopicPartition("t", 0)


class AppendingFetcher:
    """A fetcher whose append goes on after the task was cancelled."""

    def __init__(self, appended: asyncio.Event) -> None:
        self.keys: set[TopicPartition] = set()
        self.error = None
        self._appended = appended
        self.began = asyncio.Event()

    def add(self, partition: MirroredPartition) -> None:
        self.keys.add(partition.key)

    def remove(self, key: TopicPartition) -> None:
        self.keys.discard(key)

    async def run(self) -> None:
        try:
            self.began.set()
            await asyncio.Future()
        finally:
            await self._appended.wait()


@pytest.mark.parametrize("is_idle", [False, True])
async def test_a_mirror_has_stopped_only_when_the_last_append_of_every_fetcher_is_done(is_idle: bool) -> None:
    """A promotion begins then, and decides by what the logs hold."""
    appended = asyncio.Event()
    made = AppendingFetcher(appended)
    fetchers = LeaderFetchers("m", lambda _: cast(LeaderFetcher, made))
    fetchers.add(MirroredPartition(KEY, None, cast(Any, None), 0.0), 1)
    assert fetchers.copies(KEY, 1)
    await made.began.wait()
    if is_idle:
        fetchers.remove(KEY)
        fetchers.end_idle()
    stopping = asyncio.create_task(fetchers.stop())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not stopping.done()
    appended.set()
    await stopping


async def test_a_bug_ends_no_mirror_and_is_its_error(caplog: pytest.LogCaptureFixture) -> None:
    asked = 0

    async def no_config(_: MirrorDefinition) -> Any:
        nonlocal asked
        asked += 1
        raise ZeroDivisionError("divided")

    parts = cast(MirrorParts, type("Parts", (), {"client_config": staticmethod(no_config)}))
    mirror = Mirror(MirrorDefinition("m", ("127.0.0.1:1",), ("t",)), parts)
    running = asyncio.create_task(mirror.run())
    async with asyncio.timeout(20):
        while asked < 2:
            await asyncio.sleep(0.005)
    status = mirror.status()
    assert (status.state, status.error) == (
        MirrorState.STARTING,
        "a bug, see the broker's log: ZeroDivisionError('divided')",
    )
    assert "a bug: mirror m looks at its source again" in caplog.text
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
