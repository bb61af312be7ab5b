"""Benchmarks of start and lookup in the log engine, without a broker: `python -m benchmarks.loading`.

    clean start           1,000 partitions of 10 segments after a clean shutdown, until all logs are loaded
    recovery              after kill -9, of one log in 64 segments and in 1, with batches of 16 KiB, of 1 KiB and of 170
                          bytes; as a ratio to `cat` of the same files to /dev/null just before, in the same round
    lookups               by offset and by timestamp in one segment of 1 GiB, each with a random target

Each start runs in its own process. Segments look as after a kill: the newest segment's indexes have their preallocated
size and contain zeros, and there is no clean-shutdown file and no recovery point. For a quick run: `--gigabytes 0.1`.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from barnabas.broker.storage.files.file_names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, file_name
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.log_manager import LogManager
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.value import Setting
from benchmarks.requests.records import build_batch
from benchmarks.runs.result_files import add_json_option, write_result
from benchmarks.runs.side_by_side import Samples

PARTITIONS = 1000
SEGMENTS_EACH = 10
SEGMENT_COUNTS = (64, 1)
VALUE_BYTES = {"16 KiB": 16 * 1024 - 72, "1 KiB": 1024 - 70, "170 B": 170 - 70}
INDEX_BYTES = 10 * 1024 * 1024
SEGMENT_BYTES_MAX = 2**31 - 1
LOOKUPS = 5_000

_OFFSET = struct.Struct(">q")


def load_once(log_dir: str) -> None:
    """Load all logs (run in its own process); print the seconds, the CPU seconds and the number of logs."""
    manager = _manager(Path(log_dir))
    started, cpu = time.perf_counter(), time.process_time()
    count = manager.load_logs(lambda _: manager.config.log_config)
    print(time.perf_counter() - started, time.process_time() - cpu, count)
    for log in manager.logs():
        log.go_offline()
    os._exit(0)  # as after a kill: skips closing the files


def clean_start(home: Path, rounds: int, partitions: int) -> dict[str, list[float]]:
    """Measure seconds and CPU seconds of clean starts; the first one, with cold caches, is not counted."""
    batch = bytearray(build_batch(1, 100).data)
    model: dict[str, bytes] = {}
    for segment in range(SEGMENTS_EACH):
        base = segment * 10
        model[file_name(base, LOG_SUFFIX)] = b"".join(_at(batch, base + number) for number in range(10))
        model[file_name(base, OFFSET_INDEX_SUFFIX)] = struct.pack(">ii", 5, 5 * len(batch))
        model[file_name(base, TIME_INDEX_SUFFIX)] = struct.pack(">qi", int(time.time() * 1000), 9)
    for offset in (SEGMENTS_EACH * 10 - 10, SEGMENTS_EACH * 10):
        model[f"{offset:020d}.snapshot"] = bytes.fromhex("0001") + struct.pack(">I", 0x48674BC7) + bytes(4)
    samples: dict[str, list[float]] = {"seconds": [], "cpu_seconds": []}
    for number in range(rounds + 1):
        log_dir = home / f"clean-{number}"
        for partition in range(partitions):
            directory = log_dir / f"bench-{partition}"
            directory.mkdir(parents=True)
            for name, content in model.items():
                (directory / name).write_bytes(content)
        (log_dir / ".kafka_cleanshutdown").touch()
        seconds, cpu_seconds, count = _load_in_process(log_dir)
        assert count == partitions, f"{count} of {partitions} logs were loaded"
        shutil.rmtree(log_dir)
        if number:
            samples["seconds"].append(seconds)
            samples["cpu_seconds"].append(cpu_seconds)
    return samples


def recovery(home: Path, rounds: int, total_bytes: int, segments: int, value_bytes: int) -> dict[str, list[float]]:
    """Measure seconds of a start that recovers everything, and of `cat`; an extra first round is not counted."""
    log_dir = home / "recovery"
    directory = log_dir / "bench-0"
    directory.mkdir(parents=True)
    bases = _write_segments(directory, total_bytes, segments, value_bytes)
    logs = [str(directory / file_name(base, LOG_SUFFIX)) for base in bases]
    samples: dict[str, list[float]] = {"seconds": [], "cat_seconds": [], "ratio": []}
    for number in range(rounds + 1):
        for path in directory.glob("*.snapshot"):
            path.unlink()
        (log_dir / ".kafka_cleanshutdown").unlink(missing_ok=True)
        _zero_newest_indexes(directory, bases[-1])
        started = time.perf_counter()
        subprocess.run(["cat", *logs], stdout=subprocess.DEVNULL, check=True)
        cat_seconds = time.perf_counter() - started
        seconds, _, _ = _load_in_process(log_dir)
        if number:
            samples["seconds"].append(seconds)
            samples["cat_seconds"].append(cat_seconds)
            samples["ratio"].append(seconds / cat_seconds)
    shutil.rmtree(log_dir)
    return samples


def lookups(home: Path, rounds: int, segment_bytes: int) -> dict[str, list[float]]:
    """Measure the mean microseconds of lookups by offset and by timestamp in one sealed segment."""
    log_dir = home / "lookups"
    directory = log_dir / "bench-0"
    directory.mkdir(parents=True)
    _write_segments(directory, segment_bytes, 1, VALUE_BYTES["1 KiB"], rising=True)
    manager = _manager(log_dir)
    manager.load_logs(lambda _: manager.config.log_config)
    log = manager.logs()[0]
    log.roll()
    chosen = random.Random(7)
    end = log.log_end_offset
    first = log.segments[0].first_timestamp()
    samples: dict[str, list[float]] = {"offset_us": [], "timestamp_us": []}
    for number in range(rounds + 1):
        targets = [chosen.randrange(end) for _ in range(LOOKUPS)]
        offset_us = _mean_us(lambda target: _read(log, target, end), targets)
        timestamp_us = _mean_us(lambda target: log.offset_for_timestamp(first + target), targets)
        if number:
            samples["offset_us"].append(offset_us)
            samples["timestamp_us"].append(timestamp_us)
    for each in manager.logs():
        each.go_offline()
    shutil.rmtree(log_dir)
    return samples


def _read(log: ReadableLog, offset: int, end: int) -> None:
    part = log.read(offset, 1, upper_bound=end, at_least_one_batch=True)
    assert part is not None, f"offset {offset} was not found"


def _mean_us(look_up: Callable[[int], object], targets: list[int]) -> float:
    started = time.perf_counter()
    for target in targets:
        look_up(target)
    return (time.perf_counter() - started) / len(targets) * 1e6


def _manager(log_dir: Path) -> LogManager:
    settings = {"log.dirs": str(log_dir), "log.segment.bytes": str(SEGMENT_BYTES_MAX), "log.retention.ms": "-1"}
    manager = LogManager(BrokerConfig.of({name: Setting(value, "benchmark") for name, value in settings.items()}))
    manager.open_directories()
    return manager


def _load_in_process(log_dir: Path) -> tuple[float, float, int]:
    code = f"from benchmarks.loading import load_once; load_once({str(log_dir)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, cpu_seconds, count = done.stdout.split()
    return float(seconds), float(cpu_seconds), int(count)


def _write_segments(
    directory: Path, total_bytes: int, segments: int, value_bytes: int, *, rising: bool = False
) -> list[int]:
    """Write one log as a killed broker leaves it; return the base offsets. `rising`: one ms between batches."""
    batch = bytearray(build_batch(1, value_bytes).data)
    count = max(total_bytes // segments // len(batch), 1)
    bases = [segment * count for segment in range(segments)]
    now_ms = int(time.time() * 1000) - segments * count
    for base in bases:
        with (directory / file_name(base, LOG_SUFFIX)).open("wb", buffering=1 << 20) as file:
            for offset in range(base, base + count):
                if rising:
                    _stamp(batch, now_ms + offset)
                file.write(_at(batch, offset))
        for suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            (directory / file_name(base, suffix)).touch()
    os.sync()
    return bases


def _zero_newest_indexes(directory: Path, base: int) -> None:
    for suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
        with (directory / file_name(base, suffix)).open("wb") as file:
            file.truncate(INDEX_BYTES // 24 * 24)


def _at(batch: bytearray, offset: int) -> bytes:
    """Return the batch with another base offset, which the CRC does not cover."""
    _OFFSET.pack_into(batch, 0, offset)
    return bytes(batch)


def _stamp(batch: bytearray, timestamp: int) -> None:
    """Set the record's timestamp."""
    from crc32c import crc32c

    struct.pack_into(">qq", batch, 27, timestamp, timestamp)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))


def _say(line: str, samples: dict[str, list[float]]) -> None:
    cells = [f"{name}={median(each):.4g} ({min(each):.4g}-{max(each):.4g})" for name, each in samples.items()]
    print(f"{line}: {', '.join(cells)}", flush=True)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loading", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="number of measurements of each line (default 3)")
    parser.add_argument("--gigabytes", type=float, default=4.0, help="GiB to recover (default 4)")
    parser.add_argument(
        "--partitions", type=int, default=PARTITIONS, help="partitions of the clean start (default 1000)"
    )
    parser.add_argument("--directory", type=Path, default=None, help="where data is written; needs enough free space")
    add_json_option(parser, "loading")
    options = parser.parse_args(arguments)
    total_bytes = int(options.gigabytes * (1 << 30))
    lines: Samples = {}

    def keep(line: str, samples: dict[str, list[float]]) -> None:
        lines[line] = [dict(zip(samples, each, strict=True)) for each in zip(*samples.values(), strict=True)]
        _say(line, samples)

    home = Path(tempfile.mkdtemp(prefix="barnabas-loading-", dir=options.directory))
    try:
        samples = clean_start(home, options.rounds, options.partitions)
        keep(f"clean start, {options.partitions} partitions of {SEGMENTS_EACH} segments", samples)
        for name, value_bytes in VALUE_BYTES.items():
            for segments in SEGMENT_COUNTS:
                # One segment has at most 2 GiB: positions in its index are int32.
                size = min(total_bytes, (SEGMENT_BYTES_MAX - (1 << 20)) * segments)
                samples = recovery(home, options.rounds, size, segments, value_bytes)
                keep(f"recovery, {size / (1 << 30):.3g} GiB in {segments} segments, batches of {name}", samples)
        size = min(total_bytes, 1 << 30)
        keep(f"lookups in a segment of {size / (1 << 30):.3g} GiB", lookups(home, options.rounds, size))
    finally:
        shutil.rmtree(home)
    write_result(options.json, "benchmarks.loading", options, lines)


if __name__ == "__main__":
    main(sys.argv[1:])
