"""A share partition's records in flight: single cases. `test_share_partition_model` has the random ones."""

from __future__ import annotations

from typing import NoReturn

from barnabas.broker.groups.share.settings import ShareGroupSettings
from barnabas.broker.share.partition.acquisition import Fetched
from barnabas.broker.share.partition.in_flight import InFlightState
from barnabas.broker.share.partition.share_partition import ACCEPT, RENEW, Acknowledgement, SharePartition
from barnabas.protocol.messages.share.share_fetch import AcquiredRecords
from barnabas.protocol.share.state_records import StateBatch

LOCK_MS = 1000


def share_partition(locks: int = 2000, deliveries: int = 5) -> SharePartition:
    settings = ShareGroupSettings(
        record_lock_duration_ms=LOCK_MS, partition_max_record_locks=locks, delivery_count_limit=deliveries
    )
    shared = SharePartition(lambda: settings)
    shared.window.load(0, ())
    return shared


def acquire(
    shared: SharePartition, member_id: str, batches: list[tuple[int, int]], now_ms: float = 0
) -> list[AcquiredRecords]:
    fetched = Fetched(shared.next_fetch_offset(), batches)
    return shared.acquire(member_id, fetched, batch_size=1, max_records=500, is_limited=False, now_ms=now_ms)


def accept(shared: SharePartition, member_id: str, first: int, last: int) -> None:
    change = shared.acknowledge(member_id, [Acknowledgement(first, last, [ACCEPT])], 0)
    shared.complete(change, is_written=True, now_ms=0)


def test_nothing_is_acquired_beyond_the_locks_where_a_released_record_is_compacted_away() -> None:
    shared = share_partition(locks=10)
    acquire(shared, "a", [(offset, offset) for offset in range(9)])
    acquire(shared, "b", [(9, 9)])
    shared.complete(shared.release_member("b"), is_written=True, now_ms=0)
    assert shared.next_fetch_offset() == 9
    assert acquire(shared, "b", [(11, 15)]) == []
    assert shared.next_fetch_offset() == 10
    assert [each.last_offset for each in shared.window] == list(range(10))


def test_the_start_offset_passes_what_was_acknowledged_behind_deleted_records() -> None:
    shared = share_partition()
    acquire(shared, "a", [(0, 99), (100, 5099)])
    accept(shared, "a", 1, 5099)
    shared.expire(LOCK_MS)
    shared.window.move_start(100)
    assert (shared.window.start_offset, shared.window.in_flight) == (5100, 0)
    assert shared.can_acquire


def test_the_start_offset_passes_a_record_without_deliveries_left_whose_change_failed_after_the_lock() -> None:
    shared = share_partition(deliveries=2)
    for now_ms in (0, LOCK_MS):
        shared.expire(now_ms)
        acquire(shared, "a", [(0, 0)], now_ms)
    change = shared.acknowledge("a", [Acknowledgement(0, 0, [ACCEPT])], LOCK_MS)
    shared.complete(change, is_written=False, now_ms=2 * LOCK_MS)
    assert (shared.window.start_offset, shared.window.in_flight) == (1, 0)


class LookedUp(dict[int, InFlightState]):
    """States of offsets that may be looked up, but not walked through."""

    def items(self) -> NoReturn:
        raise AssertionError("the states of all offsets are walked through")

    __iter__ = keys = values = items


def test_changes_of_some_offsets_look_at_no_others_of_their_batch() -> None:
    shared = share_partition()
    acquire(shared, "a", [(0, 99)])
    accept(shared, "a", 0, 0)
    batch = shared.window.first
    assert batch is not None
    batch.offsets = LookedUp(batch.offsets)
    accept(shared, "a", 1, 3)
    shared.acknowledge("a", [Acknowledgement(4, 5, [RENEW])], LOCK_MS / 2)
    accept(shared, "a", 6, 99)
    assert shared.window.start_offset == 4
    assert [each.first_offset for each in shared.expire(LOCK_MS * 2)] == [4, 5]


def test_a_lock_that_is_renewed_again_and_again_is_remembered_a_bounded_number_of_times() -> None:
    shared = share_partition()
    acquire(shared, "a", [(0, 0)])
    renewal = [Acknowledgement(0, 0, [RENEW])]
    shared.acknowledge("a", renewal * 500, 1)
    assert len(shared._locks) == 2
    for now_ms in range(2, 5000):
        shared.acknowledge("a", renewal, now_ms)
    assert len(shared._locks) <= 1000
    assert not shared.expire(4999 + LOCK_MS - 1)
    assert shared.expire(4999 + LOCK_MS) == [StateBatch(0, 0, 0, 1)]
    assert shared.next_deadline_ms is None


def test_the_settings_are_read_once_by_a_request_of_many_records() -> None:
    asked = 0

    def settings() -> ShareGroupSettings:
        nonlocal asked
        asked += 1
        return ShareGroupSettings(record_lock_duration_ms=LOCK_MS)

    shared = SharePartition(settings)
    shared.window.load(0, ())
    acquire(shared, "a", [(offset, offset) for offset in range(90)])
    asked = 0
    kinds = [ACCEPT, RENEW] * 15
    change = shared.acknowledge("a", [Acknowledgement(0, 29, kinds), Acknowledgement(30, 59, kinds)], 0)
    assert asked == 1
    shared.complete(change, is_written=True, now_ms=0)
    assert len(shared.expire(LOCK_MS)) == 60
    assert asked == 2
    acquire(shared, "a", [(offset, offset) for offset in range(90, 120)])
    asked = 0
    assert len(shared.release_member("a").states) == 30
    assert asked == 1
