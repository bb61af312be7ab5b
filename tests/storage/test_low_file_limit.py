"""Thousands of closed segments under a low limit on open files, in a process of its own that cannot raise it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.broker.storage.files.file_names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, file_name
from tests.support.daemon import REPOSITORY
from tests.support.storage.records import stored

_PARTITIONS = 30
_SEGMENTS = 70
_LIMIT = 160
"""The active segments take three each, one from Python 3.13 on."""

_START_AND_READ = f"""
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, ({_LIMIT}, {_LIMIT}))
from barnabas.broker.storage.log_manager import LogManager
from tests.support.storage.bench import broker_config, log_config, read_batches
manager = LogManager(broker_config(log_dirs=sys.argv[1], num_recovery_threads_per_data_dir=4))
manager.open_directories()
config = log_config(segment_bytes=1024, retention_ms=-1)
logs = manager.load_logs(lambda topic: config)
segments = sum(log.segment_count for log in manager.logs())
batches = sum(1 for log in manager.logs() for found in read_batches(log))
print(logs, segments, batches, manager.shutdown())
"""


@pytest.mark.parametrize("clean", [True, False])
def test_thousands_of_closed_segments_load_and_are_read_with_few_open_files(tmp_path: Path, clean: bool) -> None:
    for partition in range(_PARTITIONS):
        directory = tmp_path / f"orders-{partition}"
        directory.mkdir()
        for base in range(0, 2 * _SEGMENTS, 2):
            (directory / file_name(base, LOG_SUFFIX)).write_bytes(stored(base) + stored(base + 1))
            (directory / file_name(base, OFFSET_INDEX_SUFFIX)).touch()
            (directory / file_name(base, TIME_INDEX_SUFFIX)).touch()
    if clean:
        (tmp_path / ".kafka_cleanshutdown").touch()
    command = [sys.executable, "-c", _START_AND_READ, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=REPOSITORY)
    expected = f"{_PARTITIONS} {_PARTITIONS * _SEGMENTS} {2 * _PARTITIONS * _SEGMENTS} True"
    assert done.stdout.split("\n")[0] == expected, done.stderr
