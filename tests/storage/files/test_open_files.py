"""Descriptors of the log engine."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from barnabas.broker.storage.files.open_files import FILES_OF_A_PARTITION
from tests.support.storage.bench import LogBench, append, batch


def open_files_below(directory: Path) -> int:
    found = 0
    for each in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # that of the listing itself
            found += os.readlink(f"/proc/self/fd/{each}").startswith(f"{directory}/")
    return found


def test_an_open_log_has_as_many_descriptors_as_the_limit_on_partitions_counts(tmp_path: Path) -> None:
    bench = LogBench(tmp_path)
    log = bench.open()
    append(log, batch((1, b"key", b"value")))
    assert open_files_below(tmp_path) == FILES_OF_A_PARTITION
    bench.close(log)
    assert open_files_below(tmp_path) == 0
