"""A disk that hangs: one sync blocks until the test lets it go, while the broker is used.

Meanwhile the log goes on taking appends and serving reads, the other directory's group commits are answered, and
nothing is answered that waits for the disk that hangs. Afterwards every request that waited is answered. No time is
measured: the disk hangs until all of that was tried.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from barnabas.broker.storage.group_commit import FlushRequest, GroupCommitFlusher
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.storage.bench import read_batches
from tests.torture.crash_states.recording import Recorder
from tests.torture.crash_states.workbench import Workbench
from tests.torture.faulty_calls.running import broken_after_power_cut

_SECONDS = 20
"""How long to wait for what must happen."""


class HangingRecorder(Recorder):
    """A recorder in which the syncs of one log directory hang."""

    def __init__(self, root: Path, directory: str) -> None:
        super().__init__(root)
        self.hangs = threading.Event()
        """Set once a sync hangs."""
        self.is_armed = False
        self._directory = f"{root}/{directory}/"
        self._goes_on = threading.Event()

    def __enter__(self) -> HangingRecorder:
        super().__enter__()
        self._replace(os, "fdatasync", self._hanging)
        return self

    def let_go(self) -> None:
        """Let the sync that hangs, and all others, go on."""
        self.is_armed = False
        self._goes_on.set()

    def _hanging(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def sync(descriptor: int) -> None:
            if self.is_armed and os.readlink(f"/proc/self/fd/{descriptor}").startswith(self._directory):
                self.hangs.set()
                assert self._goes_on.wait(_SECONDS), "the disk hangs for ever"
            real(descriptor)

        return sync


class _Requests:
    """Group commits and their answers."""

    def __init__(self, bench: Workbench, flusher: GroupCommitFlusher) -> None:
        self._bench = bench
        self._flusher = flusher
        self.answered: dict[str, Exception | None] = {}

    def produce(self, name: str, topic_partition: TopicPartition) -> None:
        """Append, and ask for a group commit."""
        self._bench.append(topic_partition)
        log = self._bench.log(topic_partition)
        end = log.log_end_offset

        def answered(error: Exception | None) -> None:
            if error is None:
                self._bench.durable(topic_partition, end)
            self.answered[name] = error

        self._flusher.request([FlushRequest(log, end, answered)])

    def unanswered(self, names: list[str]) -> list[str]:
        """Wait for these answers; return those that did not come, at once if nothing is left that could give them."""
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until and not all(name in self.answered for name in names):
            if _is_idle(self._flusher):
                break
            time.sleep(0.001)
        return [name for name in names if name not in self.answered]


def _is_idle(flusher: Any) -> bool:
    with flusher._condition:
        return not flusher._due and not flusher._syncing


def run_with_hanging_disk(directory: str, scratch: Path) -> list[str]:
    """Let the disk of one log directory hang; return complaints."""
    root = scratch / "hanging"
    root.mkdir()
    complaints: list[str] = []
    with HangingRecorder(root, directory) as recorder:
        bench = Workbench(recorder)
        found = {bench.log(each).log_dir.name: each for each in (bench.create("first"), bench.create("second"))}
        here, there = found.pop(directory), found.popitem()[1]
        flusher = GroupCommitFlusher()
        flusher.start()
        requests = _Requests(bench, flusher)
        recorder.is_armed = True
        waiting, other = ["the one that hangs", "the one behind it"], "the other directory's"
        requests.produce(waiting[0], here)
        assert recorder.hangs.wait(_SECONDS), "no sync was made"
        requests.produce(waiting[1], here)
        requests.produce(other, there)
        late = requests.unanswered([other])
        complaints += [f"not answered while the disk hangs: {each}" for each in late]
        complaints += [f"answered while its disk hangs: {each}" for each in waiting if each in requests.answered]
        readable = sum(1 for _ in read_batches(bench.log(here)))
        complaints += [] if readable == 2 else [f"{readable} batches of 2 can be read while the disk hangs"]
        recorder.let_go()
        complaints += [f"never answered: {each}" for each in requests.unanswered([*waiting, other])]
        complaints += [f"{name}: {error}" for name, error in requests.answered.items() if error is not None]
        flusher.stop()
        bench.abandon()
    shutil.rmtree(root)
    return complaints + broken_after_power_cut(recorder, scratch / "cut")
