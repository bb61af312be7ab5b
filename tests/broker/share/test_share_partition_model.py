"""A model of share partitions: random fetches, acknowledgements, failures, lock timeouts, cleaning and restarts.

The model keeps, for each record, who has it, how often it was delivered and what became of it. It knows nothing of
batches, gaps or start offsets. What the state machine writes goes to a StateShard, and a restart begins from that.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from barnabas.broker.groups.share.settings import ShareGroupSettings
from barnabas.broker.share.partition.acquisition import Fetched
from barnabas.broker.share.partition.share_partition import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Acknowledgement,
    Change,
    SharePartition,
)
from barnabas.broker.share.shard import StateChange, StateShard
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.share.state_records import SharePartitionKey, StateBatch

KEY = SharePartitionKey("g", bytes(16), 0)
MEMBERS = ("a", "b", "c")
LIMIT = 4
LOCK_MS = 1000


@dataclass
class Record:
    """What the model knows of a record."""

    count: int = 0
    stored_count: int = 0
    owner: str | None = None
    deadline_ms: float = 0
    is_done: bool = False
    is_stored_done: bool = False


class World:
    """A log, the share coordinator's shard, the state machine and the model."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.settings = ShareGroupSettings(
            record_lock_duration_ms=LOCK_MS,
            delivery_count_limit=LIMIT,
            partition_max_record_locks=self.rng.choice((6, 12, 60)),
        )
        self.now_ms = 0.0
        self.batches: list[tuple[int, int]] = []
        self.records: dict[int, Record] = {}
        self.log_start = 0
        self.shard = StateShard(lambda topic_id, partition: True)
        self.offset = 0
        self._put(self.shard.initialize(KEY, 0, 0, 0))
        self.shared = self._loaded()

    @property
    def log_end(self) -> int:
        return self.batches[-1][1] + 1 if self.batches else self.log_start

    def _put(self, record: object) -> None:
        self.shard.replay(record, self.offset, 5)  # type: ignore[arg-type]
        self.offset += 1

    def _loaded(self) -> SharePartition:
        shared = SharePartition(lambda: self.settings)
        state = self.shard.states[KEY]
        shared.window.load(state.start_offset, state.state_batches)
        return shared

    def write(self, batches: Sequence[StateBatch]) -> None:
        window = self.shared.window
        change = StateChange(0, 0, window.start_offset, batches, window.delivery_complete_count)
        self._put(self.shard.write(KEY, change, 5, 0))
        for each in batches:
            for offset in range(each.first_offset, each.last_offset + 1):
                if offset in self.records:
                    assert each.delivery_state != 1
                    self.records[offset].stored_count = each.delivery_count
                    self.records[offset].is_stored_done = each.delivery_state != 0

    # -- steps

    def append(self) -> None:
        first = self.log_end + (self.rng.randrange(3) if self.rng.random() < 0.2 else 0)
        last = first + self.rng.randrange(8)
        self.batches.append((first, last))
        self.records |= {offset: Record() for offset in range(first, last + 1)}

    def fetch(self) -> None:
        offset = self.shared.next_fetch_offset()
        if not self.shared.can_acquire:
            return
        if offset < self.log_start:
            self.shared.window.move_start(self.log_start)
            return
        wanted = [each for each in self.batches if each[1] >= offset][: self.rng.randrange(1, 4)]
        member = self.rng.choice(MEMBERS)
        is_limited = self.rng.random() < 0.4
        max_records = self.rng.randrange(1, 12)
        window = self.shared.window
        end = window.end_offset if window.in_flight >= self.settings.partition_max_record_locks else self.log_end
        acquired = self.shared.acquire(
            member,
            Fetched(offset, wanted),
            batch_size=self.rng.choice((3, 500)),
            max_records=max_records,
            is_limited=is_limited,
            now_ms=self.now_ms,
        )
        for each in acquired:
            assert each.first_offset <= each.last_offset
            for number in range(each.first_offset, each.last_offset + 1):
                record = self.records.get(number)
                if record is None:
                    continue
                assert record.owner is None, f"{number} has two owners"
                assert not record.is_done, f"{number} is delivered although it is done"
                record.count += 1
                assert each.delivery_count == record.count <= LIMIT, number
                record.owner, record.deadline_ms = member, self.now_ms + LOCK_MS
        if is_limited:
            assert sum(each.last_offset - each.first_offset + 1 for each in acquired) <= max_records
        if wanted and not acquired:
            free = [each for each, record in self.records.items() if self._is_free(each, record)]
            in_reach = [each for each in free if offset <= each <= min(end, wanted[-1][1])]
            assert not in_reach, f"{in_reach} are not delivered"

    def _is_free(self, offset: int, record: Record) -> bool:
        return record.owner is None and not record.is_done and offset >= self.log_start

    def acknowledge(self) -> None:
        member = self.rng.choice(MEMBERS)
        offsets = sorted(
            each for each, record in self.records.items() if record.owner == member and each >= self.log_start
        )
        if not offsets:
            return
        first = self.rng.choice(offsets)
        last = first
        while last + 1 in offsets and self.rng.random() < 0.8:
            last += 1
        if self.rng.random() < 0.5:
            types = [self.rng.choice((GAP, ACCEPT, RELEASE, REJECT, RENEW))]
        else:
            types = [self.rng.choice((ACCEPT, RELEASE, REJECT, RENEW)) for _ in range(first, last + 1)]
        change = self.shared.acknowledge(member, [Acknowledgement(first, last, types)], self.now_ms)
        for offset in range(first, last + 1):
            if types[0 if len(types) == 1 else offset - first] == RENEW:
                self.records[offset].deadline_ms = self.now_ms + LOCK_MS
        if self.rng.random() < 0.2:
            self.now_ms += self.rng.choice((0, 100, LOCK_MS + 1))
            self._complete(change, is_written=False)
            for offset in range(first, last + 1):
                record = self.records[offset]
                changed = types[0 if len(types) == 1 else offset - first] != RENEW
                if changed and record.deadline_ms <= self.now_ms:
                    self._released(record)
            self.expire(0)
            return
        if change.batches:
            self.write(change.batches)
        self._complete(change, is_written=True)
        for offset in range(first, last + 1):
            kind = types[0 if len(types) == 1 else offset - first]
            record = self.records[offset]
            if kind == RELEASE:
                self._released(record)
            elif kind != RENEW:
                record.owner, record.is_done = None, True

    def _released(self, record: Record) -> None:
        record.owner = None
        record.is_done = record.count >= LIMIT

    def _complete(self, change: Change, *, is_written: bool) -> None:
        self.shared.complete(change, is_written=is_written, now_ms=self.now_ms)

    def acknowledge_of_others(self) -> None:
        """A member that does not have a record changes nothing."""
        strangers = [
            offset
            for offset, record in self.records.items()
            if record.owner != "a" and offset >= self.shared.window.start_offset
        ]
        if strangers:
            offset = self.rng.choice(strangers)
            with pytest.raises(BrokerError):
                self.shared.acknowledge("a", [Acknowledgement(offset, offset, [ACCEPT])], self.now_ms)

    def release_member(self) -> None:
        member = self.rng.choice(MEMBERS)
        change = self.shared.release_member(member)
        if change.batches:
            self.write(change.batches)
        self._complete(change, is_written=True)
        for record in self.records.values():
            if record.owner == member:
                self._released(record)

    def expire(self, elapsed_ms: int) -> None:
        self.now_ms += elapsed_ms
        batches = self.shared.expire(self.now_ms)
        if batches:
            self.write(batches)
        for record in self.records.values():
            if record.owner is not None and record.deadline_ms <= self.now_ms:
                self._released(record)

    def delete_records(self) -> None:
        if self.log_end > self.log_start:
            self.log_start = self.rng.randrange(self.log_start, self.log_end)
            self.batches = [each for each in self.batches if each[1] >= self.log_start]
            self.shared.window.move_start(self.log_start)
            for offset, record in self.records.items():
                if offset < self.log_start:
                    record.owner, record.is_done = None, True

    def compact(self) -> None:
        """Take a batch out of the log, but not the last one. Whoever has its records keeps them."""
        if len(self.batches) > 1:
            first, last = self.batches.pop(self.rng.randrange(len(self.batches) - 1))
            for offset in range(first, last + 1):
                self.records.pop(offset, None)

    def restart(self) -> None:
        self.shared = self._loaded()
        self.shared.window.move_start(self.log_start)
        stored_start = self.shard.states[KEY].start_offset
        for offset, record in self.records.items():
            record.owner = None
            # A lock that ran out after a failed write left a record without deliveries, of which nothing is stored.
            record.is_done = record.is_done and (record.is_stored_done or offset < max(stored_start, self.log_start))
            if not record.is_done:
                record.count = record.stored_count

    def check(self) -> None:
        window = self.shared.window
        done = [offset for offset, record in self.records.items() if record.is_done]
        for offset, record in self.records.items():
            if offset < window.start_offset:
                assert record.is_done or offset < self.log_start, f"{offset} is passed over"
        first = self.records.get(window.start_offset)
        assert first is None or not first.is_done or not len(window), f"the start offset stays at {window.start_offset}"
        ahead = sum(offset >= window.start_offset for offset in done)
        holes = window.end_offset - window.start_offset + 1  # offsets without records may be counted, too
        assert ahead - holes <= window.delivery_complete_count <= ahead + holes

    def drain(self) -> None:
        """Everything that is not done is delivered in the end, and the start offset reaches the end."""
        for _ in range(2000):
            if self.shared.window.start_offset >= self.log_end:
                return
            self.expire(LOCK_MS + 1)
            self.fetch()
            self.check()
            for member in MEMBERS:
                for offset in [each for each, record in self.records.items() if record.owner == member]:
                    if offset < self.log_start:
                        continue
                    change = self.shared.acknowledge(member, [Acknowledgement(offset, offset, [ACCEPT])], self.now_ms)
                    self.write(change.batches)
                    self._complete(change, is_written=True)
                    self.records[offset].owner, self.records[offset].is_done = None, True
        raise AssertionError(f"the start offset stays at {self.shared.window.start_offset} of {self.log_end}")


@pytest.mark.parametrize("seed", range(40))
def test_each_record_is_acknowledged_once_or_delivered_again_within_its_count(seed: int) -> None:
    world = World(seed)
    steps = (
        [world.append, world.fetch, world.acknowledge] * 6
        + [world.acknowledge_of_others, world.release_member, lambda: world.expire(300)] * 2
        + [world.restart, world.delete_records, world.compact]
    )
    for _ in range(250):
        world.rng.choice(steps)()
        world.check()
    world.drain()
    assert all(record.is_done for offset, record in world.records.items() if offset >= world.log_start)
