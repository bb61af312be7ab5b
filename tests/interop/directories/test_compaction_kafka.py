"""Kafka and Barnabas compact one directory in turn: each continues from the other's checkpoint, with the same result.

Barnabas writes a topic, a real Kafka broker compacts it, then our daemon with new records, then Kafka again. After each
turn exactly the last record of each key remains below the checkpoint, followed by the unchanged tail.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

from barnabas.protocol.records.record import Record
from tests.support.compacted_topic import (
    QUICK,
    active_base,
    await_clean,
    clean_offset,
    compacted,
    feed,
    last_values,
    read_all,
)
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.apache_kafka import Broker, Kafka, KafkaError
from tests.support.wire import WireClient

WAIT_S = 60.0
_POLL_INTERVAL_S = 0.05
CONFIGS = {"cleanup_policy": "compact", "internal_segment_bytes": "16384", "min_cleanable_dirty_ratio": "0.01"}


def update(wire: WireClient, seed: int) -> dict[bytes | None, bytes | None]:
    """Produce 1,500 updates of 60 keys; return the last value of each."""
    draw = random.Random(seed)
    rows: list[tuple[bytes, bytes | None]] = [
        (b"key-%d" % draw.randrange(60), b"%d of %d" % (number, seed) * 9) for number in range(1500)
    ]
    feed(wire, "table", rows)
    return {**dict(rows)}


def records_of(daemon: Daemon) -> list[Record]:
    """Return the records that the daemon serves."""
    with WireClient(daemon.host, daemon.port) as wire:
        return read_all(wire, "table")


def await_kafkas_cleaner(broker: Broker, data: Path) -> None:
    """Wait until Kafka's checkpoint covers everything below the active segment."""
    deadline = time.monotonic() + WAIT_S
    while clean_offset(data, "table") != active_base(data, "table"):
        if time.monotonic() > deadline or broker.process.poll() is not None:
            raise KafkaError(f"Kafka's cleaner did not get through\n{broker.log[-4000:]}")
        time.sleep(_POLL_INTERVAL_S)


def test_kafka_and_we_compact_one_directory_in_turn_and_keep_the_same(tmp_path: Path) -> None:
    # Written without a cleaner, so that Kafka has everything to clean.
    with start_daemon(tmp_path / "writing", "log.cleaner.enable=false", f"log.dirs={tmp_path / 'data'}") as writing:
        data = tmp_path / "data"
        with WireClient(writing.host, writing.port) as wire:
            wire.create_topic("table", 1, **CONFIGS)
            update(wire, 1)
            written = read_all(wire, "table")
        assert writing.stop() == 0
        assert clean_offset(data, "table") == -1

        kafka = Kafka("4.3.0", data, tmp_path / "kafka", log_cleaner_backoff_ms="100")
        with kafka.running() as broker:
            await_kafkas_cleaner(broker, data)
        kafkas = clean_offset(data, "table")
        assert kafkas > 0

        with start_daemon(tmp_path / "ours", *QUICK, f"log.dirs={data}") as ours:
            ours.data_directory = data
            survivors = records_of(ours)
            assert survivors == compacted(written, kafkas)
            assert clean_offset(data, "table") == kafkas, "what Kafka has cleaned was cleaned again"
            with WireClient(ours.host, ours.port) as wire:
                updated = update(wire, 2)
                clean_to = await_clean(ours, "table")
                found = read_all(wire, "table")
            assert ours.stop() == 0
        assert f"cleaned table-0: from={kafkas}, " in ours.log
        assert compacted(found, clean_to) == found
        assert last_values(found) == dict(last_values(survivors)) | updated

        writing.start()
        with WireClient(writing.host, writing.port) as wire:
            update(wire, 3)
            written = read_all(wire, "table")
        assert writing.stop() == 0

        with kafka.running() as broker:
            await_kafkas_cleaner(broker, data)
        assert f"cleaned log table-0 (dirty section = [{clean_to}, " in broker.log
        writing.start()
        assert records_of(writing) == compacted(written, clean_offset(data, "table"))
        assert writing.stop() == 0
