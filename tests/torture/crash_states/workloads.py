"""Workloads whose recordings are explored. Each is short: what matters is the number of different steps.

A workload begins on empty directories, or on what an earlier one left (`AFTER`).
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

from tests.support.storage.bench import START_MS, batch
from tests.support.storage.cleaning import clean
from tests.torture.crash_states.coordinator_workloads import group_offsets, transactions
from tests.torture.crash_states.promises import Stored
from tests.torture.crash_states.recording import Recorder
from tests.torture.crash_states.share_workloads import share_groups, share_groups_unsynced
from tests.torture.crash_states.workbench import Workbench

Workload = Callable[[Recorder, random.Random], None]


def first_start(recorder: Recorder, choose: random.Random) -> None:
    """The first start on empty directories, and a clean stop."""
    Workbench(recorder, begins=False).close()


def append_and_roll(recorder: Recorder, choose: random.Random) -> None:
    """Appends with acknowledgements after a sync, rolls in the background, checkpoints, a clean stop."""
    bench = Workbench(recorder)
    orders = bench.create("orders")
    for _ in range(9):
        bench.append(orders, size=150)
    bench.checkpoint()  # rolled, and not synced yet
    bench.run_background()
    for _ in range(12):
        bench.append(orders, size=choose.choice((40, 90, 300)))
        if choose.random() < 0.5:
            bench.flush(orders)
        if choose.random() < 0.3:
            bench.run_background()
        if choose.random() < 0.2:
            bench.checkpoint()
    bench.flush(orders)
    bench.close()


def stop_and_start(recorder: Recorder, choose: random.Random) -> None:
    """A clean stop, and a start after it."""
    bench = Workbench(recorder, begins=False)
    orders = bench.create("orders")
    for _ in range(14):
        bench.append(orders, size=120)
    bench.begin()
    bench.close()
    bench = Workbench(recorder, count=1000)
    bench.note_recovered()
    for _ in range(4):
        bench.append(orders, size=120)
    bench.checkpoint()
    bench.append(orders)
    bench.flush(orders)
    bench.abandon()


def topics(recorder: Recorder, choose: random.Random) -> None:
    """Topics are created, filled, deleted and created again."""
    bench = Workbench(recorder)
    for name in ("one", "two"):
        first = bench.create(name, 2)
        bench.append(first)
        bench.flush(first)
    bench.delete("one")
    again = bench.create("one")
    bench.append(again)
    bench.flush(again)
    bench.opened.log_manager.deletions.remove_due()
    bench.clock.now_ms += 120_000
    bench.opened.log_manager.deletions.remove_due()
    bench.delete("two")
    bench.checkpoint()
    bench.abandon()


def metadata_snapshots(recorder: Recorder, choose: random.Random) -> None:
    """Snapshots of the metadata log, and its trimming, between changes."""
    bench = Workbench(recorder)
    for number in range(4):
        bench.create(f"topic-{number}")
        assert bench.opened.store.take_snapshot()
        if number == 2:
            bench.delete("topic-0")
        bench.run_background(70_000)
    bench.abandon()


def retention(recorder: Recorder, choose: random.Random) -> None:
    """Old segments and records are deleted."""
    bench = Workbench(recorder, changes={"retention_bytes": 2500, "retention_ms": -1})
    orders = bench.create("orders")
    for round_number in range(4):
        for _ in range(5):
            bench.append(orders, size=150)
        bench.flush(orders)
        bench.run_background()
        log = bench.log(orders)
        if round_number == 1:
            bench.allow_start(orders, log.segments[1].base_offset + 1)
            log.delete_records(log.segments[1].base_offset + 1)
        bench.allow_start(orders, log.segments[-1].base_offset)
        log.delete_old_segments()
        bench.checkpoint()
        bench.run_background(1000)
    bench.append(orders)
    bench.abandon()


def leader_epochs(recorder: Recorder, choose: random.Random) -> None:
    """New leader epochs between appends, as after restarts and takeovers."""
    bench = Workbench(recorder)
    orders = bench.create("orders")
    for _ in range(5):
        bench.append(orders)
        if choose.random() < 0.5:
            bench.flush(orders)
        log = bench.log(orders)
        log.assign_epoch_start_offset(log.latest_leader_epoch + 1, log.log_end_offset)
    bench.append(orders)
    bench.flush(orders)
    bench.abandon()


def compaction(recorder: Recorder, choose: random.Random) -> None:
    """Segments are cleaned and replaced. Nothing is left of some, a tombstone goes after its value."""
    changes = {"compact": True, "delete": False, "delete_retention_ms": 0}
    bench = Workbench(recorder, changes=changes, begins=False)
    orders = bench.create("orders")
    for keys in (b"abca", b"abdq", b"aaaa", b"aafa"):
        for _ in range(2):
            bench.append(orders, [bytes([key]) for key in keys], size=70)
        bench.log(orders).roll()
    bench.append(orders, [b"q"], value=None)
    bench.log(orders).roll()
    bench.append(orders, [b"a", b"a"])
    bench.log(orders).roll()
    bench.append(orders, [b"a", b"z"])
    bench.flush(orders)
    bench.run_background()
    bench.checkpoint()
    bench.allow_compaction(orders)
    bench.begin()
    for round_number in range(3):
        log = bench.log(orders)
        clean(log, end=log.segments[-1].base_offset, now_ms=bench.clock.now_ms + round_number * 86_400_000)
        bench.run_background(1000)
    bench.abandon()


def directory_move(recorder: Recorder, choose: random.Random) -> None:
    """A log is copied to the other log directory, takes over there, and is moved back, while it is appended to."""
    bench = Workbench(recorder)
    orders = bench.create("orders")
    for _ in range(9):
        bench.append(orders, size=150)
    bench.flush(orders)
    bench.run_background()
    bench.checkpoint()
    for _ in range(2):
        bench.move(orders)
        while bench.opened.log_manager.moves.running:
            bench.opened.log_manager.moves.step()
            bench.append(orders, size=choose.choice((40, 150)))
            if choose.random() < 0.5:
                bench.flush(orders)
        bench.append(orders)
        bench.flush(orders)
        bench.run_background()
        bench.opened.log_manager.deletions.remove_due()
        bench.clock.now_ms += 120_000
        bench.opened.log_manager.deletions.remove_due()
    bench.abandon()


def overflow_split(recorder: Recorder, choose: random.Random) -> None:
    """The start after a crash splits a segment with more offsets than an index can hold, as old cleaners left them."""
    bench = Workbench(recorder, begins=False)
    orders = bench.create("orders")
    directory = bench.log(orders).directory
    span = 2**31
    records = {
        offset: Stored(b"%d" % offset, bytes(choose.randrange(20, 300)), START_MS + number)
        for number, offset in enumerate((0, 5, span - 1, span, span + 7, span + 8, 2 * span + 9, 2 * span + 10))
    }
    bench.note_written(orders, records)
    bench.abandon()
    _write_segment(directory / f"{0:020}.log", records)
    Workbench(recorder).abandon()


def _write_segment(path: Path, records: dict[int, Stored]) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    for offset, record in records.items():
        data = batch((record.timestamp, record.key, record.value), partition_leader_epoch=0)
        os.write(descriptor, offset.to_bytes(8, "big") + data[8:])  # which the CRC does not cover
    os.fsync(descriptor)
    os.close(descriptor)


def producers(recorder: Recorder, choose: random.Random) -> None:
    """Idempotent producers, whose snapshots are written at rolls and at a clean stop."""
    bench = Workbench(recorder)
    orders = bench.create("orders")
    sequences = dict.fromkeys((7, 8, 9), 0)

    def produce(count: int) -> None:
        for _ in range(count):
            producer_id = choose.choice(list(sequences))
            bench.append(
                orders, producer_id=producer_id, producer_epoch=0, base_sequence=sequences[producer_id], size=150
            )
            sequences[producer_id] += 2
            if choose.random() < 0.4:
                bench.flush(orders)
            if choose.random() < 0.3:
                bench.run_background()
            if choose.random() < 0.3:
                bench.checkpoint()

    produce(14)
    bench.close()
    bench = Workbench(recorder, count=1000)
    bench.note_recovered()
    produce(6)
    bench.abandon()


def clock_jumps(recorder: Recorder, choose: random.Random) -> None:
    """The wall clock jumps by hours and years, forth and back, while segments roll by time and producers are idle."""
    hour = 3_600_000
    bench = Workbench(recorder, changes={"segment_ms": 20_000, "retention_ms": -1, "segment_bytes": 100_000})
    orders = bench.create("orders")
    sequence = 0
    for _ in range(12):
        bench.clock.jumped_ms = choose.choice((0, hour, -hour, 12 * hour, -100_000 * hour, 100_000 * hour))
        bench.append(orders, producer_id=7, producer_epoch=0, base_sequence=sequence, size=90)
        sequence += 2
        bench.run_background(10_000)
        bench.flush(orders)
        bench.log(orders).delete_old_segments()
        if choose.random() < 0.4:
            bench.checkpoint()
    bench.close()
    bench = Workbench(recorder, count=1000)
    bench.note_recovered()
    bench.append(orders)
    bench.flush(orders)
    bench.abandon()


def restart(recorder: Recorder, choose: random.Random) -> None:
    """A start on what an earlier run left, appends, and another power cut."""
    bench = Workbench(recorder, begins=False, count=1000)
    bench.note_recovered()
    partitions = [log.topic_partition for log in bench.opened.log_manager.logs()]
    for _ in range(6):
        for topic_partition in partitions:
            bench.append(topic_partition, size=choose.choice((40, 150)))
            if choose.random() < 0.5:
                bench.flush(topic_partition)
        if choose.random() < 0.5:
            bench.run_background()
        if choose.random() < 0.5:
            bench.checkpoint()
    bench.abandon()


WORKLOADS: dict[str, Workload] = {
    "first_start": first_start,
    "append_and_roll": append_and_roll,
    "stop_and_start": stop_and_start,
    "topics": topics,
    "metadata_snapshots": metadata_snapshots,
    "compaction": compaction,
    "retention": retention,
    "leader_epochs": leader_epochs,
    "directory_move": directory_move,
    "overflow_split": overflow_split,
    "producers": producers,
    "clock_jumps": clock_jumps,
    "group_offsets": group_offsets,
    "transactions": transactions,
    "share_groups": share_groups,
    "share_groups_unsynced": share_groups_unsynced,
    "restart_after_a_crash": restart,
}

AFTER = {"restart_after_a_crash": "append_and_roll"}
"""Workloads that begin on what a power cut in another one left."""
