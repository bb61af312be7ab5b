"""One cleaning of one log, in its own process: `python -m benchmarks.table.compaction DIRECTORY BYTES`.

Records of 200 bytes in batches of 16 KiB, keys drawn from half a million per GiB, in segments of 100 MiB; everything is
dirty. The log is appended to as in a broker, then cleaned with the default buffers. Printed as JSON: MB/s and CPU
seconds per GB of log, for both passes together; the ratio to the time of `cp` of the same files; and the growth of the
process's memory beyond the configured buffers.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time
from pathlib import Path

from barnabas.broker.storage.cleaning.offline import OfflineServices
from barnabas.broker.storage.cleaning.rewriting.cleaner import Cleaner, LogToClean
from barnabas.broker.storage.log.loading.loader import LoadRequest
from barnabas.broker.storage.log.opening import open_log
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.value import Setting
from barnabas.protocol.records.builder import RecordBatchBuilder
from barnabas.protocol.topic_partition import TopicPartition

GIB = 1 << 30
KEYS_PER_GIB = 500_000
RECORD_BYTES = 200
BATCH_BYTES = 16 * 1024
SETTINGS = {"log.cleanup.policy": "compact", "log.segment.bytes": str(100 << 20)}

Columns = dict[str, float]


class Unthrottled:
    """Throttler without a limit."""

    def note(self, size_bytes: int) -> None:
        """Ignore the bytes."""


def compaction(directory: Path, size_bytes: int) -> Columns:
    """Measure one cleaning of `size_bytes` of log, created in `directory`."""
    command = [sys.executable, "-m", "benchmarks.table.compaction", str(directory), str(size_bytes)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    columns: Columns = json.loads(done.stdout)
    return columns


def measure(directory: Path, size_bytes: int) -> Columns:
    """Measure `compaction` in this process."""
    config = BrokerConfig.of({name: Setting(value, "benchmark") for name, value in SETTINGS.items()})
    log = _filled_log(directory / "bench-0", config, size_bytes)
    dirty = [segment.log.path for segment in log.segments[:-1]]
    dirty_bytes = sum(segment.size_bytes for segment in log.segments[:-1])
    begun = time.perf_counter()
    subprocess.run(["cp", *dirty, str(directory)], check=True)
    copy_seconds = time.perf_counter() - begun
    threads, map_bytes = config.get_int("log.cleaner.threads"), config.get_int("log.cleaner.dedupe.buffer.size")
    io_bytes = config.get_int("log.cleaner.io.buffer.size")
    cleaner = Cleaner(
        offset_map_bytes=map_bytes // threads,
        load_factor=config.get_float("log.cleaner.io.buffer.load.factor"),
        io_buffer_bytes=io_bytes // threads // 2,
        throttler=Unthrottled(),
        check_done=lambda _: None,
    )
    cleanable = LogToClean(
        log=log, first_dirty_offset=0, first_uncleanable_offset=log.segments[-1].base_offset, now_ms=log.wall_ms()
    )
    idle_bytes = _peak_bytes()
    cpu, begun = time.process_time(), time.perf_counter()
    stats = cleaner.clean(cleanable).stats
    seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - cpu
    return {
        "mb_per_s": dirty_bytes / seconds / 1e6,
        "cpu_s_per_gb": cpu_seconds / dirty_bytes * 1e9,
        "cp_ratio": seconds / copy_seconds,
        "memory_above_buffers_mib": (_peak_bytes() - idle_bytes - map_bytes - io_bytes) / (1 << 20),
        "kept_percent": 100 * stats.bytes_written / stats.bytes_read,
    }


def _filled_log(directory: Path, config: BrokerConfig, size_bytes: int) -> PartitionLog:
    directory.mkdir(parents=True)
    request = LoadRequest(directory, TopicPartition("bench", 0), config.log_config, True, 0, 0)
    log = open_log(request, OfflineServices.create().services, topic_id=bytes(16))
    noise = random.Random(1)
    keys = max(1, size_bytes * KEYS_PER_GIB // GIB)
    now_ms = log.wall_ms()
    while log.size_bytes < size_bytes:
        builder = RecordBatchBuilder(max_bytes=BATCH_BYTES)
        while builder.append(now_ms, b"%016d" % noise.randrange(keys), noise.randbytes(RECORD_BYTES - 16 - 11)):
            pass
        log.append_as_leader(memoryview(bytearray(builder.build())), leader_epoch=0)
    log.roll()
    log.flush()
    return log


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), int(sys.argv[2]))))
