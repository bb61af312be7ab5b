"""A kill at each disk step of taking a snapshot and trimming the log; every start continues from what is left."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.metadata.directories.examine import examine
from barnabas.broker.metadata.log.snapshots import list_snapshots
from barnabas.protocol.messages.topics.topics import NewTopic
from tests.support.storage.bench import ManualClock, StepScheduler
from tests.support.storage.metadata_store import opened, stepped_store

HOUR_MS = 60 * 60 * 1000
STEPS = ("rename", "replace", "unlink", "fsync", "write", "ftruncate")


class Crashes:
    """Copies of a directory, taken before each system call that changes the disk."""

    def __init__(self, directory: Path, to: Path) -> None:
        self.left: list[Path] = []
        self._directory = directory
        self._to = to
        self._is_copying = False

    def before(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            if not self._is_copying:
                self._is_copying = True
                copy = self._to / str(len(self.left))
                self.left.append(shutil.copytree(self._directory, copy, ignore=shutil.ignore_patterns(".lock")))
                self._is_copying = False
            return call(*arguments, **named)

        return step


def test_a_crash_at_any_step_leaves_a_log_that_barnabas_and_kafka_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    scheduler = StepScheduler(clock)
    store = stepped_store(tmp_path / "data", clock, scheduler, metadata_max_retention_bytes="0")
    for name in ("a", "b"):
        store.create(NewTopic(name=name, partitions=1))
        scheduler.advance(HOUR_MS)
    store.create(NewTopic(name="c", partitions=1))
    crashes = Crashes(tmp_path / "data", tmp_path)
    with monkeypatch.context() as patched:
        for name in STEPS:
            patched.setattr(os, name, crashes.before(getattr(os, name)))
        scheduler.advance(HOUR_MS + 2 * store.config.log_config.file_delete_delay_ms)
    store.close()
    assert len(crashes.left) > 10
    for left in crashes.left:
        report = examine([left])
        assert report.problems == ()
        assert sorted(report.image.topics) == ["a", "b", "c"]
        metadata = left / "__cluster_metadata-0"
        starts = min(int(path.stem) for path in metadata.glob("*.log"))
        # Kafka requires a snapshot at or above the start of a log that does not begin at 0, and none above its end.
        assert any(starts <= each.end_offset <= report.image.end_offset for each in list_snapshots(metadata))
        with opened(left) as again:
            again.create(NewTopic(name="d", partitions=1))
        assert sorted(examine([left]).image.topics) == ["a", "b", "c", "d"]
