"""Helpers for a compacted topic in a running daemon: produce, read, wait, and check the guarantees of compaction."""

from __future__ import annotations

import re
import time
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path

from barnabas.broker.storage.files.checkpoint_file import CLEANER_CHECKPOINT, OffsetCheckpointFile
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records import Codec, RecordBatchBuilder
from barnabas.protocol.records.batch import iter_batches
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.records.record import Record
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.daemon import Daemon, DaemonError
from tests.support.wire import WireClient

WAIT_S = 30.0
_POLL_INTERVAL_S = 0.01
_FETCH_BYTES = 1 << 20

QUICK = ("log.cleaner.backoff.ms=20",)
"""Settings of a daemon whose cleaner checks for work all the time."""
DIRTY_AT_ONCE = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.001"}
"""Configs of a topic that is cleaned after every segment roll."""


def await_until(daemon: Daemon, is_so: Callable[[], bool], what: str) -> None:
    """Poll a condition in another process. After a timeout, raise DaemonError with the daemon's log."""
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        if time.monotonic() > deadline:
            raise DaemonError(f"waited {WAIT_S} s for {what}\n{daemon.log[-4000:]}")
        time.sleep(_POLL_INTERVAL_S)


def feed(
    wire: WireClient,
    topic: str,
    records: Iterable[tuple[bytes, bytes | None] | tuple[bytes, bytes | None, int]],
    partition: int = 0,
    *,
    batch_records: int = 10,
    codec: Codec = Codec.NONE,
) -> None:
    """Produce (key, value) or (key, value, timestamp) in batches of `batch_records`. The default timestamp is now."""
    rows = list(records)
    for start in range(0, len(rows), batch_records):
        builder = RecordBatchBuilder(codec, max_bytes=1 << 24)
        for key, value, *timestamp in rows[start : start + batch_records]:
            assert builder.append(timestamp[0] if timestamp else time.time_ns() // 1_000_000, key, value, ())
        result = wire.produce(topic, bytearray(builder.build()), partition)
        assert result.error is ErrorCode.NONE, result.message


def read_all(wire: WireClient, topic: str, partition: int = 0, offset: int = 0) -> list[Record]:
    """Return every record from `offset` to the high watermark, fetch by fetch."""
    found: list[Record] = []
    while True:
        result = wire.fetch(topic, offset, partition, max_bytes=_FETCH_BYTES)
        assert result.error is ErrorCode.NONE, result.error
        if not result.data:
            return found
        start = offset
        for batch in iter_batches(result.data):
            batch.ensure_valid()
            found += [record for record in read_records(batch) if record.offset >= start]
            offset = batch.next_offset
        assert offset > start, "the first batch was cut"


def last_values(records: Iterable[Record]) -> dict[bytes | None, bytes | None]:
    """Return the table built from the records: the last value of each key."""
    return {record.key: record.value for record in records}


def compacted(records: Iterable[Record], clean_to: int) -> list[Record]:
    """Return the records that compaction keeps if everything below `clean_to` is clean; tombstones are kept."""
    listed = list(records)
    last = {record.key: record.offset for record in listed if record.offset < clean_to}
    return [record for record in listed if record.offset >= clean_to or last[record.key] == record.offset]


def clean_offset(log_dir: Path, topic: str, partition: int = 0) -> int:
    """Return the partition's entry in cleaner-offset-checkpoint, or -1."""
    return OffsetCheckpointFile(log_dir / CLEANER_CHECKPOINT).read().get(TopicPartition(topic, partition), -1)


def active_base(log_dir: Path, topic: str, partition: int = 0) -> int:
    """Return the base offset of the partition's active segment."""
    return max(int(path.stem) for path in (log_dir / f"{topic}-{partition}").glob("*.log"))


def await_clean(daemon: Daemon, topic: str, partition: int = 0) -> int:
    """Wait until all but the active segment is clean; return the clean offset. No producer may be running."""
    log_dir = daemon.data_directory
    base = active_base(log_dir, topic, partition)
    await_until(
        daemon,
        lambda: clean_offset(log_dir, topic, partition) == base,
        f"{topic}-{partition} to be clean to {base}",
    )
    return base


def await_round_under_way(daemon: Daemon, topic: str, partition: int = 0) -> None:
    """Wait until a cleaning round has begun to rewrite the partition."""
    directory = daemon.data_directory / f"{topic}-{partition}"
    await_until(daemon, lambda: any(directory.glob("*.cleaned")), f"a round over {topic}-{partition}")


def metric(daemon: Daemon, name: str, labels: str = "") -> float:
    """Return a sample of the daemon's /metrics; `labels` as in the text format, without braces."""
    text = metrics(daemon)
    pattern = rf"^{re.escape(name)}{re.escape('{' + labels + '}') if labels else ''} (\S+)$"
    found = re.search(pattern, text, re.MULTILINE)
    assert found, f"no sample {name}{{{labels}}}"
    return float(found[1])


def metrics(daemon: Daemon) -> str:
    """Return the daemon's /metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{daemon.metrics_port}/metrics", timeout=30) as answer:
        text: str = answer.read().decode()
    return text
