"""Moves to another log directory: exact copies, appends meanwhile, and a clean state after every way to end."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from barnabas.broker.storage import partition_moves
from barnabas.broker.storage.files.partition_metadata_file import write_partition_metadata
from barnabas.broker.storage.log.future_log import FutureLog
from barnabas.broker.storage.log.lookup import FoundOffset
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.log_manager import LogManager
from barnabas.broker.storage.partition_moves import MOVE_TASK
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.storage.bench import (
    START_MS,
    TOPIC_ID,
    TP,
    AnnouncedLock,
    ManualClock,
    StepScheduler,
    append,
    broker_config,
    read_batches,
    sized_batch,
)
from tests.support.storage.legacy import message_sets
from tests.support.storage.transactions import end, send


class MovingNode:
    """A manager on directories a, b and c, with partition orders-0 in a, and stepped time."""

    def __init__(self, root: Path, **settings: object) -> None:
        self.a, self.b, self.c = self.paths = [root / name for name in "abc"]
        self.settings = {
            "log_dirs": ",".join(map(str, self.paths)),
            "log_segment_bytes": 1024,
            "log_message_timestamp_after_max_ms": 2**62,
            "log_retention_ms": -1,
            **settings,
        }
        self.clock = ManualClock()
        self.assigned: list[tuple[TopicPartition, Path]] = []
        self.assign: Callable[[PartitionLog, Path], None] = self.note_assignment
        self.manager = self.start()

    def start(self) -> LogManager:
        self.scheduler = StepScheduler(self.clock)
        config = broker_config(**self.settings)
        manager = LogManager(config, clock=self.clock, scheduler=self.scheduler)
        manager.open_directories()
        manager.load_logs(
            lambda topic: manager.config.log_config, assign_directory=lambda log, log_dir: self.assign(log, log_dir)
        )
        return manager

    def note_assignment(self, log: PartitionLog, log_dir: Path) -> None:
        self.assigned.append((log.topic_partition, log_dir))

    def log(self, batches: int = 0) -> PartitionLog:
        log = self.manager.get_or_create(TP, TOPIC_ID, log_dir=self.a)
        for index in range(batches):
            append(log, sized_batch(200, START_MS + index))
        return log

    def run(self) -> None:
        """Run all tasks that are due."""
        self.scheduler.run_due()


@pytest.fixture(autouse=True)
def small_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a take-over copy less than a few batches with the log's lock held."""
    monkeypatch.setattr(partition_moves, "MAX_TAIL_BYTES", 1000)


@pytest.fixture
def node(tmp_path: Path) -> MovingNode:
    return MovingNode(tmp_path)


def contents(log: PartitionLog) -> list[bytes]:
    return [bytes(batch.bytes) for batch in read_batches(log)]


def kinds(path: Path) -> list[str]:
    """Return the names of a log directory's partition directories, without their random part."""
    names = [entry.name for entry in path.iterdir() if entry.is_dir()]
    return sorted(name.split(".")[0] + ("-" + name.rpartition("-")[2] if "." in name else "") for name in names)


def test_a_move_copies_every_batch_unchanged_and_deletes_the_old_directory(node: MovingNode) -> None:
    log = node.log(batches=23)
    before, bases = contents(log), [segment.base_offset for segment in log.segments]

    assert node.manager.move(TP, node.b)
    assert kinds(node.b) == ["orders-0-future"]
    node.run()

    assert node.manager.get(TP) is log
    assert log.directory == node.b / "orders-0"
    assert contents(log) == before
    assert [segment.base_offset for segment in log.segments] == bases
    assert node.assigned == [(TP, node.b)]
    assert (kinds(node.a), kinds(node.b)) == (["orders-0-delete"], ["orders-0"])
    assert node.manager.moves.running == 0
    assert append(log, sized_batch(200)) == 23
    node.manager.deletions.start(0)
    node.scheduler.advance(60_001)
    assert kinds(node.a) == []


def test_appends_between_the_chunks_are_in_the_copy(node: MovingNode) -> None:
    log = node.log(batches=30)
    node.manager.move(TP, node.b)
    for _ in range(200):  # one chunk is one segment here
        node.manager.moves.step()
        append(log, sized_batch(200))
        if log.log_dir == node.b:
            break
    assert log.log_dir == node.b
    assert [batch.base_offset for batch in read_batches(log)] == list(range(log.log_end_offset))


def test_appends_of_another_thread_survive_the_take_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = MovingNode(tmp_path, log_segment_bytes=65536)
    log = node.log(batches=50)
    lock = AnnouncedLock(log.core, "producer")
    monkeypatch.setattr(log.core, "lock", lock)
    appended: list[int] = []

    def produce() -> None:
        appended.extend(append(log, sized_batch(200)) for _ in range(20))  # more than a tail may have

    def before_the_lock(flush: Callable[[], int]) -> int:
        produce()
        return flush()

    def with_the_lock(_log: PartitionLog, _log_dir: Path) -> None:
        lock.wanted.clear()
        producers.append(threading.Thread(target=produce, name="producer"))
        producers[-1].start()
        assert lock.wanted.wait(20)

    node.assign = with_the_lock
    producers: list[threading.Thread] = []
    for target in (node.b, node.c, node.a):
        node.manager.move(TP, target)
        (future,) = node.manager.moves.futures()
        future.log.flush = partial(before_the_lock, future.log.flush)
        for _ in range(20):
            node.manager.moves.step()
        producers[-1].join(20)
        assert log.log_dir == target
        assert not producers[-1].is_alive()
    assert len(producers) == 3
    assert len(appended) > 3 * 2 * 20  # a tail that was too long, one that was not, and what waited for the lock
    assert appended == list(range(50, 50 + len(appended)))
    assert [batch.base_offset for batch in read_batches(log)] == list(range(50 + len(appended)))


def test_durable_batches_are_durable_in_the_new_directory_before_the_old_one_is_removed(
    node: MovingNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = node.log(batches=12)
    log.flush()
    node.manager.move(TP, node.b)
    future = node.manager.moves.futures()[0]
    durable: list[int] = []
    node.assign = lambda log, log_dir: durable.append(future.log.durable_offset)
    node.run()
    assert durable == [12]
    assert (log.durable_offset, log.recovery_point) == (12, 12)


def test_log_start_epochs_producers_and_topic_id_are_moved(node: MovingNode) -> None:
    log = node.log()
    log.assign_epoch_start_offset(3, 0)
    for sequence in range(7):
        log.append_as_leader(sized_batch(200, producer_id=77, producer_epoch=0, base_sequence=sequence), leader_epoch=3)
    log.assign_epoch_start_offset(5, 7)
    append(log, sized_batch(200), leader_epoch=5)
    log.assign_epoch_start_offset(8, 8)
    log.delete_records(6)
    epochs = log.core.epochs.entries

    node.manager.move(TP, node.b)
    node.run()

    assert log.log_dir == node.b
    assert (log.log_start_offset, log.log_end_offset, log.topic_id) == (6, 8, TOPIC_ID)
    assert (log.directory / "partition.metadata").exists()
    repeated = log.append_as_leader(sized_batch(200, producer_id=77, producer_epoch=0, base_sequence=4), leader_epoch=8)
    assert (repeated.is_duplicate, repeated.base_offset) == (True, 4)
    assert log.core.epochs.entries == epochs
    node.manager.shutdown()
    node.manager = node.start()
    loaded = node.manager.get(TP)
    assert loaded is not None
    assert (loaded.log_start_offset, loaded.log_end_offset) == (6, 8)
    # The last epoch has no record: a load drops it, and the next append adds it again.
    assert loaded.core.epochs.entries == epochs[:-1]
    assert loaded.core.producers.producers[77].last_sequence == 6


def test_a_copy_keeps_overdue_producers_that_the_log_still_has(node: MovingNode) -> None:
    log = node.log()
    node.clock.now_ms += 400 * 86_400_000
    old = sized_batch(200, START_MS, producer_id=7, producer_epoch=0, base_sequence=0)
    append(log, memoryview(bytearray(old)))
    for _ in range(20):
        append(log, sized_batch(200))
    node.manager.move(TP, node.b)
    node.manager.moves.step()
    future = node.manager.moves.future_of(TP)
    assert future is not None
    assert node.manager.maintenance.expire_producers() == 0
    assert (future.log.log_end_offset > 0, future.log.producer_count, log.producer_count) == (True, 1, 1)
    node.run()
    assert log.append_as_leader(old, leader_epoch=0).is_duplicate


def test_open_and_aborted_transactions_are_moved(node: MovingNode) -> None:
    log = node.log()
    send(log, 1, 0, b"a", b"b")
    send(log, 2, 0, b"c")
    end(log, 1, is_commit=False)
    append(log, sized_batch(900))  # rolls
    send(log, 1, 2, b"d")
    end(log, 1, is_commit=False)
    before = log.aborted_transactions(0, log.log_end_offset)
    assert len(before) == 2
    node.manager.move(TP, node.b)
    node.run()
    assert log.log_dir == node.b
    assert log.aborted_transactions(0, log.log_end_offset) == before
    assert log.last_stable_offset == 2
    assert sorted(path.name for path in log.directory.glob("*.txnindex")) != []
    end(log, 2, is_commit=True)
    assert log.last_stable_offset == log.log_end_offset


@pytest.mark.parametrize("question", ["aborted transactions", "time"])
def test_a_lookup_during_the_rename_of_a_moved_directory_waits_and_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    node = MovingNode(tmp_path)
    send(node.log(), 1, 0, b"a")
    end(node.log(), 1, is_commit=False)
    append(node.log(), sized_batch(900))  # rolls
    node.manager.shutdown()
    node.manager = node.start()  # nothing of the old segment is cached
    log = node.log()
    lock = AnnouncedLock(log.core, "reader")
    monkeypatch.setattr(log.core, "lock", lock)
    found: list[object] = []

    def ask() -> None:
        if question == "time":
            found.append(log.offset_for_timestamp(START_MS))
        else:
            found.append([(row.producer_id, row.last_offset) for row in log.aborted_transactions(0, 3)])

    reader = threading.Thread(target=ask, name="reader")
    rename = os.rename

    def while_it_is_renamed(source: Path, target: Path) -> None:
        rename(source, target)
        if str(target).endswith("-delete"):
            log.segments[0].log.evict()  # as reads of other logs would
            reader.start()
            assert lock.wanted.wait(20)

    node.manager.move(TP, node.b)
    monkeypatch.setattr(os, "rename", while_it_is_renamed)
    node.run()
    reader.join(20)
    assert log.log_dir == node.b
    assert found == [FoundOffset(START_MS, 0, 0) if question == "time" else [(1, 1)]]


def test_messages_of_old_formats_are_moved_unconverted(tmp_path: Path) -> None:
    sets = message_sets().values()
    directory = tmp_path / "a" / "orders-0"
    directory.mkdir(parents=True)
    stored = b"".join(each.data for each in sets)
    (directory / f"{0:020d}.log").write_bytes(stored)
    write_partition_metadata(directory, TOPIC_ID)
    node = MovingNode(tmp_path, log_segment_bytes=1 << 20)
    log = node.manager.get(TP)
    assert log is not None
    end_offset = log.log_end_offset
    assert end_offset > 0
    found = log.read(0, 1 << 20, upper_bound=end_offset, at_least_one_batch=True)
    assert found is not None
    converted = found.read()
    node.manager.move(TP, node.b)
    node.run()
    assert (log.log_dir, log.log_end_offset) == (node.b, end_offset)
    assert (log.directory / f"{0:020d}.log").read_bytes() == stored
    moved = log.read(0, 1 << 20, upper_bound=end_offset, at_least_one_batch=True)
    assert moved is not None
    assert moved.read() == converted
    assert append(log, sized_batch(200)) == end_offset


def test_an_emptied_log_is_moved_with_its_start_and_end(node: MovingNode) -> None:
    log = node.log(batches=9)
    log.delete_records(-1)
    log.roll()
    log.delete_old_segments()
    assert (log.size_bytes, log.log_start_offset, log.log_end_offset) == (0, 9, 9)
    node.manager.move(TP, node.b)
    node.run()
    assert log.log_dir == node.b
    assert (log.log_start_offset, log.log_end_offset) == (9, 9)
    assert append(log, sized_batch(200)) == 9


def test_the_copy_follows_retention_during_a_move(node: MovingNode) -> None:
    log = node.log(batches=30)
    node.manager.move(TP, node.b)
    node.manager.moves.step()
    log.delete_records(17)
    node.manager.maintenance.run_retention()
    node.run()
    assert log.log_dir == node.b
    assert log.log_start_offset == 17
    assert [batch.base_offset for batch in read_batches(log)] == list(range(17, 30))
    assert log.segments[0].base_offset <= 17
    node.manager.maintenance.run_retention()
    assert log.segments[1].base_offset > 17


def test_a_copy_follows_its_logs_start_and_applies_no_retention_itself(tmp_path: Path) -> None:
    node = MovingNode(tmp_path, log_retention_bytes=2000, log_cleaner_enable="false")
    log = node.log(batches=30)
    node.manager.move(TP, node.b)
    for _ in range(3):
        node.manager.moves.step()
    [future] = node.manager.moves.futures()
    assert future.log.size_bytes > 2000
    node.manager.maintenance.run_retention()
    assert future.log.log_start_offset == 0 < log.log_start_offset
    node.manager.moves.step()
    assert future.log.log_start_offset == min(log.log_start_offset, future.log.log_end_offset) > 0
    node.run()
    assert log.log_dir == node.b
    assert [batch.base_offset for batch in read_batches(log)] == list(range(20, 30))
    assert not list(log.directory.glob("*.deleted"))


def test_slices_in_flight_and_waiting_flushes_survive(node: MovingNode) -> None:
    log = node.log(batches=3)
    part = log.read(0, 1 << 20, upper_bound=3, at_least_one_batch=True)
    assert part is not None
    expected = part.read()
    node.manager.move(TP, node.b)
    node.run()
    node.manager.deletions.start(0)
    node.scheduler.advance(60_001)
    assert part.read() == expected
    append(log, sized_batch(200))
    assert log.flush() == 4


def test_a_flush_overtaken_by_a_take_over_syncs_the_new_files(
    node: MovingNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = node.log(batches=3)
    node.manager.move(TP, node.b)
    real = log.core.active.sync
    synced: list[int] = []

    def sync(*, with_indexes: bool) -> None:
        real(with_indexes=with_indexes)
        if not synced:
            synced.append(1)
            node.run()  # the whole move, while the old active segment is synced
            append(log, sized_batch(200))

    monkeypatch.setattr(type(log.core.active), "sync", lambda segment, *, with_indexes: sync(with_indexes=with_indexes))
    assert log.flush() == 4
    assert log.log_dir == node.b


def test_a_move_to_the_current_directory_changes_nothing(node: MovingNode) -> None:
    node.log(batches=3)
    assert not node.manager.move(TP, node.a)
    assert node.manager.moves.running == 0


def test_a_move_to_the_current_directory_cancels_a_running_move(node: MovingNode) -> None:
    log = node.log(batches=30)
    node.manager.move(TP, node.b)
    node.manager.moves.step()
    assert not node.manager.move(TP, node.a)
    assert kinds(node.b) == ["orders-0-delete"]
    assert (log.log_dir, node.manager.moves.running) == (node.a, 0)
    node.run()
    assert (log.log_dir, node.assigned) == (node.a, [])


def test_a_move_to_a_third_directory_replaces_a_move_and_a_repeated_one_does_not(node: MovingNode) -> None:
    log = node.log(batches=30)
    node.manager.move(TP, node.b)
    node.manager.moves.step()
    assert not node.manager.move(TP, node.b)
    assert node.manager.move(TP, node.c)
    node.run()
    assert (log.log_dir, kinds(node.b), kinds(node.c)) == (node.c, ["orders-0-delete"], ["orders-0"])
    assert contents(log)[29:] != []


def test_deleting_a_topic_deletes_its_copy(node: MovingNode) -> None:
    node.log(batches=30)
    node.manager.move(TP, node.b)
    node.manager.moves.step()
    assert node.manager.delete([TP]) == 1
    assert (kinds(node.a), kinds(node.b)) == (["orders-0-delete"], ["orders-0-delete"])
    node.run()
    assert (node.manager.moves.running, node.assigned) == (0, [])


def test_a_refused_metadata_record_leaves_the_log_and_the_move_is_retried(node: MovingNode) -> None:
    log = node.log(batches=3)

    def refuse(log: PartitionLog, log_dir: Path) -> None:
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "no room")

    node.assign = refuse
    node.manager.move(TP, node.b)
    node.run()
    assert (log.log_dir, log.state, kinds(node.b)) == (node.a, LogState.ONLINE, ["orders-0-future"])
    append(log, sized_batch(200))
    node.assign = node.note_assignment
    node.scheduler.advance(1000)
    assert log.log_dir == node.b
    assert len(contents(log)) == 4


def test_a_full_disk_delays_a_move_and_harms_neither_log(node: MovingNode, monkeypatch: pytest.MonkeyPatch) -> None:
    log = node.log(batches=3)
    node.manager.move(TP, node.b)

    def refuse(self: FutureLog, records: memoryview) -> int:
        self.log.core.refuse_append(OSError(errno.ENOSPC, "full"))

    with monkeypatch.context() as full:
        full.setattr(FutureLog, "append_as_follower", refuse)
        node.run()
    assert (log.state, node.manager.moves.running, node.manager.failures.offline) == (LogState.ONLINE, 1, {})
    node.scheduler.advance(1000)
    assert log.log_dir == node.b


@pytest.mark.parametrize("failing", ["a", "b"])
def test_a_directory_that_fails_ends_the_move(node: MovingNode, failing: str) -> None:
    log = node.log(batches=30)
    node.manager.move(TP, node.b)
    node.manager.moves.step()
    path = node.a if failing == "a" else node.b
    node.manager.failures.report(path, "pulled out", OSError(errno.EIO, "io"))
    node.run()
    assert node.manager.moves.running == 0
    assert log.state is (LogState.OFFLINE if failing == "a" else LogState.ONLINE)
    assert node.assigned == []
    if failing == "b":
        assert append(log, sized_batch(200)) == 30
        with pytest.raises(BrokerError) as refused:
            node.manager.move(TP, node.c)
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_damaged_batch_ends_the_move_and_the_log_stays(node: MovingNode, caplog: pytest.LogCaptureFixture) -> None:
    log = node.log(batches=3)
    with (log.directory / f"{0:020d}.log").open("r+b") as file:
        file.seek(390)
        file.write(b"\xff\xff\xff")
    node.manager.move(TP, node.b)
    node.run()
    assert (log.log_dir, log.state, node.manager.moves.running) == (node.a, LogState.ONLINE, 0)
    assert "damaged after offset 1" in caplog.text
    assert (node.manager.moves.futures(), kinds(node.b)) == ([], ["orders-0-delete"])
    assert not node.manager.move(TP, node.a)
    assert kinds(node.b) == ["orders-0-delete"]


def test_copying_keeps_to_the_rate_limit(tmp_path: Path) -> None:
    node = MovingNode(tmp_path, replica_alter_log_dirs_io_max_bytes_per_second=1000)
    log = node.log(batches=50)  # 10,000 bytes
    node.manager.move(TP, node.b)
    node.run()
    copied = []
    while log.log_dir == node.a:
        node.scheduler.advance(1000)
        copied.append(node.manager.moves.bytes_copied)
    assert 7 <= len(copied) <= 12
    assert copied[4] <= 6000


def test_the_flusher_and_the_checkpoints_include_copies(node: MovingNode) -> None:
    log = node.log(batches=30)
    node.manager.move(TP, node.b)
    future = node.manager.moves.futures()[0]
    node.manager.moves.step()
    node.manager.moves.step()
    for each in (log, future.log):
        each.update_config(replace(each.config, flush_ms=0))
    node.manager.maintenance.flush_dirty_logs()
    node.manager.maintenance.checkpoint_recovery_points()
    # One less than the recovery point: see PartitionLog.recovery_begin.
    assert (node.a / "recovery-point-offset-checkpoint").read_text() == "0\n1\norders 0 29\n"
    copied = future.log.log_end_offset - 1
    assert (node.b / "recovery-point-offset-checkpoint").read_text() == f"0\n1\norders 0 {copied}\n"


class _Cleaner:
    """What the moves ask of the cleaner, noted."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def abort(self, topic_partition: TopicPartition) -> None:
        self.calls.append("abort")

    def abort_and_pause(self, topic_partition: TopicPartition) -> None:
        self.calls.append("pause")

    def resume(self, topic_partitions: Iterable[TopicPartition]) -> None:
        self.calls.append("resume")

    def maybe_truncate_checkpoint(self, log_dir: Path, topic_partition: TopicPartition, offset: int) -> None:
        self.calls.append("truncate")

    def alter_checkpoint_dir(self, topic_partition: TopicPartition, source: Path, destination: Path) -> None:
        self.calls.append((source.name, destination.name))

    def remove_from_checkpoint(self, log_dir: Path, topic_partition: TopicPartition) -> None:
        self.calls.append(f"remove {log_dir.name}")


@pytest.mark.parametrize(
    ("end", "calls"),
    [
        (lambda node: node.run(), ["pause", ("a", "b"), "resume"]),
        (lambda node: node.manager.move(TP, node.a), ["pause", "resume"]),
        (lambda node: node.manager.delete([TP]), ["pause", "resume", "pause", "remove a", "resume"]),
    ],
)
def test_the_cleaner_ignores_a_moving_partition_and_its_checkpoint_is_moved(
    node: MovingNode,
    monkeypatch: pytest.MonkeyPatch,
    end: Callable[[MovingNode], object],
    calls: list[object],
) -> None:
    node.log(batches=3)
    cleaner = _Cleaner()
    monkeypatch.setattr(node.manager, "cleaner", cleaner)
    monkeypatch.setattr(node.manager.moves, "_cleaner", cleaner)
    node.manager.move(TP, node.b)
    end(node)
    assert cleaner.calls == calls


def test_a_rename_that_fails_in_the_new_directory_leaves_the_log_where_it_was(
    node: MovingNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = node.log(batches=3)
    node.manager.move(TP, node.b)
    real = os.rename

    def rename(source: Path, target: Path) -> None:
        if Path(target) == node.b / "orders-0":
            raise OSError(errno.EIO, "io", str(target))
        real(source, target)

    monkeypatch.setattr(os, "rename", rename)
    node.run()
    assert (log.directory, log.state) == (node.a / "orders-0", LogState.ONLINE)
    assert list(node.manager.failures.offline) == [node.b]
    assert append(log, sized_batch(200)) == 3


def test_an_idle_broker_has_no_task_for_moves(node: MovingNode) -> None:
    node.log(batches=3)
    node.manager.move(TP, node.b)
    node.run()
    assert MOVE_TASK not in node.scheduler.pending()
