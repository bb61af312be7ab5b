"""Forecasts in the metrics: when a disk is full, and when retention overtakes a group."""

from __future__ import annotations

import math
import shutil
import time
from pathlib import Path

from barnabas import Admin, AdminConfig, Producer, ProducerConfig, TopicPartition
from barnabas.broker.groups.offsets.committed import CommittedOffsets
from barnabas.broker.metrics.disk_forecast import INTERVAL_S, MAX_SAMPLES, MIN_SPAN_S, DiskForecast
from barnabas.broker.metrics.group_retention_collector import GroupRetentionCollector
from barnabas.broker.metrics.state import BrokerState
from barnabas.broker.storage.log_manager import LogManager
from barnabas.clients.group_offsets import CommittedOffset
from barnabas.config.loader import load
from barnabas.protocol.groups.keys import OffsetCommitKey
from barnabas.protocol.groups.values import OffsetCommitValue
from tests.support.daemon import start_daemon
from tests.support.metrics import metric
from tests.support.storage.bench import append, batch

HOUR_MS = 3_600_000
OVERTAKES = 'barnabas_group_retention_overtakes_seconds{group="%s"}'
LOST = 'barnabas_group_lost_records{group="%s"}'


def watched(seconds: float, free_at: list[int]) -> DiskForecast:
    """A forecast with samples of this free space, spread evenly over a time."""
    forecast = DiskForecast()
    for number, free in enumerate(free_at):
        forecast.observe(1000.0 + seconds * number / (len(free_at) - 1), free)
    return forecast


def test_a_disk_is_full_when_the_trend_of_its_free_space_ends() -> None:
    forecast = watched(3600, [10_000_000 - 1000 * minute for minute in range(61)])  # 1,000 bytes a minute
    left = forecast.seconds_until_full(9_940_000)
    assert left is not None
    assert math.isclose(left, 9_940 * 60)


def test_saw_teeth_without_a_trend_are_no_reason_to_worry() -> None:
    teeth = [1_000_000 - 1000 * (minute % 5) for minute in range(300)]
    left = watched(300 * 60, teeth).seconds_until_full(1_000_000)
    assert left is not None
    assert left > 365 * 86_400
    assert watched(3600, [5, 5, 5]).seconds_until_full(5) == math.inf
    assert watched(3600, [5, 6, 7]).seconds_until_full(7) == math.inf


def test_there_is_no_forecast_before_there_is_a_trend() -> None:
    assert DiskForecast().seconds_until_full(1) is None
    assert watched(MIN_SPAN_S - 1, [9, 1]).seconds_until_full(1) is None


def test_samples_are_bounded_and_a_minute_apart() -> None:
    forecast = DiskForecast()
    for second in range(int(INTERVAL_S) * (MAX_SAMPLES + 10)):
        forecast.observe(float(second), 1)
    assert len(forecast._samples) == MAX_SAMPLES
    assert forecast._samples[1][0] - forecast._samples[0][0] == INTERVAL_S


async def test_a_group_that_retention_overtakes_has_the_time_and_what_it_lost(tmp_path: Path) -> None:
    with start_daemon(tmp_path, "metrics.group.lag.enable=true") as daemon:
        first_ms = time.time_ns() // 1_000_000 - HOUR_MS // 2
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            await admin.create_topic("orders", partitions=1, configs={"retention.ms": str(HOUR_MS)})
            await admin.create_topic("kept", partitions=1, configs={"retention.ms": "-1"})
            async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
                for topic in ("orders", "kept"):
                    for _ in range(5):
                        await producer.send(topic, b"x", partition=0, timestamp_ms=first_ms)
            orders, kept = TopicPartition("orders", 0), TopicPartition("kept", 0)
            await admin.set_group_offsets("behind", {orders: CommittedOffset(1), kept: CommittedOffset(0)})
            await admin.set_group_offsets("safe", {orders: CommittedOffset(5), kept: CommittedOffset(0)})
            left = metric(daemon, OVERTAKES % "behind")
            assert left is not None
            assert HOUR_MS / 2000 - 60 < left <= HOUR_MS / 2000 + 0.001
            assert metric(daemon, OVERTAKES % "safe") is None
            assert metric(daemon, LOST % "behind") is None

            await admin.delete_records({orders: 3})
            assert metric(daemon, LOST % "behind") == 2
            await admin.delete_records({orders: -1})
            assert metric(daemon, OVERTAKES % "behind") is None
            assert metric(daemon, LOST % "behind") == 4


def test_the_free_space_of_a_directory_is_that_of_its_file_system(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon:
        log_dir = daemon.data_directory
        labels = f'{{log_dir="{log_dir}"}}'
        assert metric(daemon, f"barnabas_log_dir_capacity_bytes{labels}") == shutil.disk_usage(log_dir).total
        free = metric(daemon, f"barnabas_log_dir_free_bytes{labels}")
        assert free is not None
        assert 0 < free <= shutil.disk_usage(log_dir).total
        assert metric(daemon, f"barnabas_log_dir_full_in_seconds{labels}") is None


def test_a_log_that_the_cleaner_gave_up_overtakes_no_group(tmp_path: Path) -> None:
    settings = [f"log.dirs={tmp_path}", "log.cleanup.policy=compact,delete", "log.retention.ms=3600000"]
    manager = LogManager(load(config_file=None, environ={}, overrides=settings))
    manager.open_directories()
    manager.load_logs(lambda _: manager.config.log_config)
    state = BrokerState()
    state.log_manager = manager
    state.committed_offsets = CommittedOffsets()
    partition = TopicPartition("orders", 0)
    log = manager.get_or_create(partition, bytes(15) + b"\1")
    append(log, batch((time.time_ns() // 1_000_000, b"key", b"x")))
    state.committed_offsets.put(OffsetCommitKey("readers", "orders", 0), OffsetCommitValue(0, -1, ""))
    try:
        assert len(next(iter(GroupRetentionCollector(state).collect())).samples) == 1
        assert manager.cleaner is not None
        manager.cleaner.uncleanable.mark(log.log_dir, partition, "a batch is torn")
        assert not next(iter(GroupRetentionCollector(state).collect())).samples
    finally:
        manager.shutdown()


def test_a_scrape_looks_at_a_bounded_number_of_partitions(tmp_path: Path) -> None:
    manager = LogManager(load(config_file=None, environ={}, overrides=[f"log.dirs={tmp_path}"]))
    manager.open_directories()
    manager.load_logs(lambda _: manager.config.log_config)
    state = BrokerState()
    state.log_manager = manager
    state.committed_offsets = CommittedOffsets()
    now_ms = time.time_ns() // 1_000_000
    for number in range(3):
        log = manager.get_or_create(TopicPartition("orders", number), bytes(15) + b"\1")
        append(log, batch((now_ms, None, b"x")))
        state.committed_offsets.put(OffsetCommitKey(f"group-{number}", "orders", number), OffsetCommitValue(0, -1, ""))
    collector = GroupRetentionCollector(state, max_reads=2)
    try:
        assert [len(next(iter(collector.collect())).samples) for _ in range(3)] == [2, 3, 3]
        state.committed_offsets.forget(["group-0", "group-1"])
        assert len(next(iter(collector.collect())).samples) == 1
        assert len(collector._reads) == 1
    finally:
        manager.shutdown()
