"""Metrics of the cleaner of a real log manager."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.broker.metrics.registry import make_registry
from barnabas.broker.metrics.state import BrokerState
from barnabas.broker.probes import BrokerProbes
from barnabas.broker.storage.cleaning.cleaner_manager import CleanerManager
from barnabas.broker.storage.cleaning.rewriting.cleaner_stats import CleanerStats
from barnabas.broker.storage.log_manager import LogManager
from barnabas.config.broker_config import BrokerConfig
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.storage.bench import START_MS, TOPIC_ID, TP, append, broker_config, keyed_batch


def _config(root: Path, **settings: object) -> BrokerConfig:
    return broker_config(
        log_dirs=root,
        log_segment_bytes=1024,
        log_cleanup_policy="compact",
        log_cleaner_min_cleanable_ratio=1.0,
        log_message_timestamp_after_max_ms=2**62,
        **settings,
    )


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[LogManager]:
    made = LogManager(_config(tmp_path))
    made.open_directories()
    made.load_logs(lambda _: made.config.log_config)
    yield made
    made.shutdown()


def _cleaner(manager: LogManager) -> CleanerManager:
    assert manager.cleaner is not None
    return manager.cleaner


def _fill(manager: LogManager, topic_partition: TopicPartition, batches: int) -> None:
    log = manager.get_or_create(topic_partition, TOPIC_ID)
    for number in range(batches):
        append(log, keyed_batch(100, START_MS + number))


def _scrape(manager: LogManager) -> dict[tuple[str, str], float]:
    """Return the cleaner's samples: (name without the prefix, label values with the topic first) -> value."""
    state = BrokerState()
    state.log_manager = manager
    text = generate_latest(make_registry(BrokerProbes(), state)).decode()
    return {
        (
            sample.name.removeprefix("barnabas_cleaner_"),
            ",".join(value for _, value in sorted(sample.labels.items(), reverse=True)),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("barnabas_cleaner_")
    }


def test_each_compacted_log_shows_how_dirty_it_is_and_where(manager: LogManager) -> None:
    _fill(manager, TP, 45)
    log = manager.get(TP)
    assert log is not None
    _cleaner(manager).checkpoints.open([log.log_dir])
    _cleaner(manager).checkpoints.set(log.log_dir, TP, 30)
    _cleaner(manager).run_pass()
    found = _scrape(manager)
    assert found["dirty_ratio", "orders,0"] == 0.25
    assert (found["clean_bytes", "orders,0"], found["dirty_bytes", "orders,0"]) == (3000, 1000)
    assert found["first_dirty_offset", "orders,0"] == 30


def test_a_deleted_log_leaves_the_next_scrape(manager: LogManager) -> None:
    _fill(manager, TP, 45)
    _cleaner(manager).checkpoints.open(manager.live_directories)
    _cleaner(manager).run_pass()
    manager.delete([TP])
    assert not [name for name, labels in _scrape(manager) if labels == "orders,0"]


def test_marked_partitions_are_counted_with_their_dirty_bytes_by_directory(manager: LogManager, tmp_path: Path) -> None:
    _fill(manager, TP, 45)
    assert _scrape(manager)["uncleanable_partitions", str(tmp_path)] == 0
    _cleaner(manager).uncleanable.mark(tmp_path, TP, "corrupt")
    _cleaner(manager).run_pass()
    found = _scrape(manager)
    assert found["uncleanable_partitions", str(tmp_path)] == 1
    assert found["uncleanable_bytes", str(tmp_path)] == 4000


def test_rounds_add_up(manager: LogManager) -> None:
    for seconds in (1.5, 2.5):
        _cleaner(manager).statistics.round_ended(
            CleanerStats(
                messages_read=10,
                messages_written=4,
                bytes_read=1000,
                bytes_written=400,
                map_bytes_read=600,
                invalid_messages_read=1,
                map_utilization=0.5,
            ),
            seconds,
        )
    found = {name: value for (name, labels), value in _scrape(manager).items() if not labels}
    assert (found["round_duration_seconds_count"], found["round_duration_seconds_sum"]) == (2, 4.0)
    assert found["last_round_duration_seconds"] == 2.5
    assert (found["read_records_total"], found["kept_records_total"]) == (20, 8)
    assert (found["read_bytes_total"], found["kept_bytes_total"], found["map_read_bytes_total"]) == (2000, 800, 1200)
    assert (found["keyless_records_total"], found["map_utilization_ratio"]) == (2, 0.5)


def test_threads_are_counted_while_they_live(manager: LogManager) -> None:
    manager.start_tasks()
    found = _scrape(manager)
    assert (found["threads", ""], found["dead_threads", ""]) == (1, 0)
    assert found["since_last_run_seconds", ""] >= 0


def test_without_a_cleaner_there_are_no_samples(tmp_path: Path) -> None:
    manager = LogManager(_config(tmp_path, log_cleaner_enable=False))
    assert manager.cleaner is None
    assert {name for name, _ in _scrape(manager)} == {"round_duration_seconds_count", "round_duration_seconds_sum"}
