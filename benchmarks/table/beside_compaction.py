"""One-record produce during a compaction: the line `one_record_8_compacting`, to compare with `one_record_8`.

A compacted topic is filled with records of 200 bytes while its minimum dirty ratio keeps the cleaner from starting.
Then the ratio is lowered, and the one-record load runs for about as long as cleaning the whole topic takes. A column
records whether the cleaning was still running at the end: the broker's cleaner-offset-checkpoint, which both systems
write at the end of a cleaning, has no entry of the topic.
"""

from __future__ import annotations

import random
import time

from barnabas.protocol.records.builder import RecordBatchBuilder
from benchmarks.requests.frames import alter_topic
from benchmarks.table.lines import Bench, Columns

TOPIC = "compacted"
CONNECTIONS = 8
RECORD_BYTES = 200
BATCH_BYTES = 256 << 10
BATCHES = 64
KEYS = 500_000
BYTES_PER_SECOND = 400e6
"""Assumed speed of a cleaner thread, which determines the duration of the load."""
PROPERTIES = ("log.cleaner.backoff.ms=200",)
"""Properties of both systems: how long an idle cleaner sleeps. Kafka's is not woken by a changed topic."""
START_SECONDS = 0.25
CONFIGS = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1.0", "segment.bytes": str(64 << 20)}


def one_record_beside_compaction(bench: Bench) -> Columns:
    """Return the columns of a one-record line, and `compacting_at_end`: 1 if the cleaning was still running."""
    work, running = bench.work, bench.running
    batches = [_batch(number) for number in range(BATCHES)]
    requests = max(BATCHES, work.compacted_bytes // len(batches[0]))
    with running.connect() as connection:
        bench.dialect.create(connection, TOPIC, 1, CONFIGS)
    frames = bench.directory / "compacted-frames"
    frames.write_bytes(b"".join(bench.dialect.produce(TOPIC, batch) for batch in batches))
    bench.programs.load(running.host, running.port, frames, connections=1, depth=4, requests=requests)
    with running.connect() as connection:
        alter_topic(connection, TOPIC, {"min.cleanable.dirty.ratio": "0.01"})
    time.sleep(START_SECONDS)
    seconds = min(work.latency_seconds, work.compacted_bytes / BYTES_PER_SECOND)
    columns = bench.one_record(CONNECTIONS, seconds)
    checkpoint = bench.directory / "data" / "cleaner-offset-checkpoint"
    is_cleaned = checkpoint.exists() and f"{TOPIC} 0 " in checkpoint.read_text()
    columns["compacting_at_end"] = float(not is_cleaned)
    return columns


def _batch(seed: int) -> bytes:
    noise = random.Random(seed)
    builder = RecordBatchBuilder(max_bytes=BATCH_BYTES)
    now_ms = time.time_ns() // 1_000_000
    while builder.append(now_ms, b"%016d" % noise.randrange(KEYS), noise.randbytes(RECORD_BYTES - 16 - 11)):
        pass
    return builder.build()
