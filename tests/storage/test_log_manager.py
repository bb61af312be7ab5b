"""LogManager: directories, phases of a start, tasks, deletion, failures, and the order of a stop."""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.broker.storage.directories import loading as directory_loading
from barnabas.broker.storage.directories.deletion_queue import DELETE_LOGS_TASK
from barnabas.broker.storage.files.errors import StartupStorageError
from barnabas.broker.storage.log.flusher import LogFlusher
from barnabas.broker.storage.log.loading.loader import LoadProgress, LoadRequest
from barnabas.broker.storage.log.opening import open_log
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.state import LoadState, LogState
from barnabas.broker.storage.log_manager import DIRECTORY_FAILURE_TASK, LogManager
from barnabas.broker.storage.maintenance import (
    HIGH_WATERMARK_TASK,
    LOG_FLUSHER_TASK,
    LOG_RETENTION_TASK,
    LOG_START_OFFSET_TASK,
    PRODUCER_EXPIRATION_TASK,
    RECOVERY_POINT_TASK,
)
from barnabas.broker.storage.services.scheduler import BackgroundScheduler
from barnabas.broker.storage.services.services import StorageServices
from barnabas.config.log_config import LogConfig
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.uuids import METADATA_TOPIC_UUID
from tests.support.storage.bench import (
    START_MS,
    TOPIC_ID,
    ManualClock,
    StepScheduler,
    append,
    broker_config,
    read_batches,
    sized_batch,
)

_MINUTE = 60_000
_WAIT_S = 30
_METADATA = TopicPartition("__cluster_metadata", 0)


class _Node:
    """A manager on directories below one path, with stepped time."""

    def __init__(self, root: Path, directories: int = 1, **settings: object) -> None:
        self.paths = [root / f"data{number}" for number in range(directories)]
        self.settings = {
            "log_dirs": ",".join(map(str, self.paths)),
            "log_segment_bytes": 1024,
            "log_message_timestamp_after_max_ms": 2**62,
            **settings,
        }
        self.clock = ManualClock()
        self.failed: list[tuple[Path, tuple[TopicPartition, ...]]] = []
        self.configs: dict[str, LogConfig] = {}

    def manager(self) -> LogManager:
        self.scheduler = StepScheduler(self.clock)
        return LogManager(
            broker_config(**self.settings),
            clock=self.clock,
            scheduler=self.scheduler,
            on_directory_failed=lambda path, partitions: self.failed.append((path, partitions)),
        )

    def start(self) -> LogManager:
        manager = self.manager()
        manager.open_directories()
        manager.load_logs(self.config_of)
        manager.start_tasks()
        return manager

    def config_of(self, topic: str) -> LogConfig:
        return self.configs.get(topic) or broker_config(**self.settings).log_config

    def crash(self, manager: LogManager) -> None:
        """Simulate a crash of the process."""
        for log in manager.logs():
            log.go_offline()
        for directory in manager.directories:
            directory._lock.release()


def _tp(number: int = 0, topic: str = "orders") -> TopicPartition:
    return TopicPartition(topic, number)


def _make(manager: LogManager, number: int = 0, batches: int = 0, topic: str = "orders") -> PartitionLog:
    log = manager.get_or_create(_tp(number, topic), TOPIC_ID)
    for index in range(batches):
        append(log, sized_batch(100, START_MS + index))
    return log


def _offsets(log: PartitionLog | None) -> list[int]:
    assert log is not None
    return [found.base_offset for found in read_batches(log)]


def _open_with(monkeypatch: pytest.MonkeyPatch, before: Callable[[LoadProgress], object]) -> None:
    """Call `before` on the loading thread before a log is opened."""

    def open_later(
        request: LoadRequest, services: StorageServices, progress: LoadProgress, *, topic_id: bytes | None
    ) -> PartitionLog:
        before(progress)
        return open_log(request, services, progress, topic_id=topic_id)

    monkeypatch.setattr(directory_loading, "open_log", open_later)


# -- start


def test_a_missing_directory_is_created_and_an_empty_one_is_served(tmp_path: Path) -> None:
    node = _Node(tmp_path / "deep" / "er")
    manager = node.start()
    assert manager.live_directories == (node.paths[0],)
    assert manager.logs() == []
    assert sorted(os.listdir(node.paths[0])) == [".lock"]
    assert manager.shutdown()


def test_partition_metadata_is_on_disk_before_the_first_record(tmp_path: Path) -> None:
    node = _Node(tmp_path)
    log = _make(node.start())
    assert (log.directory / "partition.metadata").read_bytes().startswith(b"version: 0\ntopic_id: ")
    assert sorted(os.listdir(log.directory)) == [
        f"{0:020d}.index",
        f"{0:020d}.log",
        f"{0:020d}.timeindex",
        "partition.metadata",
    ]


def test_logs_and_their_topic_ids_come_back_after_a_clean_stop(tmp_path: Path) -> None:
    node = _Node(tmp_path)
    manager = node.start()
    _make(manager, 0, 25)
    _make(manager, 1)
    assert manager.shutdown()
    assert sorted(os.listdir(node.paths[0])) == [
        ".kafka_cleanshutdown",
        "log-start-offset-checkpoint",
        "orders-0",
        "orders-1",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
    ]
    assert (node.paths[0] / "recovery-point-offset-checkpoint").read_text() == "0\n2\norders 0 25\norders 1 0\n"
    assert (node.paths[0] / "replication-offset-checkpoint").read_text() == "0\n2\norders 0 25\norders 1 0\n"
    assert (node.paths[0] / "log-start-offset-checkpoint").read_text() == "0\n0\n"
    manager = node.start()
    assert not (node.paths[0] / ".kafka_cleanshutdown").exists()
    log = manager.get(_tp(0))
    assert log is not None
    assert (log.topic_id, log.recovery_point) == (TOPIC_ID, 25)
    assert _offsets(log) == list(range(25))
    assert manager.directories[0].had_clean_shutdown
    assert (manager.directories[0].logs_total, manager.directories[0].logs_loaded) == (2, 2)
    assert {progress.state for progress in manager.load_progress.values()} == {LoadState.ONLINE}


def test_after_a_crash_logs_are_recovered(tmp_path: Path) -> None:
    node = _Node(tmp_path)
    manager = node.start()
    log = _make(manager, 0, 25)
    node.crash(manager)
    with (log.directory / f"{20:020d}.log").open("ab") as file:
        file.write(b"\0" * 77)
    manager = node.start()
    assert not manager.directories[0].had_clean_shutdown
    assert _offsets(manager.get(_tp())) == list(range(25))


def test_the_clean_shutdown_marker_is_removed_before_a_log_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = _Node(tmp_path)
    manager = node.start()
    _make(manager, 0, 3)
    manager.shutdown()
    seen: list[bool] = []

    def config_of(topic: str) -> LogConfig:
        seen.append((node.paths[0] / ".kafka_cleanshutdown").exists())
        return node.config_of(topic)

    manager = node.manager()
    manager.open_directories()
    assert (node.paths[0] / ".kafka_cleanshutdown").exists()
    manager.load_logs(config_of)
    assert seen == [False]


def test_a_second_broker_on_the_directory_is_refused_and_the_first_is_unaffected(tmp_path: Path) -> None:
    node = _Node(tmp_path, 2)
    first = node.start()
    with pytest.raises(StartupStorageError, match="another broker is using this data directory"):
        node.manager().open_directories()
    _make(first, 0, 3)
    assert first.shutdown()
    assert node.start().shutdown()


def test_an_unusable_directory_is_offline_and_the_others_are_served(tmp_path: Path) -> None:
    node = _Node(tmp_path, 3)
    node.paths[1].write_text("a plain file")
    manager = node.start()
    assert manager.live_directories == (node.paths[0], node.paths[2])
    assert list(manager.failures.offline) == [node.paths[1]]
    _make(manager, 0, 3)


def test_without_any_usable_directory_the_start_fails_with_one_sentence(tmp_path: Path) -> None:
    node = _Node(tmp_path)
    node.paths[0].write_text("a plain file")
    with pytest.raises(StartupStorageError, match=r"cannot use log directory \S*data0: Not a directory \("):
        node.manager().open_directories()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_full_or_read_only_disk_is_reported_at_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    node = _Node(tmp_path)
    node.paths[0].mkdir()
    real = os.write

    def write(fd: int, data: bytes) -> int:
        if len(data) == 4096:
            raise OSError(number, os.strerror(number))
        return real(fd, data)

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(StartupStorageError, match=os.strerror(number)):
        node.manager().open_directories()
    assert os.listdir(node.paths[0]) == []


def test_a_directory_without_a_partition_name_is_a_startup_error(tmp_path: Path) -> None:
    node = _Node(tmp_path)
    (node.paths[0] / "holiday").mkdir(parents=True)
    with pytest.raises(StartupStorageError, match=r"not named <topic>-<partition>.*holiday"):
        node.start()


def test_files_and_known_foreign_directories_are_ignored(tmp_path: Path) -> None:
    node = _Node(tmp_path)
    for name in ("lost+found", "remote-log-index-cache", "__cluster_metadata-0"):
        (node.paths[0] / name).mkdir(parents=True)
    (node.paths[0] / "meta.properties").write_text("version=1\n")
    assert node.start().logs() == []


def test_a_partition_in_two_directories_is_a_startup_error(tmp_path: Path) -> None:
    node = _Node(tmp_path, 2)
    for path in node.paths:
        (path / "orders-0").mkdir(parents=True)
    with pytest.raises(StartupStorageError, match="orders-0 is in two log directories"):
        node.start()


@pytest.mark.parametrize("foreign", ["holiday", "orders-0"])
def test_a_refused_start_leaves_the_clean_markers_so_that_the_next_one_recovers_nothing(
    tmp_path: Path, foreign: str
) -> None:
    node = _Node(tmp_path, 2)
    manager = node.start()
    _make(manager, 0, 3)
    assert manager.shutdown()
    (node.paths[1] / foreign).mkdir()
    refused = node.manager()
    refused.open_directories()
    with pytest.raises(StartupStorageError, match=foreign):
        refused.load_logs(node.config_of)
    refused.shutdown()
    (node.paths[1] / foreign).rmdir()
    manager = node.start()
    assert [directory.had_clean_shutdown for directory in manager.directories] == [True, True]
    assert _offsets(manager.get(_tp())) == [0, 1, 2]


def test_a_bad_checkpoint_costs_a_recovery_not_the_directory(tmp_path: Path) -> None:
    node = _Node(tmp_path)
    manager = node.start()
    _make(manager, 0, 25)
    manager.shutdown()
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
        (node.paths[0] / name).write_text("0\n7\n")
    manager = node.start()
    assert _offsets(manager.get(_tp())) == list(range(25))
    assert (node.paths[0] / "recovery-point-offset-checkpoint.corrupt").read_text() == "0\n7\n"


def test_logs_are_loaded_by_the_configured_threads_per_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = _Node(tmp_path, directories=2, num_recovery_threads_per_data_dir=2)
    manager = node.start()
    for number in range(4):
        _make(manager, number)
    manager.shutdown()
    together = threading.Barrier(4)  # two threads in each of two directories, or it breaks
    _open_with(monkeypatch, lambda _: together.wait(_WAIT_S))
    assert len(node.start().logs()) == 4


def test_a_long_load_logs_its_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    node = _Node(tmp_path, num_recovery_threads_per_data_dir=1)
    manager = node.start()
    _make(manager, 0, 25)
    manager.shutdown()
    said = threading.Event()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "loading logs" in record.getMessage():
                said.set()

    def wait_until_said(progress: LoadProgress) -> None:
        progress.segments_total, progress.segments_left = 64, 12
        assert said.wait(_WAIT_S)

    monkeypatch.setattr(directory_loading, "PROGRESS_INTERVAL_S", 0.01)
    _open_with(monkeypatch, wait_until_said)
    logger = logging.getLogger(directory_loading.__name__)
    listener = Listener()
    logger.addHandler(listener)
    try:
        with caplog.at_level(logging.INFO):
            assert len(node.start().logs()) == 1
    finally:
        logger.removeHandler(listener)
    expected = f"loading logs: loaded=0 of=1 log_dir={node.paths[0]}, in progress: orders-0 (12 of 64 segments left)"
    assert expected in caplog.text


def test_strays_are_renamed_kept_and_not_served(tmp_path: Path) -> None:
    node = _Node(tmp_path)
    manager = node.start()
    _make(manager, 0, 3)
    _make(manager, 0, 3, "ghosts")
    manager.shutdown()
    manager = node.manager()
    manager.open_directories()
    assert manager.load_logs(node.config_of, lambda found: found.topic_partition.topic == "ghosts") == 1
    [stray] = [path for path in node.paths[0].iterdir() if path.name.endswith("-stray")]
    assert stray.name.startswith("ghosts-0.")
    assert (stray / f"{0:020d}.log").stat().st_size == 300
    assert manager.get(_tp(0, "ghosts")) is None
    manager.shutdown()
    assert len(node.start().logs()) == 1


def test_nothing_is_written_into_a_directory_that_is_no_log_of_this_broker(tmp_path: Path) -> None:
    node = _Node(tmp_path)
    manager = node.start()
    _make(manager, 0, 3)
    node.crash(manager)  # so that a log would be recovered
    log_dir, elsewhere = node.paths[0], tmp_path / "another disk"
    torn = (log_dir / "orders-0" / f"{0:020d}.log").read_bytes() + b"behind the last batch"
    for path in (log_dir / "backup-2024", elsewhere):
        path.mkdir()
        (path / f"{0:020d}.log").write_bytes(torn)
        (path / "notes.txt").write_text("mine")
    (log_dir / "orders-7").symlink_to(elsewhere)
    manager = node.manager()
    manager.open_directories()
    assert manager.load_logs(node.config_of, lambda found: found.topic_partition != _tp()) == 1
    strays = sorted(path for path in log_dir.iterdir() if path.name.endswith("-stray"))
    assert [path.name.split(".")[0] for path in strays] == ["backup-2024", "orders-7"]
    for path in (*strays, elsewhere):
        assert sorted(os.listdir(path)) == [f"{0:020d}.log", "notes.txt"]
        assert (path / f"{0:020d}.log").read_bytes() == torn


def test_a_directory_whose_log_cannot_be_read_goes_offline_alone(tmp_path: Path) -> None:
    node = _Node(tmp_path, 2)
    manager = node.start()
    _make(manager, 0, 3)
    _make(manager, 1, 3)
    manager.shutdown()
    (node.paths[1] / "orders-1" / "partition.metadata").write_text("nonsense")
    manager = node.start()
    node.scheduler.run_due()
    assert [path for path, _ in node.failed] == [node.paths[1]]
    assert _offsets(manager.get(_tp(0))) == [0, 1, 2]
    assert manager.get(_tp(1)) is None
    with pytest.raises(BrokerError) as caught:
        manager.get_or_create(_tp(1), TOPIC_ID, is_new=False)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert manager.get_or_create(_tp(2), TOPIC_ID).log_dir == node.paths[0]


def test_the_metadata_log_is_opened_separately_recovered_and_closed_with_the_others(tmp_path: Path) -> None:
    node = _Node(tmp_path)
    manager = node.manager()
    manager.open_directories()
    log = manager.open_metadata_log(_METADATA, METADATA_TOPIC_UUID, node.config_of("x"))
    append(log, sized_batch(100))
    manager.load_logs(node.config_of)
    assert manager.logs() == []
    assert manager.shutdown()
    assert log.state is LogState.CLOSED
    assert (node.paths[0] / "__cluster_metadata-0" / "partition.metadata").exists()
    manager = node.manager()
    manager.open_directories()
    assert manager.open_metadata_log(_METADATA, METADATA_TOPIC_UUID, node.config_of("x")).log_end_offset == 1


def test_the_metadata_log_may_have_a_directory_of_its_own(tmp_path: Path) -> None:
    node = _Node(tmp_path, metadata_log_dir=tmp_path / "meta")
    manager = node.manager()
    assert manager.open_directories() == (node.paths[0],)
    assert manager.open_metadata_log(_METADATA, METADATA_TOPIC_UUID, node.config_of("x")).log_dir == tmp_path / "meta"
    assert (tmp_path / "meta" / ".lock").exists()
    manager.load_logs(node.config_of)
    manager.shutdown()
    assert not (tmp_path / "meta" / ".lock").exists()


def test_a_metadata_directory_that_fails_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "meta").write_text("a plain file")
    node = _Node(tmp_path, metadata_log_dir=tmp_path / "meta")
    with pytest.raises(StartupStorageError, match="the metadata log's directory"):
        node.manager().open_directories()
    assert sorted(os.listdir(tmp_path)) == ["meta"]


# -- logs


def test_new_partitions_go_to_the_directory_with_the_fewest_logs(tmp_path: Path) -> None:
    node = _Node(tmp_path, 3)
    manager = node.start()
    assert [_make(manager, number).log_dir for number in range(4)] == [*node.paths, node.paths[0]]
    manager.delete([_tp(1)])
    assert _make(manager, 9).log_dir == node.paths[1]
    assert manager.get_or_create(_tp(10), TOPIC_ID, log_dir=node.paths[2]).log_dir == node.paths[2]


def test_a_log_is_created_once_and_another_topic_id_is_refused(tmp_path: Path) -> None:
    manager = _Node(tmp_path).start()
    log = _make(manager)
    assert _make(manager) is log
    with pytest.raises(BrokerError, match="another topic id"):
        manager.get_or_create(_tp(), bytes(16))


def test_concurrent_get_or_create_returns_one_log(tmp_path: Path) -> None:
    manager = _Node(tmp_path).start()
    barrier = threading.Barrier(6)
    made: list[PartitionLog] = []

    def ask() -> None:
        barrier.wait(20)
        made.append(manager.get_or_create(_tp(), TOPIC_ID))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(made) == 6
    assert len(set(map(id, made))) == 1


def test_a_deleted_logs_directory_is_renamed_immediately_and_removed_after_the_delay(tmp_path: Path) -> None:
    node = _Node(tmp_path, log_segment_delete_delay_ms=_MINUTE, log_initial_task_delay_ms=0)
    manager = node.start()
    node.scheduler.run_due()
    log = _make(manager, 0, 3)
    part = log.read(0, 1000, upper_bound=3, at_least_one_batch=True)
    assert part is not None
    assert manager.delete([_tp(), _tp(7)]) == 1
    [doomed] = [path for path in node.paths[0].iterdir() if path.is_dir()]
    assert doomed.name.startswith("orders-0.")
    assert doomed.name.endswith("-delete")
    assert manager.get(_tp()) is None
    with pytest.raises(BrokerError):
        append(log, sized_batch(100))
    assert len(part.read()) == 300
    node.scheduler.advance(_MINUTE - 1)
    assert doomed.exists()
    node.scheduler.advance(_MINUTE)
    assert not doomed.exists()
    assert node.scheduler.counters[DELETE_LOGS_TASK].runs >= 2


def test_a_shortage_during_a_deletion_keeps_the_log_directory_online_and_the_name_from_a_later_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = _Node(tmp_path, log_segment_delete_delay_ms=_MINUTE, log_initial_task_delay_ms=0)
    manager = node.start()
    node.scheduler.run_due()
    _make(manager, 0, 3)

    def lacking(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "rename", lacking)
        assert manager.delete([_tp()]) == 1
    assert manager.failures.offline == {}
    assert manager.get(_tp()) is None
    later = bytes(15) + b"2"
    with pytest.raises(BrokerError, match="orders-0 is still that of another topic"):
        manager.get_or_create(_tp(), later)
    node.scheduler.advance(_MINUTE)
    log = manager.get_or_create(_tp(), later)
    assert (log.topic_id, log.log_end_offset) == (later, 0)
    assert manager.failures.offline == {}


def test_a_topic_recreated_immediately_begins_at_offset_0(tmp_path: Path) -> None:
    node = _Node(tmp_path)
    manager = node.start()
    _make(manager, 0, 25)
    manager.maintenance.checkpoint_recovery_points()
    manager.delete([_tp()])
    assert (node.paths[0] / "recovery-point-offset-checkpoint").read_text() == "0\n0\n"
    log = _make(manager, 0, 2)
    assert (log.log_start_offset, log.log_end_offset) == (0, 2)


def test_delete_directories_found_at_start_are_removed_after_the_delay(tmp_path: Path) -> None:
    node = _Node(tmp_path, log_segment_delete_delay_ms=_MINUTE, log_initial_task_delay_ms=0)
    doomed = node.paths[0] / "orders-0.0123456789abcdef0123456789abcdef-delete"
    doomed.mkdir(parents=True)
    (doomed / "x").write_text("x")
    node.start()
    node.scheduler.run_due()
    assert doomed.exists()
    node.scheduler.advance(_MINUTE)
    assert not doomed.exists()


def test_a_changed_topic_config_applies_to_the_topics_logs_only(tmp_path: Path) -> None:
    node = _Node(tmp_path)
    manager = node.start()
    orders, others = _make(manager, 0), _make(manager, 0, topic="others")
    changed = replace(orders.config, retention_ms=5)
    manager.update_topic_config("orders", changed)
    assert orders.config is changed
    assert others.config is not changed


# -- tasks


def test_the_tasks_have_kafkas_intervals_and_first_delay(tmp_path: Path) -> None:
    node = _Node(tmp_path)
    node.start()
    assert node.scheduler.pending() == [
        HIGH_WATERMARK_TASK,
        LOG_RETENTION_TASK,
        LOG_FLUSHER_TASK,
        RECOVERY_POINT_TASK,
        LOG_START_OFFSET_TASK,
        PRODUCER_EXPIRATION_TASK,
        DELETE_LOGS_TASK,
    ]
    node.scheduler.advance(29_999)
    runs = {name: counters.runs for name, counters in node.scheduler.counters.items()}
    assert runs.pop(HIGH_WATERMARK_TASK) == 6
    assert set(runs.values()) == {0}
    node.scheduler.advance(1 + 600_000)
    assert {name: counters.runs for name, counters in node.scheduler.counters.items()} == {
        HIGH_WATERMARK_TASK: 127,
        LOG_RETENTION_TASK: 3,
        LOG_FLUSHER_TASK: 1,
        RECOVERY_POINT_TASK: 11,
        LOG_START_OFFSET_TASK: 11,
        PRODUCER_EXPIRATION_TASK: 2,
        DELETE_LOGS_TASK: 11,
    }


def test_retention_runs_for_logs_that_are_not_compacted(tmp_path: Path) -> None:
    node = _Node(tmp_path)
    node.configs["kept"] = replace(node.config_of("x"), compact=True, retention_ms=0)
    node.configs["orders"] = replace(node.config_of("x"), retention_ms=0)
    manager = node.start()
    orders = _make(manager, 0, 25)
    kept = manager.get_or_create(_tp(0, "kept"), TOPIC_ID)
    node.clock.now_ms += 1000
    assert manager.maintenance.run_retention() == 3
    assert (orders.log_start_offset, kept.log_start_offset) == (25, 0)


def test_the_flusher_syncs_logs_whose_flush_ms_has_passed(tmp_path: Path) -> None:
    node = _Node(tmp_path)
    node.configs["orders"] = replace(node.config_of("x"), flush_ms=1000)
    manager = node.start()
    orders, others = _make(manager, 0, 3), _make(manager, 0, 3, "others")
    node.clock.now_ms += 999
    manager.maintenance.flush_dirty_logs()
    assert orders.recovery_point == 0
    node.clock.now_ms += 1
    manager.maintenance.flush_dirty_logs()
    assert (orders.recovery_point, others.recovery_point) == (3, 0)


def test_deleting_a_topic_just_before_its_flush_is_not_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    node = _Node(tmp_path)
    node.configs["orders"] = replace(node.config_of("x"), flush_ms=0)
    manager = node.start()
    _make(manager, 0, 3)
    [log] = manager.logs()
    flush = log.flush

    def flush_too_late(up_to: int | None = None) -> int:
        manager.delete([log.topic_partition])
        return flush(up_to)

    monkeypatch.setattr(log, "flush", flush_too_late)
    manager.maintenance.flush_dirty_logs()
    assert manager.logs() == []
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_checkpoints_contain_recovery_points_log_starts_and_high_watermarks(tmp_path: Path) -> None:
    node = _Node(tmp_path)
    manager = node.start()
    log = _make(manager, 0, 25)
    log.flush()
    append(log, sized_batch(100))
    log.delete_records(13)
    _make(manager, 1, 3)
    manager.maintenance.checkpoint_recovery_points()
    manager.maintenance.checkpoint_log_starts()
    manager.maintenance.checkpoint_high_watermarks()
    data = node.paths[0]
    assert (data / "recovery-point-offset-checkpoint").read_text() == "0\n2\norders 0 25\norders 1 0\n"
    assert (data / "log-start-offset-checkpoint").read_text() == "0\n1\norders 0 13\n"
    assert (data / "replication-offset-checkpoint").read_text() == "0\n2\norders 0 26\norders 1 3\n"
    node.crash(manager)
    log_again = node.start().get(_tp())
    assert log_again is not None
    assert (log_again.log_start_offset, log_again.log_end_offset) == (13, 26)


# -- failures


@pytest.mark.usefixtures("python_appends")
def test_a_failing_directory_goes_offline_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = _Node(tmp_path, 2)
    manager = node.start()
    logs = [_make(manager, number, 3) for number in range(4)]
    real = os.pwrite
    bad = {logs[0].segments[0].log.fd}

    def pwrite(fd: int, data: memoryview, position: int) -> int:
        if fd in bad:
            raise OSError(errno.EIO, "Input/output error")
        return real(fd, data, position)

    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(BrokerError) as caught:
        append(logs[0], sized_batch(100))
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert append(logs[2], sized_batch(100)) == 3  # the disk works for this one, until the failure is handled
    assert DIRECTORY_FAILURE_TASK in node.scheduler.pending()
    node.scheduler.run_due()
    assert node.failed == [(node.paths[0], (_tp(0), _tp(2)))]
    assert manager.live_directories == (node.paths[1],)
    for log in (logs[0], logs[2]):
        with pytest.raises(BrokerError) as caught:
            log.read(0, 1000, upper_bound=3, at_least_one_batch=True)
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert append(logs[1], sized_batch(100)) == 3
    assert not manager.shutdown()
    assert not (node.paths[0] / ".kafka_cleanshutdown").exists()
    assert (node.paths[1] / ".kafka_cleanshutdown").exists()
    monkeypatch.undo()
    manager = node.start()
    assert [_offsets(manager.get(_tp(number))) for number in range(4)] == [
        [0, 1, 2],
        [0, 1, 2, 3],
        [0, 1, 2, 3],
        [0, 1, 2],
    ]


def test_a_full_disk_refuses_a_new_partition_and_keeps_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = _Node(tmp_path)
    manager = node.start()
    real = Path.mkdir

    def mkdir(self: Path, *arguments: object, **kwargs: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with pytest.raises(BrokerError, match="No space left"):
        _make(manager)
    monkeypatch.setattr(Path, "mkdir", real)
    _make(manager, 0, 1)
    assert manager.failures.offline == {}


@pytest.mark.parametrize("left", [0, 1, 2, 3, 4])
def test_a_log_that_a_full_disk_interrupts_leaves_no_directory_to_a_later_topic_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    """`left`: files for which the disk has room, beside the directory."""
    node = _Node(tmp_path)
    manager = node.start()
    real, room = os.open, left

    def limited(path: str, flags: int, mode: int = 0o777, **named: int) -> int:
        nonlocal room
        if flags & os.O_CREAT and "orders-0" in str(path):
            room -= 1
            if room < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, flags, mode, **named)

    monkeypatch.setattr(os, "open", limited)
    with suppress(BrokerError):  # with enough room
        manager.get_or_create(_tp(), bytes(15) + b"1")
        manager.delete([_tp()])
    assert room < 0 or left == 4
    monkeypatch.undo()
    assert not (node.paths[0] / "orders-0").exists()
    assert manager.get_or_create(_tp(), bytes(15) + b"2").topic_id == bytes(15) + b"2"
    assert manager.failures.offline == {}


# -- stop


def test_a_stop_follows_kafkas_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = _Node(tmp_path)
    manager = node.start()
    _make(manager, 0, 3)
    order: list[str] = []
    real = os.rename

    def rename(source: Path, target: Path) -> None:
        order.append(Path(target).name)
        real(source, target)

    monkeypatch.setattr(os, "rename", rename)
    real_open = os.open

    def open_(path: str, flags: int, mode: int = 0o777) -> int:
        if str(path).endswith(".snapshot"):
            order.append("snapshot")
        return real_open(path, flags, mode)

    monkeypatch.setattr(os, "open", open_)
    assert manager.shutdown(broker_epoch=12)
    assert order == [
        "replication-offset-checkpoint",
        "snapshot",
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        ".kafka_cleanshutdown",
    ]
    assert (node.paths[0] / ".kafka_cleanshutdown").read_bytes() == b'{"version":0,"brokerEpoch":12}'
    assert not (node.paths[0] / ".lock").exists()


def test_a_log_that_does_not_close_leaves_no_marker_and_is_recovered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = _Node(tmp_path)
    manager = node.start()
    _make(manager, 0, 3)
    _make(manager, 1, 3)
    real = os.truncate

    def truncate(path: str, length: int) -> None:
        if "orders-1" in str(path):
            raise OSError(errno.EIO, "Input/output error")
        real(path, length)

    monkeypatch.setattr(os, "truncate", truncate)
    assert not manager.shutdown()
    monkeypatch.undo()
    assert not (node.paths[0] / ".kafka_cleanshutdown").exists()
    manager = node.start()
    assert [_offsets(manager.get(_tp(number))) for number in (0, 1)] == [[0, 1, 2], [0, 1, 2]]


def test_a_start_refused_before_loading_keeps_the_clean_shutdown_marker(tmp_path: Path) -> None:
    node = _Node(tmp_path)
    manager = node.start()
    _make(manager, 0, 3)
    manager.shutdown()
    manager = node.manager()
    manager.open_directories()
    manager.shutdown()
    assert (node.paths[0] / ".kafka_cleanshutdown").exists()
    assert node.start().directories[0].had_clean_shutdown


def test_the_real_scheduler_and_clock_run_a_broker_start_to_stop(tmp_path: Path) -> None:
    manager = LogManager(broker_config(log_dirs=tmp_path / "data", log_initial_task_delay_ms=0))
    manager.open_directories()
    manager.load_logs(lambda _: manager.config.log_config)
    manager.start_tasks()
    log = manager.get_or_create(_tp(), TOPIC_ID)
    for _ in range(10):
        append(log, sized_batch(100))
    assert manager.shutdown()
    assert log.state is LogState.CLOSED


def test_a_disk_that_is_full_at_the_stop_leaves_no_marker_and_stays_online(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = _Node(tmp_path)
    manager = node.start()
    _make(manager, 0, 3)
    real = os.open

    def full(path: str, flags: int, mode: int = 0o777) -> int:
        if str(path).endswith(".snapshot"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", full)
    assert not manager.shutdown()
    monkeypatch.undo()
    assert manager.failures.offline == {}
    assert not (node.paths[0] / ".kafka_cleanshutdown").exists()
    assert _offsets(node.start().get(_tp())) == [0, 1, 2]


def test_the_expiration_of_producers_and_the_threads_follow_the_configuration(tmp_path: Path) -> None:
    clock = ManualClock()
    manager = LogManager(broker_config(log_dirs=tmp_path / "data"), clock=clock)
    manager.open_directories()
    manager.load_logs(lambda topic: manager.config.log_config)
    log = manager.get_or_create(_tp(), TOPIC_ID)
    append(log, sized_batch(200, clock.now_ms, producer_id=7, producer_epoch=0, base_sequence=0))
    clock.now_ms += 5000
    assert manager.maintenance.expire_producers() == 0
    manager.update_broker_config(
        broker_config(log_dirs=tmp_path / "data", producer_id_expiration_ms=1000, background_threads=2)
    )
    assert manager.maintenance.expire_producers() == 1
    assert isinstance(manager.scheduler, BackgroundScheduler)
    assert manager.scheduler._max_threads == 2
    manager.shutdown()


def test_deleting_a_topic_during_its_flush_is_not_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    node = _Node(tmp_path)
    manager = node.start()
    log = _make(manager, batches=20)  # several rolls, whose flushes are still to come
    scheduled = list(node.scheduler.pending())
    assert "flush-log" in scheduled
    real = LogFlusher.flush

    def flush(self: LogFlusher, up_to: int | None = None) -> int:
        if log.state is LogState.ONLINE:
            manager.delete([_tp()])  # between the task's look at the state and the sync
        return real(self, up_to)

    monkeypatch.setattr(LogFlusher, "flush", flush)
    node.scheduler.run_due()
    assert manager.get(_tp()) is None
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
    assert manager.failures.offline == {}
