"""CleanerManager: choice of the next log, consequences of each end of a round, pauses and threads.

The cleaner itself is a substitute controlled by the test; logs and threads are real.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.broker.storage.cleaning.cleaner_config import CleanerConfig
from barnabas.broker.storage.cleaning.cleaner_manager import CleanerManager
from barnabas.broker.storage.cleaning.cleaning_pass import LogCleaner
from barnabas.broker.storage.cleaning.errors import CleaningOutOfRoom, UncleanableLogError
from barnabas.broker.storage.cleaning.rewriting.cleaner import CleanResult, LogToClean
from barnabas.broker.storage.cleaning.rewriting.cleaner_stats import CleanerStats
from barnabas.broker.storage.cleaning.throttler import Throttler
from barnabas.broker.storage.files.checkpoint_file import CLEANER_CHECKPOINT
from barnabas.broker.storage.log.loading.loader import LoadRequest
from barnabas.broker.storage.log.opening import open_log
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.config.log_config import LogConfig
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.storage.bench import START_MS, LogBench, append, broker_config, keyed_batch, log_config

_WAIT_S = 20
CheckDone = Callable[[TopicPartition], None]
Round = Callable[[LogToClean, CheckDone], CleanResult]


def _done(cleanable: LogToClean, check_done: CheckDone) -> CleanResult:
    return CleanResult(cleanable.first_uncleanable_offset, CleanerStats(messages_read=10, messages_written=4))


class _Broker:
    """Logs `t-0`, `t-1`, ... with ten batches per segment, and their manager, which runs one pass at a time."""

    def __init__(self, log_dir: Path, **settings: object) -> None:
        self._threads_of_others = set(threading.enumerate())
        self.bench = LogBench(log_dir)
        self.log_dir = log_dir
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.rounds: list[LogToClean] = []
        self.round: Round = _done
        self.ended = threading.Semaphore(0)
        """Released at each end of a round."""
        self.settings = {"log_dirs": log_dir, "log_cleaner_backoff_ms": 3_600_000, **settings}
        self.manager = CleanerManager(
            broker_config(**self.settings),
            self.bench.services,
            logs=lambda: list(self.logs.values()),
            get=lambda each: self.logs.get(each),
            create_cleaner=self._create_cleaner,
        )

    def cleaner_threads(self) -> list[str]:
        mine = set(threading.enumerate()) - self._threads_of_others
        return sorted(each.name for each in mine if each.name.startswith("log-cleaner"))

    def _create_cleaner(self, config: CleanerConfig, throttler: Throttler, check_done: CheckDone) -> LogCleaner:
        broker = self

        class _Cleaner:
            def clean(self, cleanable: LogToClean) -> CleanResult:
                broker.rounds.append(cleanable)
                try:
                    return broker.round(cleanable, check_done)
                finally:
                    broker.ended.release()

        return _Cleaner()

    def add(self, batches: int, **changes: object) -> PartitionLog:
        topic_partition = TopicPartition("t", len(self.logs))
        directory = self.log_dir / str(topic_partition)
        directory.mkdir()
        request = LoadRequest(directory, topic_partition, _config(**changes), True, 0, 0)
        log = self.logs[topic_partition] = open_log(request, self.bench.services)
        for number in range(batches):
            append(log, keyed_batch(100, START_MS + number))
        return log

    def start(self) -> None:
        self.manager.start([self.log_dir])

    def run_pass(self) -> bool:
        """Run a pass on the test's thread."""
        self.manager.checkpoints.open([self.log_dir])
        return self.manager.run_pass()

    def cleaned(self) -> list[str]:
        return [str(each.log.topic_partition) for each in self.rounds]

    def checkpoint(self) -> str:
        return (self.log_dir / CLEANER_CHECKPOINT).read_text()


def _config(**changes: object) -> LogConfig:
    return log_config(**{"segment_bytes": 1024, "compact": True, "delete": False, **changes})


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[_Broker]:
    made = _Broker(tmp_path)
    yield made
    made.manager.shutdown()


def test_the_filthiest_log_comes_first_and_then_the_next(broker: _Broker) -> None:
    broker.add(35)
    broker.add(95)
    broker.manager.checkpoints.open([broker.log_dir])
    broker.manager.checkpoints.set(broker.log_dir, TopicPartition("t", 0), 10)  # ratio 2/3
    broker.manager.checkpoints.set(broker.log_dir, TopicPartition("t", 1), 20)  # ratio 7/9
    assert broker.run_pass()
    assert broker.run_pass()
    assert not broker.run_pass()
    assert broker.cleaned() == ["t-1", "t-0"]
    assert broker.checkpoint() == "0\n2\nt 0 30\nt 1 90\n"
    assert broker.manager.statistics.rounds == 2
    assert (broker.manager.statistics.records_read, broker.manager.statistics.records_kept) == (20, 8)


def test_a_log_is_cleaned_above_the_minimum_ratio_only(broker: _Broker) -> None:
    log = broker.add(25, min_cleanable_dirty_ratio=0.5)
    broker.manager.checkpoints.open([broker.log_dir])
    broker.manager.checkpoints.set(broker.log_dir, log.topic_partition, 10)
    assert not broker.run_pass()
    log.update_config(_config(min_cleanable_dirty_ratio=0.49))
    assert broker.run_pass()


def test_an_overdue_log_is_cleaned_below_the_minimum_ratio(broker: _Broker) -> None:
    log = broker.add(25, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1000)
    assert log.config.min_cleanable_dirty_ratio == 1.0
    broker.bench.clock.now_ms = START_MS + 1000
    assert not broker.run_pass()
    broker.bench.clock.now_ms = START_MS + 1002
    assert broker.run_pass()


def test_logs_that_are_not_compacted_or_empty_are_not_touched(broker: _Broker) -> None:
    broker.add(25, compact=False, delete=True)
    broker.add(0)
    assert not broker.run_pass()
    assert broker.manager.statistics.measured[TopicPartition("t", 1)].dirty_ratio == 0.0


def test_a_checkpoint_outside_of_the_log_is_reset_on_disk(broker: _Broker) -> None:
    broker.add(5)
    (broker.log_dir / CLEANER_CHECKPOINT).write_text("0\n1\nt 0 6\n")
    assert not broker.run_pass()
    assert broker.checkpoint() == "0\n1\nt 0 0\n"


def test_an_uncleanable_log_is_marked_and_the_others_are_cleaned(
    broker: _Broker, caplog: pytest.LogCaptureFixture
) -> None:
    bad = broker.add(45, delete=True, retention_ms=1)
    broker.add(25)

    def corrupt(cleanable: LogToClean, check_done: CheckDone) -> CleanResult:
        if cleanable.log is bad:
            raise UncleanableLogError(bad.directory, "corrupt batch at offset=7")
        return _done(cleanable, check_done)

    broker.round = corrupt
    broker.bench.clock.now_ms = START_MS + 1_000_000
    for _ in range(4):
        broker.run_pass()
    assert sorted(broker.cleaned()) == ["t-0", "t-1"]
    described = broker.manager.describe(bad)
    assert described.state.startswith("uncleanable: cannot be cleaned: corrupt batch at offset=7")
    assert [record.levelname for record in caplog.records if "t-0" in record.getMessage()] == ["ERROR"]
    assert bad.log_start_offset == 0, "its retention waits as well"
    assert broker.checkpoint() == "0\n1\nt 1 20\n"


def test_retention_of_a_compacted_and_deleted_topic_follows_each_pass(broker: _Broker) -> None:
    log = broker.add(45, delete=True, retention_ms=1000)
    only_compacted = broker.add(45)
    only_compacted.delete_records(25)
    broker.bench.clock.now_ms = START_MS + 1_000_000
    broker.run_pass()
    assert (log.log_start_offset, log.segment_count) == (45, 1)
    assert [segment.base_offset for segment in only_compacted.segments] == [20, 30, 40]


def test_a_marked_partition_is_cleaned_after_it_was_deleted_and_recreated(broker: _Broker) -> None:
    log = broker.add(25)
    broker.round = lambda *_: (_ for _ in ()).throw(ZeroDivisionError("a bug"))
    broker.run_pass()
    assert broker.manager.describe(log).state == "uncleanable: cannot be cleaned: a bug"
    broker.manager.remove_from_checkpoint(broker.log_dir, log.topic_partition)
    broker.round = _done
    assert broker.run_pass()
    assert broker.manager.describe(log).state == "idle"


def test_a_mark_moves_with_its_log_to_another_directory(broker: _Broker, tmp_path: Path) -> None:
    log = broker.add(25)
    broker.manager.uncleanable.mark(broker.log_dir, log.topic_partition, "broken")
    broker.manager.alter_checkpoint_dir(log.topic_partition, broker.log_dir, tmp_path / "other")
    assert list(broker.manager.uncleanable.all()) == [(tmp_path / "other", log.topic_partition)]


@pytest.mark.parametrize("error", [CleaningOutOfRoom("/data", "no room"), OSError(errno.ENOSPC, "no room")])
def test_a_partition_out_of_room_waits_for_the_back_off_while_others_are_cleaned(
    broker: _Broker, error: Exception
) -> None:
    full = broker.add(45)
    broker.add(25)

    def no_room(cleanable: LogToClean, check_done: CheckDone) -> CleanResult:
        if cleanable.log is full:
            raise error
        return _done(cleanable, check_done)

    broker.round = no_room
    for _ in range(4):
        broker.run_pass()
    assert sorted(broker.cleaned()) == ["t-0", "t-1"]
    assert (broker.bench.failed_directories, broker.manager.statistics.out_of_room) == ([], 1)
    assert [broker.manager.facts(each).is_postponed for each in broker.logs.values()] == [True, False]
    broker.round = _done
    broker.bench.clock.now_ms += 3_600_000
    assert not broker.manager.facts(full).is_postponed
    assert broker.run_pass()
    assert broker.cleaned()[-1] == "t-0"
    assert broker.checkpoint() == "0\n2\nt 0 40\nt 1 20\n"


def test_a_disk_error_takes_the_directory_offline(broker: _Broker) -> None:
    log = broker.add(25)
    broker.round = lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error"))
    broker.run_pass()
    assert broker.bench.failed_directories == [broker.log_dir]
    assert broker.manager.uncleanable.all() == {}
    assert log.topic_partition in broker.logs


def test_a_round_without_progress_is_not_repeated_immediately(broker: _Broker) -> None:
    broker.add(25)
    broker.round = lambda cleanable, _: CleanResult(cleanable.first_dirty_offset, CleanerStats())
    assert broker.run_pass()
    assert not broker.run_pass()


class _Held:
    """A round that runs until it is told to end or is aborted."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, cleanable: LogToClean, check_done: CheckDone) -> CleanResult:
        self.entered.set()
        while not self.go_on.wait(0.01):
            check_done(cleanable.log.topic_partition)
        return _done(cleanable, check_done)


def test_a_pause_ends_a_running_round_and_prevents_others_until_resume(broker: _Broker) -> None:
    log = broker.add(25)
    broker.round = held = _Held()
    broker.start()
    assert held.entered.wait(_WAIT_S)
    broker.manager.abort_and_pause(log.topic_partition)
    assert broker.ended.acquire(timeout=_WAIT_S)
    assert not (broker.log_dir / CLEANER_CHECKPOINT).exists()
    broker.round = _done
    broker.manager.wake()
    assert broker.manager.describe(log).state == "paused"
    broker.manager.resume([log.topic_partition])
    broker.manager.wake()
    assert broker.ended.acquire(timeout=_WAIT_S)
    assert len(broker.rounds) == 2


def test_a_shutdown_ends_a_running_round_and_all_threads(broker: _Broker) -> None:
    broker.add(25)
    broker.round = held = _Held()
    broker.start()
    assert held.entered.wait(_WAIT_S)
    assert broker.cleaner_threads() == ["log-cleaner-thread-0"]
    broker.manager.shutdown()
    assert broker.cleaner_threads() == []
    assert broker.manager.statistics.aborted == 1
    assert not (broker.log_dir / CLEANER_CHECKPOINT).exists()


def test_threads_are_added_and_removed_at_runtime_and_clean_in_parallel(broker: _Broker) -> None:
    broker.add(25)
    broker.add(25)
    both = threading.Barrier(2)

    def together(cleanable: LogToClean, check_done: CheckDone) -> CleanResult:
        both.wait(_WAIT_S)
        return _done(cleanable, check_done)

    broker.round = together
    broker.start()
    broker.manager.reconfigure(broker_config(**broker.settings, log_cleaner_threads=2))
    assert broker.cleaner_threads() == ["log-cleaner-thread-0", "log-cleaner-thread-1"]
    for _ in range(2):
        assert broker.ended.acquire(timeout=_WAIT_S)
    assert sorted(broker.cleaned()) == ["t-0", "t-1"]
    broker.manager.reconfigure(broker_config(**broker.settings, log_cleaner_threads=1))
    assert broker.cleaner_threads() == ["log-cleaner-thread-0"]


def test_a_change_of_the_configuration_wakes_an_idle_thread(broker: _Broker) -> None:
    log = broker.add(25, min_cleanable_dirty_ratio=0.5)
    broker.manager.checkpoints.open([broker.log_dir])
    broker.manager.checkpoints.set(broker.log_dir, log.topic_partition, 10)
    broker.start()
    log.update_config(_config(min_cleanable_dirty_ratio=0.1))
    broker.manager.wake()
    assert broker.ended.acquire(timeout=_WAIT_S)


def test_a_failing_pass_is_logged_and_the_thread_continues(broker: _Broker, caplog: pytest.LogCaptureFixture) -> None:
    failed = threading.Event()
    logs = broker.logs

    class _Unreadable(dict[TopicPartition, PartitionLog]):
        def values(self) -> Iterator[PartitionLog]:  # type: ignore[override]
            failed.set()
            raise ZeroDivisionError("a bug")

    caplog.set_level(logging.ERROR)
    broker.logs = _Unreadable()
    broker.start()
    assert failed.wait(_WAIT_S)
    broker.logs = logs
    broker.add(25)
    while broker.manager.threads.failed_passes == 0:
        threading.Event().wait(0.01)
    broker.manager.wake()
    assert broker.ended.acquire(timeout=_WAIT_S)
    assert broker.manager.threads.dead == 0


def test_each_thread_gets_its_share_of_the_buffers() -> None:
    config = CleanerConfig.of(broker_config(log_cleaner_threads=4))
    assert (config.offset_map_bytes, config.io_buffer_bytes) == (134217728 // 4, 524288 // 4 // 2)
    huge = CleanerConfig.of(broker_config(log_cleaner_dedupe_buffer_size=2**40))
    assert huge.offset_map_bytes == 2**31 - 1
