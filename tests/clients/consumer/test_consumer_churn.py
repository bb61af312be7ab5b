"""Members of a group join, leave and die in random order: every record is read, and no committed offset goes back."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest

from barnabas import Admin, AdminConfig, Consumer, ConsumerConfig, Producer, ProducerConfig, TopicPartition
from tests.clients.waiting import until
from tests.support.daemon import Daemon, start_daemon

PARTITIONS = 6
STEPS = 12
RECORDS_PER_STEP = 60
GROUP = "churning"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("daemon"), "group.min.session.timeout.ms=100") as running:
        yield running


class Member:
    """A consumer with a task that reads it, half of the time by poll."""

    def __init__(self, daemon: Daemon, topic: str, seen: set[bytes], *, polls: bool) -> None:
        self.consumer = Consumer(
            ConsumerConfig(
                bootstrap=daemon.bootstrap,
                group=GROUP,
                offset_reset="earliest",
                session_timeout_ms=1_000,
                heartbeat_interval_ms=50,
                auto_commit_interval_ms=20,
            )
        )
        self._topic = topic
        self._seen = seen
        self._polls = polls
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        await self.consumer.start()
        await self.consumer.subscribe([self._topic])
        while self._polls:
            self._seen.update(record.value or b"" for record in await self.consumer.poll(7))
        async for record in self.consumer:
            self._seen.add(record.value or b"")

    async def leave(self) -> None:
        await self._stop_reading()
        await self.consumer.close()

    async def die(self) -> None:
        """End without leaving, committing or heartbeats, like a killed process."""
        await self._stop_reading()
        member, self.consumer._subscription.membership = self.consumer._subscription.membership, None
        if member is not None and member._task is not None:
            member._task.cancel()
        await self.consumer.close(commit=False)

    async def _stop_reading(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


@pytest.mark.parametrize("seed", [1, 2])
async def test_every_record_is_read_and_no_commit_goes_back(daemon: Daemon, seed: int) -> None:
    generator = random.Random(f"churn {seed}")
    topic = f"churned-{seed}"
    seen: set[bytes] = set()
    members: list[Member] = []
    committed: dict[TopicPartition, int] = {}
    async with (
        Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin,
        Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer,
    ):
        await admin.create_topic(topic, partitions=PARTITIONS)

        async def ensure_commits_only_grow() -> None:
            for partition, at in (await admin.group_offsets(GROUP)).items():
                assert at.offset >= committed.get(partition, 0), (partition, seed)
                committed[partition] = at.offset

        async def all_are_seen(produced: int) -> None:
            await until(lambda: len(seen) == produced, f"{produced} records, seed {seed}")

        for step in range(STEPS):
            choice = generator.random()
            if not members or (choice < 0.5 and len(members) < 4):
                members.append(Member(daemon, topic, seen, polls=generator.random() < 0.5))
            elif choice < 0.85:
                await members.pop(generator.randrange(len(members))).leave()
            else:
                await members.pop(generator.randrange(len(members))).die()
            first = step * RECORDS_PER_STEP
            for number in range(first, first + RECORDS_PER_STEP):
                await producer.send(topic, b"%d" % number, partition=number % PARTITIONS)
            if members and generator.random() < 0.6:  # else the next one comes or goes in the middle of a rebalance
                await all_are_seen(first + RECORDS_PER_STEP)
            await ensure_commits_only_grow()
        if not members:
            members.append(Member(daemon, topic, seen, polls=True))
        await producer.flush()
        await all_are_seen(STEPS * RECORDS_PER_STEP)
        for member in members:
            await member.leave()
        await ensure_commits_only_grow()
    ours = {partition: offset for partition, offset in committed.items() if partition.topic == topic}
    assert sum(ours.values()) == STEPS * RECORDS_PER_STEP
