"""Compaction in a running daemon: remaining records, concurrent reads, crashes, deletions and full disks."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.topics.cleaning import CleaningRequest
from barnabas.protocol.records import Codec
from demo.flights import Flight, load_flights
from tests.broker.test_changes_at_run_time import ALL_BROKERS, alter, topic
from tests.support.compacted_topic import (
    DIRTY_AT_ONCE,
    QUICK,
    WAIT_S,
    await_clean,
    await_round_under_way,
    await_until,
    clean_offset,
    compacted,
    feed,
    last_values,
    metric,
    metrics,
    read_all,
)
from tests.support.daemon import Daemon, start_daemon
from tests.support.small_disk import fill_up, small_disk_or_skip
from tests.support.wire import WireClient

Row = tuple[bytes, bytes | None]


def updates(count: int, keys: int, *, seed: int = 1, value_bytes: int = 100) -> list[Row]:
    """Return `count` updates of `keys` keys in random order, each with a different value."""
    draw = random.Random(seed)
    return [(b"key-%d" % draw.randrange(keys), b"%d-" % number + bytes(value_bytes)) for number in range(count)]


def cleaning_of(wire: WireClient, name: str, partition: int = 0) -> tuple[int, float, str]:
    """Return clean offset, dirty ratio and state of the partition."""
    (found,) = [log for log in wire.call(CleaningRequest(topics=[name])).logs if log.partition == partition]
    return found.first_dirty_offset, found.dirty_ratio, found.cleaning_state


def connect(daemon: Daemon) -> WireClient:
    return WireClient(daemon.host, daemon.port)


@pytest.mark.parametrize("codec", list(Codec))
def test_the_last_record_of_each_key_stays_at_its_offset_and_so_does_the_tail(tmp_path: Path, codec: Codec) -> None:
    with start_daemon(tmp_path, *QUICK) as daemon, connect(daemon) as wire:
        wire.create_topic("table", 1, segment_bytes="16384", cleanup_policy="compact", min_cleanable_dirty_ratio="1.0")
        feed(wire, "table", updates(2000, 50), codec=codec)
        before = read_all(wire, "table")
        assert len(before) == 2000
        assert alter(wire, topic("table"), "min.cleanable.dirty.ratio", "0.001") is ErrorCode.NONE
        clean_to = await_clean(daemon, "table")
        assert clean_to > 0
        assert read_all(wire, "table") == compacted(before, clean_to)
        assert wire.end_offset("table") == 2000
        # A round raises the checkpoint before it is counted and logged.
        await_until(daemon, lambda: "cleaned table-0: from=0" in daemon.log, "the line of the round")
        assert metric(daemon, "barnabas_cleaner_read_records_total") >= clean_to
        assert cleaning_of(wire, "table") == (clean_to, 0.0, "idle")
        feed(wire, "table", updates(2000, 50, seed=2), codec=codec)
        clean_to = await_clean(daemon, "table")
        found = read_all(wire, "table")
        assert [record for record in found if record.offset < clean_to] == compacted(found, clean_to)[
            : sum(record.offset < clean_to for record in found)
        ]
        assert len({record.key for record in found if record.offset < clean_to}) == sum(
            record.offset < clean_to for record in found
        )


def test_consumers_that_read_during_compaction_miss_no_last_value(tmp_path: Path) -> None:
    done = threading.Event()

    with start_daemon(tmp_path, *QUICK) as daemon, connect(daemon) as wire:
        wire.create_topic("table", 1, segment_bytes="16384", file_delete_delay_ms="1", **DIRTY_AT_ONCE)
        rows = updates(12_000, 60)

        def consume() -> int:
            """Read from the start until `done`; return how often."""
            turns = 0
            with connect(daemon) as reader:
                while not done.is_set() or turns == 0:
                    end = reader.end_offset("table")
                    found = read_all(reader, "table")
                    assert [each.offset for each in found] == sorted({each.offset for each in found})
                    assert all((each.key, each.value) == rows[each.offset] for each in found)
                    # A key's last value when the read began has not been removed, unless by a later update.
                    for key, offset in {rows[offset][0]: offset for offset in range(end)}.items():
                        latest = [each.offset for each in found if each.key == key][-1:]
                        assert latest, key
                        assert latest[0] >= offset, key
                    turns += 1
            return turns

        with ThreadPoolExecutor(2) as consumers:
            running = [consumers.submit(consume) for _ in range(2)]
            try:
                feed(wire, "table", rows)
                await_clean(daemon, "table")
            finally:
                done.set()
            assert all(each.result(WAIT_S) > 0 for each in running)
        assert metric(daemon, "barnabas_cleaner_round_duration_seconds_count") > 3
        assert last_values(read_all(wire, "table")) == dict(rows)


def test_a_kill_in_the_middle_of_a_round_loses_nothing_and_the_next_start_goes_on(tmp_path: Path) -> None:
    with start_daemon(tmp_path, *QUICK, "log.cleaner.io.max.bytes.per.second=150000") as daemon:
        with connect(daemon) as wire:
            wire.create_topic(
                "table", 1, segment_bytes="16384", **{**DIRTY_AT_ONCE, "min_cleanable_dirty_ratio": "1.0"}
            )
            rows = updates(3000, 80)
            feed(wire, "table", rows)
            assert alter(wire, topic("table"), "min.cleanable.dirty.ratio", "0.001") is ErrorCode.NONE
        for _ in range(3):
            await_round_under_way(daemon, "table")
            daemon.restart(clean=False)
            with connect(daemon) as wire:
                assert last_values(read_all(wire, "table")) == dict(rows)
        with connect(daemon) as wire:
            assert alter(wire, ALL_BROKERS, "log.cleaner.io.max.bytes.per.second", "1e9") is ErrorCode.NONE
            clean_to = await_clean(daemon, "table")
            assert read_all(wire, "table") == compacted(read_all(wire, "table"), clean_to)
            assert last_values(read_all(wire, "table")) == dict(rows)
            assert wire.end_offset("table") == 3000


def test_the_checkpoint_is_where_it_was_after_a_restart_and_nothing_is_cleaned_twice(tmp_path: Path) -> None:
    with start_daemon(tmp_path, *QUICK) as daemon:
        with connect(daemon) as wire:
            wire.create_topic("table", 1, segment_bytes="16384", **DIRTY_AT_ONCE)
            feed(wire, "table", updates(2000, 50))
            clean_to = await_clean(daemon, "table")
        daemon.restart()
        labels = 'partition="0",topic="table"'
        await_until(
            daemon,
            lambda: "barnabas_cleaner_first_dirty_offset{" in metrics(daemon),
            "the cleaner's first look",
        )
        assert metric(daemon, "barnabas_cleaner_first_dirty_offset", labels) == clean_to
        assert metric(daemon, "barnabas_cleaner_dirty_ratio", labels) == 0
        assert metric(daemon, "barnabas_cleaner_round_duration_seconds_count") == 0
        assert clean_offset(daemon.data_directory, "table") == clean_to


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Daemon]:
    """Start a daemon whose cleaner spends a minute or more in a round over `table`."""
    settings = (*QUICK, "log.cleaner.io.buffer.size=16384", "log.cleaner.io.max.bytes.per.second=20000")
    with start_daemon(tmp_path, *settings) as daemon:
        with connect(daemon) as wire:
            wire.create_topic("table", 1, segment_bytes="65536", **DIRTY_AT_ONCE)
            feed(wire, "table", updates(3000, 80, value_bytes=400))
        await_until(daemon, lambda: metric(daemon, "barnabas_cleaner_throttled_seconds_total") > 0, "a round to begin")
        yield daemon


def test_a_topic_that_is_deleted_in_the_middle_of_a_round_is_gone_at_once(slow: Daemon) -> None:
    with connect(slow) as wire:
        assert wire.delete_topic("table").error is ErrorCode.NONE
        assert not (slow.data_directory / "table-0").exists()
        assert metric(slow, "barnabas_cleaner_aborted_rounds_total") == 1
        wire.create_topic("table", 1, segment_bytes="16384", **DIRTY_AT_ONCE)
        assert alter(wire, ALL_BROKERS, "log.cleaner.io.max.bytes.per.second", "1e9") is ErrorCode.NONE
        feed(wire, "table", updates(1000, 20, seed=3))
        await_clean(slow, "table")
        assert last_values(read_all(wire, "table")) == dict(updates(1000, 20, seed=3))
    assert slow.stop() == 0


def test_a_policy_that_changes_to_delete_in_the_middle_of_a_round_ends_it_and_back_begins_anew(slow: Daemon) -> None:
    with connect(slow) as wire:
        before = read_all(wire, "table")
        assert alter(wire, topic("table"), "cleanup.policy", "delete") is ErrorCode.NONE
        await_until(slow, lambda: metric(slow, "barnabas_cleaner_aborted_rounds_total") == 1, "the round to end")
        feed(wire, "table", updates(200, 80, seed=4))
        assert clean_offset(slow.data_directory, "table") == -1
        assert alter(wire, ALL_BROKERS, "log.cleaner.io.max.bytes.per.second", "1e9") is ErrorCode.NONE
        assert alter(wire, topic("table"), "cleanup.policy", "compact") is ErrorCode.NONE
        clean_to = await_clean(slow, "table")
        rest = read_all(wire, "table", offset=3000)
        assert read_all(wire, "table") == compacted([*before, *rest], clean_to)


def test_a_stop_in_the_middle_of_a_throttled_round_is_prompt_and_clean(slow: Daemon) -> None:
    assert slow.stop(signal.SIGTERM) == 0
    assert not list((slow.data_directory / "table-0").glob("*.cleaned"))


def test_threads_and_buffers_change_at_run_time_by_kafkas_rules(tmp_path: Path) -> None:
    with start_daemon(tmp_path, *QUICK) as daemon, connect(daemon) as wire:
        assert metric(daemon, "barnabas_cleaner_threads") == 1
        assert alter(wire, ALL_BROKERS, "log.cleaner.threads", "3") is ErrorCode.INVALID_REQUEST
        assert alter(wire, ALL_BROKERS, "log.cleaner.threads", "2") is ErrorCode.NONE
        assert metric(daemon, "barnabas_cleaner_threads") == 2
        assert alter(wire, ALL_BROKERS, "log.cleaner.threads", "4") is ErrorCode.NONE
        assert metric(daemon, "barnabas_cleaner_threads") == 4
        assert alter(wire, ALL_BROKERS, "log.cleaner.threads", None) is ErrorCode.INVALID_REQUEST  # from 4 to 1
        # Each thread needs more than 1 MiB.
        assert alter(wire, ALL_BROKERS, "log.cleaner.dedupe.buffer.size", str(4 << 20)) is ErrorCode.INVALID_REQUEST
        assert alter(wire, ALL_BROKERS, "log.cleaner.dedupe.buffer.size", str(5 << 20)) is ErrorCode.NONE
        assert alter(wire, ALL_BROKERS, "log.cleaner.threads", "2") is ErrorCode.NONE
        assert metric(daemon, "barnabas_cleaner_threads") == 2
        wire.create_topic("table", 1, segment_bytes="16384", **DIRTY_AT_ONCE)
        feed(wire, "table", updates(1000, 20))
        await_clean(daemon, "table")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log.cleaner.io.buffer.size", "8192"),
        ("log.cleaner.io.buffer.load.factor", "0.5"),
        ("log.cleaner.io.max.bytes.per.second", "1e8"),
        ("log.cleaner.backoff.ms", "10"),
        ("log.cleaner.delete.retention.ms", "0"),
        ("log.cleaner.min.cleanable.ratio", "0.001"),
        ("log.cleaner.min.compaction.lag.ms", "0"),
        ("log.cleaner.max.compaction.lag.ms", "1"),
    ],
)
def test_every_property_of_the_cleaner_changes_at_run_time(tmp_path: Path, name: str, value: str) -> None:
    """At first nothing is due, because nothing is old or dirty enough; changing the last property makes it so."""
    settings = [
        "log.cleaner.backoff.ms=3600000",
        "log.cleaner.min.cleanable.ratio=1.0",
        "log.cleanup.policy=compact",
        "log.segment.bytes=16384",
    ]
    if name == "log.cleaner.min.compaction.lag.ms":
        settings += ["log.cleaner.min.compaction.lag.ms=3600000", "log.cleaner.max.compaction.lag.ms=3600001"]
        settings[1] = "log.cleaner.min.cleanable.ratio=0.001"
    with start_daemon(tmp_path, *settings) as daemon, connect(daemon) as wire:
        wire.create_topic("table")
        feed(wire, "table", updates(1000, 20))
        assert alter(wire, ALL_BROKERS, name, value) is ErrorCode.NONE
        if name in ("log.cleaner.min.cleanable.ratio", "log.cleaner.min.compaction.lag.ms"):
            await_clean(daemon, "table")
        else:
            if name == "log.cleaner.max.compaction.lag.ms":
                feed(wire, "table", updates(1, 1))
            assert alter(wire, topic("table"), "min.cleanable.dirty.ratio", "0.001") is ErrorCode.NONE
            await_clean(daemon, "table")
        assert last_values(read_all(wire, "table")).keys() == {b"key-%d" % number for number in range(20)}


def test_a_corrupt_batch_in_the_dirty_part_marks_its_partition_and_the_others_go_on(tmp_path: Path) -> None:
    with start_daemon(tmp_path, *QUICK) as daemon:
        with connect(daemon) as wire:
            configs = {**DIRTY_AT_ONCE, "min_cleanable_dirty_ratio": "1.0", "segment_bytes": "16384"}
            wire.create_topic("table", 2, **configs, retention_ms="-1")
            for partition in range(2):
                feed(wire, "table", updates(1000, 20), partition)
        assert daemon.stop() == 0
        segment = sorted((daemon.data_directory / "table-0").glob("*.log"))[1]
        content = bytearray(segment.read_bytes())
        content[200] ^= 0xFF
        segment.write_bytes(content)
        daemon.start()
        with connect(daemon) as wire:
            for config, value in (("cleanup.policy", "compact,delete"), ("min.cleanable.dirty.ratio", "0.001")):
                assert alter(wire, topic("table"), config, value) is ErrorCode.NONE
            clean_to = await_clean(daemon, "table", 1)
            directory = f'log_dir="{daemon.data_directory}"'
            await_until(
                daemon,
                lambda: metric(daemon, "barnabas_cleaner_uncleanable_partitions", directory) == 1,
                "the mark",
            )
            assert metric(daemon, "barnabas_cleaner_uncleanable_bytes", directory) > 0
            clean_offset_told, dirty_ratio, state = cleaning_of(wire, "table")
            assert (clean_offset_told, dirty_ratio) == (-1, 1.0)
            assert state.startswith("uncleanable: cannot be cleaned: ")
            assert segment.name in state
            feed(wire, "table", updates(1000, 20, seed=5), 1)
            assert await_clean(daemon, "table", 1) > clean_to
            # Retention is suspended too, but not in the other partition.
            segments = len(list((daemon.data_directory / "table-0").glob("*.log")))
            assert alter(wire, topic("table"), "retention.bytes", "1") is ErrorCode.NONE
            await_until(
                daemon,
                lambda: len(list((daemon.data_directory / "table-1").glob("*.log"))) == 1,
                "retention of table-1",
            )
            assert len(list((daemon.data_directory / "table-0").glob("*.log"))) == segments
        marks = [line for line in daemon.log.splitlines() if "table-0 cannot be cleaned" in line]
        assert len(marks) == 1, marks
        assert segment.name in marks[0]
        assert daemon.stop() == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk_or_skip(tmp_path / "small", "4m") as mounted:
        yield mounted


def test_a_full_disk_ends_the_round_which_is_tried_again_after_the_back_off(tmp_path: Path, disk: Path) -> None:
    settings = (f"log.dirs={disk / 'data'}", "log.cleaner.backoff.ms=50", "log.index.size.max.bytes=4096")
    with start_daemon(tmp_path / "daemon", *settings) as daemon, connect(daemon) as wire:
        daemon.data_directory = disk / "data"
        configs = {**DIRTY_AT_ONCE, "min_cleanable_dirty_ratio": "1.0"}
        wire.create_topic("table", 1, segment_bytes="1048576", file_delete_delay_ms="0", **configs)
        # all keys differ, so compaction can remove nothing
        rows = [(b"key-%d" % number, bytes(1000)) for number in range(1500)]
        feed(wire, "table", rows)
        before = read_all(wire, "table")
        filler = disk / "filler"
        fill_up(filler, left_bytes=65536)  # enough room for the metadata, not for the round
        assert alter(wire, topic("table"), "min.cleanable.dirty.ratio", "0.001") is ErrorCode.NONE
        await_until(
            daemon, lambda: metric(daemon, "barnabas_cleaner_out_of_room_rounds_total") >= 2, "two rounds without room"
        )
        assert read_all(wire, "table") == before
        assert not list((daemon.data_directory / "table-0").glob("*.swap"))
        assert metric(daemon, "barnabas_log_dir_online", f'log_dir="{daemon.data_directory}"') == 1
        filler.unlink()
        clean_to = await_clean(daemon, "table")
        assert read_all(wire, "table") == compacted(before, clean_to)
        assert daemon.stop() == 0


@pytest.mark.parametrize("flights", [40_000, pytest.param(None, marks=pytest.mark.slow)])
def test_the_flights_end_as_the_last_flight_of_each_aircraft(tmp_path: Path, flights: int | None) -> None:
    with start_daemon(tmp_path, *QUICK) as daemon, connect(daemon) as wire:
        wire.create_topic("flights", 4, segment_bytes="262144", **DIRTY_AT_ONCE)
        fed: list[list[Flight]] = [[], [], [], []]
        for flight in load_flights(flights):
            fed[sum(flight.key) % 4].append(flight)
        for partition, rows in enumerate(fed):
            feed(wire, "flights", rows, partition, batch_records=100)
        for partition, rows in enumerate(fed):
            clean_to = await_clean(daemon, "flights", partition)
            assert clean_to > len(rows) // 2
            last = {flight.key: offset for offset, flight in enumerate(rows[:clean_to])}
            kept = [
                (offset, *flight)
                for offset, flight in enumerate(rows)
                if offset >= clean_to or last[flight.key] == offset
            ]
            found = read_all(wire, "flights", partition)
            assert [(record.offset, record.key, record.value, record.timestamp) for record in found] == kept
            assert last_values(found) == {flight.key: flight.value for flight in rows}
