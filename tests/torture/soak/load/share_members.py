"""Members of a share group (KIP-932): they accept, release, reject and keep records, leave, and come back."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping

from barnabas import ShareConsumer, ShareConsumerConfig, ShareRecord
from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import ClientError
from barnabas.commands.group.share_group import described_share_group
from tests.support.daemon import Daemon
from tests.support.share.group_settings import set_group_configs
from tests.torture.soak.history import ACCEPTED, REJECTED, RELEASED, Acknowledgement, Delivery
from tests.torture.soak.load.stage import PARTITIONS, Stage, pause

DELIVERIES = 25
"""Of a record at most. Connections are not cut that often."""
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": 2,
    "share.coordinator.state.topic.segment.bytes": 65536,
    "group.share.min.session.timeout.ms": 5000,
    "group.share.session.timeout.ms": 5000,
    "group.share.min.heartbeat.interval.ms": 100,
    "group.share.heartbeat.interval.ms": 500,
    "group.share.max.delivery.count.limit": DELIVERIES,
}
"""Of the broker."""
_CONFIGS = {
    "share.auto.offset.reset": "earliest",
    "share.isolation.level": "read_committed",
    "share.delivery.count.limit": str(DELIVERIES),
    # Long beside the time between two polls. Where the disk is full, what a member had is not released when it leaves,
    # but when its locks run out.
    "share.record.lock.duration.ms": "20000",
}
_KEPT = "kept"
_CHANCES = {ACCEPTED: 83, RELEASED: 5, REJECTED: 2, _KEPT: 10}
"""What becomes of a record that a member has, by weight."""
_AT_THE_END = {ACCEPTED: 95, RELEASED: 5}
_WORK_S = (0.0, 0.0, 0.2)
"""Between a poll and its acknowledgements."""
_POLLED = 500
_ALL = 1 << 20


def begin_share_group(daemon: Daemon, stage: Stage) -> None:
    """Set the configs of the round's group. Blocks."""
    set_group_configs(daemon, stage.share_group, _CONFIGS)


def end_share_group(daemon: Daemon, stage: Stage) -> None:
    """Remove the configs of the round's group, which outlive the group. Blocks."""
    set_group_configs(daemon, stage.share_group, dict.fromkeys(_CONFIGS))


class OwnShareMember:
    """A member that acknowledges each record by a call."""

    def __init__(self, stage: Stage, name: str, bootstrap: str, acquire_mode: str) -> None:
        self._stage = stage
        self._name = name
        self._config = ShareConsumerConfig(
            bootstrap=bootstrap,
            group=stage.share_group,
            acknowledgement="explicit",
            acquire_mode=acquire_mode,
            max_poll_records=_POLLED,
            max_wait_ms=200,
        )

    async def run(self) -> None:
        """Read until the stage's readers end and every record is done."""
        stage = self._stage
        chance = stage.chance(self._name)
        lives = 0
        done = False
        while not done:
            lives += 1
            try:
                async with ShareConsumer(self._config) as queue:
                    await queue.subscribe([stage.shared])
                    life = _Life(stage, queue, f"{self._name}/{lives}", chance)
                    done = await life.read(polls=chance.choice((5, 20, 100)))
            except ClientError as error:
                stage.note_error(self._name, error)
                await pause(0.2)


class _Life:
    """What one consumer does, from its start to its end."""

    def __init__(self, stage: Stage, queue: ShareConsumer, session: str, chance: random.Random) -> None:
        self._stage = stage
        self._queue = queue
        self._session = session
        self._chance = chance
        self._since: int | None = None
        self._held: dict[tuple[int, int], tuple[ShareRecord, Delivery]] = {}

    async def read(self, polls: int) -> bool:
        """Read some times; return whether every record is done."""
        for _ in range(polls):
            ends = self._stage.readers_end.is_set()
            if await self._poll():
                await pause(self._chance.choice(_WORK_S))  # so that there are records which a member has
                await self._acknowledge(_AT_THE_END if ends else _CHANCES)
            elif ends and self._held:
                return False  # they are released when the consumer is closed, and nobody keeps them any more
            elif ends and await _is_done(self._stage):
                self._stage.shared_done.set()
                return True
        return False

    async def _poll(self) -> bool:
        """Get records; return whether there were any.

        The consumer fetches when a read waits and it has nothing. A fetch goes on after a read that got nothing, and
        its records come with a later one: what this poll returns was acquired after the first read since the last
        records began.
        """
        tick = self._stage.history.tick
        if self._since is None:
            self._since = tick()
        records = await self._queue.poll(_ALL, timeout_ms=300)
        if not records:
            return False
        got, since, self._since = tick(), self._since, None
        for each in records:
            place = (each.topic, each.partition)
            delivery = Delivery(self._session, place, since, got, each.offset, each.value or b"", each.delivery_count)
            self._stage.history.deliveries.append(delivery)
            self._held[each.partition, each.offset] = (each, delivery)
        return True

    async def _acknowledge(self, chances: Mapping[str, int]) -> None:
        """Acknowledge what this member has. Raises ClientError.

        Only after a poll that got records: then no other fetch is under way, and what is acknowledged are the latest
        deliveries.
        """
        kinds = self._chance.choices(list(chances), list(chances.values()), k=len(self._held))
        history = self._stage.history
        chosen: dict[str, list[tuple[ShareRecord, Delivery]]] = defaultdict(list)
        for kind, held in zip(kinds, self._held.values(), strict=True):
            chosen[kind].append(held)
        kept = chosen.pop(_KEPT, [])
        self._held = {(record.partition, record.offset): (record, delivery) for record, delivery in kept}
        calls = {ACCEPTED: self._queue.ack, RELEASED: self._queue.release, REJECTED: self._queue.reject}
        for kind, found in chosen.items():
            began, ended = history.tick(), None
            try:
                await calls[kind](*(record for record, _ in found))
                ended = history.tick()
            finally:
                history.acknowledgements += [Acknowledgement(each, kind, began, ended) for _, each in found]


async def _is_done(stage: Stage) -> bool:
    """Return whether the group has done all records of the topic."""
    found = await described_share_group(ClientConfig(bootstrap=stage.bootstrap), stage.share_group)
    return [each["lag"] for each in found["partitions"]] == [0] * PARTITIONS
