"""Share groups go on after `__share_group_state` was deleted, from where share.auto.offset.reset says."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas import Admin, AdminConfig, Producer, ProducerConfig, ShareConsumer, ShareConsumerConfig
from tests.support.daemon import Daemon, start_daemon
from tests.support.share.group_settings import set_group_configs

BOUND_S = 30.0
STATES = "__share_group_state"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    settings = (
        "group.share.min.heartbeat.interval.ms=50",
        "group.share.heartbeat.interval.ms=50",
        "share.coordinator.state.topic.num.partitions=1",
    )
    with start_daemon(tmp_path, *settings) as running:
        running.create_topic("t")
        set_group_configs(running, "g", {"share.auto.offset.reset": "earliest"})
        yield running


@pytest.mark.parametrize("is_killed", [False, True])
async def test_a_group_begins_again(daemon: Daemon, *, is_killed: bool) -> None:
    config = ShareConsumerConfig(group="g", acknowledgement="explicit", bootstrap=daemon.bootstrap, retry_backoff_ms=20)
    async with asyncio.timeout(BOUND_S), ShareConsumer(config) as queue:
        async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
            for value in (b"a", b"b"):
                await producer.send_and_wait("t", value)
        await queue.subscribe(["t"])
        first = await anext(queue)
        await queue.ack(first)
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            await admin.delete_topic(STATES)
            if is_killed:
                daemon.kill()
                await asyncio.to_thread(daemon.start)
        values: list[bytes | None] = []
        while values[-2:] != [b"a", b"b"]:  # the second one may come once more before, from the time before
            values.append((await anext(queue)).value)
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            assert STATES in {topic.name for topic in await admin.list_topics()}
