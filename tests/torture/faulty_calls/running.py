"""Runs a scenario with one fault, cuts the power, starts again, and checks both.

    outcome = run_with(Fault("appends", "two", 30, "EIO"), scratch)
    python -m tests.torture --fault appends/two/30/EIO

Afterwards the directory with the fault may be offline, unless the fault was a shortage; the other one works; and a
start after the power cut finds everything that was acknowledged.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.storage.files.errors import StorageError
from barnabas.protocol.errors import BrokerError
from tests.torture.crash_states.disk import Disk, write_files
from tests.torture.crash_states.promises import Promises, violations
from tests.torture.crash_states.recording import Note, Recorder
from tests.torture.crash_states.workbench import abandon, start
from tests.torture.faulty_calls.injection import KINDS, Fault, FaultyRecorder
from tests.torture.faulty_calls.scenarios import SCENARIOS, Played


class Outcome(NamedTuple):
    """What one fault led to. `failed` is None if the scenario makes fewer calls."""

    failed: str | None
    complaints: list[str]


def run_with(fault: Fault, scratch: Path) -> Outcome:
    """Run the fault's scenario with it."""
    root = scratch / "faulty"
    root.mkdir()
    with FaultyRecorder(root, fault) as recorder:
        played = SCENARIOS[fault.scenario](recorder, fault.directory)
        recorder.is_armed = False
        complaints = [*played.complaints, *_after(recorder, fault, played)]
        if played.bench is not None:
            played.bench.abandon()
    shutil.rmtree(root)
    if recorder.failed is not None:
        complaints += broken_after_power_cut(recorder, scratch / "cut")
    return Outcome(recorder.failed, complaints)


def all_outcomes(scenario: str, scratch: Path, kinds: Sequence[str] = KINDS) -> Iterator[tuple[Fault, Outcome]]:
    """Run the scenario once for each of its calls, directory by directory, kind by kind."""
    for directory in ("two", "one"):
        for kind in kinds:
            call = 0
            while True:
                fault = Fault(scenario, directory, call, kind)
                outcome = run_with(fault, scratch)
                if outcome.failed is None:
                    break
                yield fault, outcome
                call += 1


def _after(recorder: FaultyRecorder, fault: Fault, played: Played) -> list[str]:
    """Return what is wrong with the directories that are offline, and with the one that had no fault."""
    bench, here, there, _ = played
    if bench is None:
        return []
    complaints = []
    offline = [path.name for path in bench.opened.log_manager.failures.offline]
    if not set(offline) <= {fault.directory}:
        complaints.append(f"offline are {offline}")
    if offline and fault.kind == "short":
        complaints.append("a short write took the directory offline")
    has_way_back = not (fault.scenario == "compaction" and str(recorder.failed).startswith(("rename ", "unlink ")))
    if offline and recorder.is_shortage and fault.scenario != "start" and has_way_back:
        complaints.append("a shortage took the directory offline")
    bench.run_background()
    try:
        bench.append(there)
        bench.flush(there)
        if not offline:
            bench.append(here)
            bench.flush(here)
    except (BrokerError, StorageError) as error:
        complaints.append(f"afterwards a log that is online refuses records: {error}")
    return complaints


def broken_after_power_cut(recorder: Recorder, root: Path) -> list[str]:
    """Cut the power after a recording, start on what is left, and return what is wrong with that."""
    disk, promises = Disk(recorder.tree), Promises()
    for at, event in enumerate(recorder.events):
        disk.apply(at, event)
        if isinstance(event, Note):
            promises.add(event.said)
    complaints = []
    for name, choice in (("only what was synced", dict.fromkeys(disk.parts(), 0)), ("everything written", {})):
        write_files(disk.files(choice), root)
        opened = None
        try:
            opened = start(root)
            found = violations(opened, promises, promises.holdings)
            complaints += [f"after a power cut that leaves {name}: {each}" for each in found]
        except Exception as error:  # noqa: BLE001 - whatever a start raises is a finding
            complaints.append(f"after a power cut that leaves {name}: {type(error).__name__}: {error}")
        finally:
            if opened is not None:
                abandon(opened)
            shutil.rmtree(root)
    return complaints
