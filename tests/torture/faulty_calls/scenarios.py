"""What the broker does while a call goes wrong.

Each scenario prepares the log `here`, whose directory has the fault, and `there` in the other one; then it arms the
recorder. It returns complaints about errors that a client must not see, and leaves a running broker, or none if a start
was refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.storage.cleaning.cleaner_manager import CleanerManager
from barnabas.broker.storage.files.errors import StorageError
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.storage.cleaning import new_cleaner
from tests.torture.crash_states.workbench import Workbench
from tests.torture.faulty_calls.injection import FaultyRecorder


class Played(NamedTuple):
    """The broker after a scenario, None if its start was refused; its logs, and what is wrong already."""

    bench: Workbench | None
    here: TopicPartition
    there: TopicPartition
    complaints: list[str]


_MOVE_STEPS = 200
"""More than a move takes that one fault delays."""

Scenario = Callable[[FaultyRecorder, str], Played]
"""Called with the name of the directory whose calls are counted."""


def _prepare(
    recorder: FaultyRecorder, directory: str, **changes: Any
) -> tuple[Workbench, TopicPartition, TopicPartition]:
    """Create a topic in the directory whose calls go wrong, and one in the other; the metadata log is in `one`."""
    bench = Workbench(recorder, changes=changes)
    found = {bench.log(each).log_dir.name: each for each in (bench.create("first"), bench.create("second"))}
    assert set(found) == {"one", "two"}
    return bench, found.pop(directory), found.popitem()[1]


def _try(complaints: list[str], step: Callable[[], object]) -> None:
    try:
        step()
    except BrokerError as error:
        if error.code is not ErrorCode.KAFKA_STORAGE_ERROR:
            complaints.append(f"a client gets {error.code.name}: {error}")
    except StorageError:
        pass  # the group commit tells the waiting producers KAFKA_STORAGE_ERROR
    except Exception as bug:  # noqa: BLE001 - anything else is a finding
        complaints.append(f"a step ends with {type(bug).__name__}: {bug}")


def appends(recorder: FaultyRecorder, directory: str) -> Played:
    """Append, sync, roll and write checkpoints."""
    bench, here, there = _prepare(recorder, directory)
    complaints: list[str] = []
    recorder.is_armed = True
    for number in range(14):

        def step(number: int = number) -> None:
            bench.append(here, size=120)
            if number % 3 == 2:
                bench.flush(here)
            if number % 4 == 3:
                bench.run_background()
                bench.checkpoint()

        _try(complaints, step)
    return Played(bench, here, there, complaints)


def retention(recorder: FaultyRecorder, directory: str) -> Played:
    """Delete old segments and records."""
    bench, here, there = _prepare(recorder, directory, retention_bytes=1500, retention_ms=-1)
    complaints: list[str] = []
    for _ in range(14):
        bench.append(here, size=150)
    bench.flush(here)
    bench.run_background()
    log = bench.log(here)
    bench.allow_start(here, log.segments[-1].base_offset)
    recorder.is_armed = True
    for step in (
        lambda: log.delete_records(log.segments[1].base_offset + 1),
        log.delete_old_segments,
        bench.checkpoint,
        bench.run_background,
        lambda: bench.run_background(1000),
        log.delete_old_segments,
        bench.checkpoint,
        lambda: bench.run_background(1000),
    ):
        _try(complaints, step)
    return Played(bench, here, there, complaints)


def compaction(recorder: FaultyRecorder, directory: str) -> Played:
    """Compact a log, in rounds as the cleaner's threads run them."""
    changes = {"compact": True, "delete": False, "delete_retention_ms": 0, "min_cleanable_dirty_ratio": 0.01}
    bench, here, there = _prepare(recorder, directory, **changes)
    complaints: list[str] = []
    for keys in (b"abca", b"abdq", b"aaaa", b"aafa"):
        for _ in range(2):
            bench.append(here, [bytes([key]) for key in keys], size=70)
        bench.log(here).roll()
    bench.append(here, [b"a", b"z"])
    bench.flush(here)
    bench.run_background()
    bench.checkpoint()
    bench.allow_compaction(here)
    manager = bench.opened.log_manager
    cleaner = CleanerManager(
        bench.opened.config,
        manager.services,
        logs=manager.logs,
        get=manager.get,
        create_cleaner=lambda *_: new_cleaner(),
    )
    cleaner.checkpoints.open(manager.live_directories)
    recorder.is_armed = True
    for _ in range(3):
        _try(complaints, cleaner.run_pass)
        _try(complaints, lambda: bench.run_background(20_000))
    return Played(bench, here, there, complaints)


def move(recorder: FaultyRecorder, directory: str) -> Played:
    """Move a log to the other directory and back, while it is appended to."""
    bench, here, there = _prepare(recorder, directory)
    complaints: list[str] = []
    for _ in range(6):
        bench.append(here, size=150)
    bench.flush(here)
    bench.run_background()
    bench.checkpoint()
    manager = bench.opened.log_manager
    recorder.is_armed = True
    for _ in range(2):
        if manager.failures.offline:
            break
        _try(complaints, lambda: bench.move(here))
        for _ in range(_MOVE_STEPS):
            if not manager.moves.running:
                break
            for step in (manager.moves.step, lambda: bench.append(here, size=60), lambda: bench.flush(here)):
                _try(complaints, step)
            bench.clock.now_ms += 2_000  # a move that has found the disk full waits
        else:
            if not manager.failures.offline:  # without the metadata log, it waits
                complaints.append("a move does not end")
        bench.clock.now_ms += 120_000
        for step in (bench.run_background, manager.deletions.remove_due, bench.checkpoint):
            _try(complaints, step)
    return Played(bench, here, there, complaints)


def begin(recorder: FaultyRecorder, directory: str) -> Played:
    """Start after a crash: recovery of both logs, and of the metadata."""
    bench, here, there = _prepare(recorder, directory)
    for each in (here, there):
        for _ in range(9):
            bench.append(each, size=150)
        bench.flush(each)
        bench.run_background()
    bench.checkpoint()
    for each in (here, there):
        for _ in range(4):
            bench.append(each, size=150)
        bench.flush(each)
    bench.abandon()
    recorder.is_armed = True
    try:
        return Played(Workbench(recorder, count=1000), here, there, [])
    except (StorageError, MetadataError):
        return Played(None, here, there, [])  # refused with a sentence
    except Exception as bug:  # noqa: BLE001 - `barnabas serve` would show a traceback
        return Played(None, here, there, [f"the start ends with {type(bug).__name__}: {bug}"])


SCENARIOS: dict[str, Scenario] = {
    "appends": appends,
    "retention": retention,
    "compaction": compaction,
    "move": move,
    "start": begin,
}
