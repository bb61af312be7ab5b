"""The states of `__share_group_state`: merging of batches, and which records are needed."""

from __future__ import annotations

import random

import pytest

from barnabas.broker.share.batches import combine
from barnabas.broker.share.shard import ShareRecord, StateChange, StateShard
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.share.state_records import SharePartitionKey, ShareSnapshotValue, ShareUpdateValue, StateBatch

FIRST, SECOND = (SharePartitionKey(group, bytes(16), 0) for group in ("first", "second"))
UPDATES = 3


def test_the_highest_delivery_of_each_offset_is_kept_in_batches_that_do_not_overlap() -> None:
    rng = random.Random(5)
    for _ in range(500):
        given = []
        for _ in range(rng.randrange(1, 8)):
            first = rng.randrange(30)
            given.append(StateBatch(first, first + rng.randrange(10), rng.choice((0, 2, 4)), rng.randrange(1, 4)))
        start = rng.choice((-1, rng.randrange(30)))
        combined = combine(given[:3], given[3:], start)
        kept = {}
        for each in combined:
            for offset in range(each.first_offset, each.last_offset + 1):
                assert offset not in kept, "batches overlap"
                kept[offset] = (each.delivery_count, each.delivery_state)
        assert set(kept) == {
            offset
            for each in given
            for offset in range(each.first_offset, each.last_offset + 1)
            if start == -1 or offset >= start
        }
        assert list(kept) == sorted(kept)


def replayed(shard: StateShard, *records: ShareRecord) -> None:
    for record in records:
        shard.replay(record, replayed.offset, UPDATES)  # type: ignore[attr-defined]
        replayed.offset += 1  # type: ignore[attr-defined]


def needed(shard: StateShard) -> int | None:
    return shard.needed.below_is_redundant


def test_nothing_is_needed_below_the_oldest_of_the_last_snapshots() -> None:
    replayed.offset = 0  # type: ignore[attr-defined]
    shard = StateShard(lambda topic_id, partition: True)
    replayed(shard, shard.initialize(FIRST, 0, 0, 0), shard.initialize(SECOND, 0, 0, 0))
    assert needed(shard) is None
    kinds = []
    for number in range(UPDATES + 1):
        record = shard.write(FIRST, StateChange(0, 0, number, ()), UPDATES, 10)
        kinds.append(type(record.value))
        replayed(shard, record)
    assert kinds == [ShareUpdateValue] * UPDATES + [ShareSnapshotValue]
    assert needed(shard) == 1, "the second group has not changed since its beginning"
    cold = shard.snapshots_of_cold(100, 105)
    assert [each.key for each in cold] == [SECOND], "the first was written at 10"
    replayed(shard, *cold)
    assert needed(shard) == 2 + UPDATES
    tombstone = shard.delete(FIRST)
    assert tombstone is not None
    replayed(shard, tombstone)
    assert needed(shard) == 3 + UPDATES
    assert shard.delete(FIRST) is None


def test_a_negative_state_epoch_does_not_fence_a_state_that_is_not_there() -> None:
    shard = StateShard(lambda topic_id, partition: False)
    with pytest.raises(BrokerError) as refused:
        shard.initialize(FIRST, -7, 0, 0)
    assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
