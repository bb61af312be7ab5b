"""Metrics of a real log manager: offsets and sizes, loading, directories, tasks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.broker.metrics.registry import make_registry
from barnabas.broker.metrics.state import BrokerState
from barnabas.broker.metrics.storage_collectors import LOG_STATES
from barnabas.broker.probes import BrokerProbes
from barnabas.broker.storage.group_commit import FlushRequest, GroupCommitFlusher
from barnabas.broker.storage.log.loading.loader import LoadProgress
from barnabas.broker.storage.log.state import LoadState, LogState
from barnabas.broker.storage.log_manager import LogManager
from barnabas.broker.storage.services.scheduler import ScheduledTask, TaskCounters
from barnabas.config.loader import load
from barnabas.protocol.records import Codec, RecordBatchBuilder
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.storage.transactions import end, send

ORDERS = TopicPartition("orders", 0)
TOPIC_ID = bytes(15) + b"\x01"


class IdleScheduler:
    """A scheduler that has counters and runs nothing."""

    def __init__(self) -> None:
        self.counters: dict[str, TaskCounters] = {}

    def schedule(
        self, name: str, action: Callable[[], object], *, delay_ms: int = 0, period_ms: int | None = None
    ) -> ScheduledTask:
        return ScheduledTask(name, action, None)


@pytest.fixture
def scheduler() -> IdleScheduler:
    return IdleScheduler()


@pytest.fixture
def manager(tmp_path: Path, scheduler: IdleScheduler) -> Iterator[LogManager]:
    settings = [f"log.dirs={tmp_path / 'a'},{tmp_path / 'b'}", "log.segment.bytes=1024"]
    opened = LogManager(load(config_file=None, environ={}, overrides=settings), scheduler=scheduler)
    opened.open_directories()
    opened.load_logs(lambda _: opened.config.log_config)
    yield opened
    opened.shutdown()


def scrape(manager: LogManager | None, flusher: GroupCommitFlusher | None = None) -> dict[tuple[str, str], float]:
    """Return (name, label values in the order of the labels, joined by a comma) -> value."""
    state = BrokerState()
    state.log_manager = manager
    state.flusher = flusher
    text = generate_latest(make_registry(BrokerProbes(), state)).decode()
    return {
        (sample.name, ",".join(value for _, value in sorted(sample.labels.items(), reverse=True))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def append(manager: LogManager, topic_partition: TopicPartition, records: int, value: bytes = b"v" * 400) -> int:
    """Append batches of one record; return the number of bytes."""
    log = manager.get_or_create(topic_partition, TOPIC_ID)
    size = 0
    for _ in range(records):
        builder = RecordBatchBuilder(Codec.NONE, max_bytes=10_000)
        builder.append(1_700_000_000_000, b"k", value, ())
        size += log.append_as_leader(memoryview(bytearray(builder.build())), leader_epoch=0).size_bytes
    return size


def test_before_there_is_a_log_manager_a_scrape_has_no_log() -> None:
    assert not [name for name, _ in scrape(None) if name.startswith(("barnabas_log", "barnabas_task"))]


def test_a_logs_offsets_segments_and_size_are_those_of_the_log(manager: LogManager) -> None:
    size = append(manager, ORDERS, records=5)
    log = manager.get(ORDERS)
    assert log is not None
    log.flush(2)
    found = scrape(manager)
    assert found["barnabas_log_size_bytes", "orders,0"] == size
    assert found["barnabas_log_segments", "orders,0"] == log.segment_count > 1
    assert found["barnabas_log_start_offset", "orders,0"] == 0
    assert found["barnabas_log_end_offset", "orders,0"] == 5
    assert found["barnabas_log_high_watermark", "orders,0"] == 5
    assert found["barnabas_log_recovery_point", "orders,0"] == log.recovery_point == 2
    assert found["barnabas_log_state", "orders,0"] == LOG_STATES["online"]


def test_an_open_transaction_holds_the_last_stable_offset_back(manager: LogManager) -> None:
    append(manager, ORDERS, records=2)
    log = manager.get(ORDERS)
    assert log is not None
    assert scrape(manager)["barnabas_log_last_stable_offset_lag", "orders,0"] == 0
    send(log, 7, 0, b"open", b"open")
    append(manager, ORDERS, records=1)
    assert scrape(manager)["barnabas_log_last_stable_offset_lag", "orders,0"] == 3
    end(log, 7, is_commit=True)
    assert scrape(manager)["barnabas_log_last_stable_offset_lag", "orders,0"] == 0


def test_a_deleted_log_leaves_the_next_scrape(manager: LogManager) -> None:
    append(manager, ORDERS, records=1)
    manager.delete([ORDERS])
    assert not [labels for _, labels in scrape(manager) if labels == "orders,0"]


def test_the_metadata_log_is_among_the_logs(manager: LogManager) -> None:
    metadata = TopicPartition("__cluster_metadata", 0)
    manager.open_metadata_log(metadata, TOPIC_ID, manager.config.log_config)
    assert scrape(manager)["barnabas_log_end_offset", "__cluster_metadata,0"] == 0


def test_a_log_that_is_being_recovered_shows_how_much_is_left(manager: LogManager) -> None:
    progress = manager.load_progress[ORDERS] = LoadProgress(LoadState.RECOVERING, segments_total=7, segments_left=3)
    found = scrape(manager)
    assert found["barnabas_log_state", "orders,0"] == LOG_STATES["recovering"]
    assert found["barnabas_log_loading_segments", "orders,0"] == 3
    assert ("barnabas_log_end_offset", "orders,0") not in found

    append(manager, ORDERS, records=1)
    progress.state = LoadState.ONLINE
    found = scrape(manager)
    assert found["barnabas_log_state", "orders,0"] == LOG_STATES["online"]
    assert ("barnabas_log_loading_segments", "orders,0") not in found


def test_after_a_restart_each_directory_says_how_many_logs_it_loaded(manager: LogManager) -> None:
    for number in range(3):
        append(manager, TopicPartition("orders", number), records=1)
    manager.shutdown()
    again = LogManager(manager.config, scheduler=IdleScheduler())
    again.open_directories()
    again.load_logs(lambda _: again.config.log_config)
    try:
        found = scrape(again)
        paths = [str(path) for path in again.live_directories]
        assert sorted(found["barnabas_log_dir_found_logs", path] for path in paths) == [1, 2]
        assert sorted(found["barnabas_log_dir_loaded_logs", path] for path in paths) == [1, 2]
        assert sorted(found["barnabas_log_dir_logs", path] for path in paths) == [1, 2]
        assert all(found["barnabas_log_dir_load_duration_seconds", path] > 0 for path in paths)
        total = sum(found["barnabas_log_size_bytes", f"orders,{number}"] for number in range(3))
        assert sum(found["barnabas_log_dir_size_bytes", path] for path in paths) == total > 0
    finally:
        again.shutdown()


def test_a_directory_that_fails_is_offline_and_the_other_is_not(manager: LogManager) -> None:
    failed, healthy = manager.live_directories
    manager.failures.report(failed, "cannot write", OSError(5, "Input/output error"))
    found = scrape(manager)
    assert found["barnabas_log_dir_online", str(failed)] == 0
    assert found["barnabas_log_dir_online", str(healthy)] == 1


def test_tasks_say_how_often_they_ran_failed_and_took(manager: LogManager, scheduler: IdleScheduler) -> None:
    scheduler.counters["log-retention"] = TaskCounters(runs=4, failures=1, last_duration_seconds=0.25)
    found = scrape(manager)
    assert found["barnabas_task_runs_total", "log-retention"] == 4
    assert found["barnabas_task_failures_total", "log-retention"] == 1
    assert found["barnabas_task_last_duration_seconds", "log-retention"] == 0.25


def test_group_commits_are_counted_with_their_time(manager: LogManager) -> None:
    append(manager, ORDERS, records=3)
    log = manager.get(ORDERS)
    assert log is not None
    flusher = GroupCommitFlusher()
    durable = threading.Event()
    flusher.start()
    flusher.request([FlushRequest(log, 3, lambda _: durable.set())])
    assert durable.wait(30)
    flusher.stop()
    found = scrape(manager, flusher)
    assert found["barnabas_flush_requests_total", ""] == 1
    assert found["barnabas_flush_duration_seconds_count", ""] == 1
    assert found["barnabas_flush_duration_seconds_sum", ""] == flusher.sync_seconds_total > 0
    assert found["barnabas_flush_failures_total", ""] == 0


def test_every_state_of_a_log_has_a_number() -> None:
    assert {state.value for state in (*LogState, *LoadState)} == set(LOG_STATES)
