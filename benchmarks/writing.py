"""Ways to append to a segment, without a broker: CPU s/GB, MB/s and the slowest write of 1 MiB.

    python -m benchmarks.writing

    plain            write, as the broker does
    allocated ahead  fallocate of 64 MiB before them, the file's size unchanged
    allocated whole  fallocate of the whole segment of 256 MiB
    written early    sync_file_range starts the write-back of each 8 MiB
    both             allocated ahead and written early

The ways follow one another in a random order in each round. Linux only.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.runs.result_files import DIRECTORY, add_json_option, write_result
from benchmarks.runs.side_by_side import Columns, Samples, render_samples

WRITE_BYTES = 1 << 20
SEGMENT_BYTES = 256 << 20
AHEAD_BYTES = 64 << 20
EARLY_BYTES = 8 << 20
WAYS = ("plain", "allocated ahead", "allocated whole", "written early", "both")
COLUMNS = (
    ("CPU s/GB", "cpu_s_per_gb", 1.0, "{:.3f}"),
    ("MB/s", "mb_per_s", 1.0, "{:,.0f}"),
    ("slowest write, ms", "slowest_ms", 1.0, "{:.2f}"),
)
_KEEP_SIZE = 1
_START_WRITING = 2
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    """Measure all rounds, print the table and write the JSON file."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.writing", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=11, help="number of measurements of each way (default 11)")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="written per way and round (default 1)")
    parser.add_argument("--directory", type=Path, default=DIRECTORY, help="where data is written")
    add_json_option(parser, "writing")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="barnabas-bench-", dir=options.directory))
    samples: Samples = {way: [] for way in WAYS}
    try:
        for _ in range(options.rounds):
            for way in random.sample(WAYS, len(WAYS)):
                samples[way].append(write(way, home, int(options.gigabytes * 1e9)))
    finally:
        shutil.rmtree(home)
    print(render_samples(samples, COLUMNS))
    write_result(options.json, "benchmarks.writing", options, samples)
    return 0


def write(way: str, home: Path, size: int) -> Columns:
    """Write `size` bytes into new segments and delete them."""
    block = os.urandom(WRITE_BYTES)
    paths: list[Path] = []
    slowest = 0.0
    cpu, began = _cpu_seconds(), time.monotonic()
    for start in range(0, size, SEGMENT_BYTES):
        paths.append(home / f"{start:020d}.log")
        descriptor = os.open(paths[-1], os.O_RDWR | os.O_CREAT | os.O_EXCL)
        if way == "allocated whole":
            _allocate(descriptor, 0, SEGMENT_BYTES)
        for position in range(0, min(SEGMENT_BYTES, size - start), WRITE_BYTES):
            if way in ("allocated ahead", "both") and position % AHEAD_BYTES == 0:
                _allocate(descriptor, position, AHEAD_BYTES)
            before = time.monotonic()
            os.pwrite(descriptor, block, position)
            slowest = max(slowest, time.monotonic() - before)
            end = position + WRITE_BYTES
            if way in ("written early", "both") and end % EARLY_BYTES == 0:
                _start_writing(descriptor, end - EARLY_BYTES, EARLY_BYTES)
        os.close(descriptor)
    seconds = time.monotonic() - began
    columns = {
        "cpu_s_per_gb": (_cpu_seconds() - cpu) / size * 1e9,
        "mb_per_s": size / 1e6 / seconds,
        "slowest_ms": slowest * 1000,
    }
    for path in paths:
        path.unlink()
    return columns


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _allocate(descriptor: int, position: int, size: int) -> None:
    _check(_libc.fallocate(descriptor, _KEEP_SIZE, ctypes.c_long(position), ctypes.c_long(size)))


def _start_writing(descriptor: int, position: int, size: int) -> None:
    _check(_libc.sync_file_range(descriptor, ctypes.c_long(position), ctypes.c_long(size), _START_WRITING))


def _check(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    sys.exit(main())
