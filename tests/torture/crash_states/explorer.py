"""The explorer: records a workload, builds the states that a power cut could leave, and starts a broker on each.

A state has a name, `workload/seed/event/family/number`, by which it is built again:

    newest    everything is on disk, as after a crash of the process
    durable   only what was synced
    without   everything but one change; without2: but two
    only      what was synced and one other change; only2: and two
    sample    a version of each change by chance, torn pages included

Everything is repeated exactly: the clock is the workload's, and random ids are drawn from the seed.
"""

from __future__ import annotations

import itertools
import logging
import os
import random
import shutil
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.files.file_names import FileKind, parse_file_name
from barnabas.broker.storage.inspection.verify_directory import DirectoriesCheck
from barnabas.protocol.errors import BrokerError
from tests.support.storage.acknowledged import Holding
from tests.support.storage.metadata_store import Opened
from tests.torture.crash_states.disk import (
    PAGE_BYTES,
    SECTOR_BYTES,
    Choice,
    Disk,
    Entry,
    Files,
    Page,
    Part,
    Size,
    Torn,
    files_below,
    fingerprint,
    write_files,
)
from tests.torture.crash_states.promises import Begin, Promises, violations
from tests.torture.crash_states.recording import Event, Link, Note, Recorder, Rename, Tree
from tests.torture.crash_states.workbench import abandon, start
from tests.torture.crash_states.workloads import AFTER, WORKLOADS

FAMILIES = ("newest", "durable", "without", "only", "without2", "only2", "sample")
_TORN_SHARE = 0.25
_RECENT_PARTS = 4
"""How far back, on average, a drawn state reaches among the changes that are not durable."""


class StateName(NamedTuple):
    """Name of a state, by which it can be built again."""

    workload: str
    seed: int
    event: int
    """The last event before the power cut."""
    family: str
    number: int

    def __str__(self) -> str:
        return "/".join(map(str, self))


def parse_state_name(text: str) -> StateName:
    """Return the name in a text form. Raises ValueError."""
    workload, seed, event, family, index = text.split("/")
    return StateName(workload, int(seed), int(event), family, int(index))


class State(NamedTuple):
    """What a power cut could leave."""

    name: StateName
    choice: Choice
    files: Files
    promises: Promises


class Failure(NamedTuple):
    """A state on which a started broker does not keep a promise."""

    name: StateName
    losses: list[str]
    """What the power cut took of the changes, one line each."""
    complaints: list[str]

    def __str__(self) -> str:
        return "\n  ".join([f"{self.name}: the power cut takes", *self.losses, "and then:", *self.complaints])


class Recording(NamedTuple):
    """The recording of one workload."""

    workload: str
    seed: int
    tree: Tree
    events: Sequence[Event]


def record(workload: str, seed: int, scratch: Path) -> Recording:
    """Run a workload in a new directory below `scratch` and record it. Raises AssertionError if it missed a change."""
    root = scratch / f"{workload}-{seed}"
    before: list[Event] = []
    if workload in AFTER:
        before = _prepare(root, workload, seed, scratch)
    else:
        root.mkdir()
    with Recorder(root, seed) as recorder:
        recorder.events.extend(before)
        WORKLOADS[workload](recorder, random.Random(seed))
    disk = Disk(recorder.tree)
    for at, event in enumerate(recorder.events):
        disk.apply(at, event)
    real, modelled = files_below(root), disk.files({})
    different = [path for path in real.keys() | modelled.keys() if real.get(path, 0) != modelled.get(path, 0)]
    assert not different, f"changes of these files were not recorded: {different}"
    shutil.rmtree(root)
    return Recording(workload, seed, recorder.tree, recorder.events)


def _prepare(root: Path, workload: str, seed: int, scratch: Path) -> list[Event]:
    """Leave what a power cut in an earlier workload leaves; return its notes up to then, and one to begin at."""
    earlier = record(AFTER[workload], seed, scratch)
    (name,) = pick(earlier, 1, seed, family="sample")
    state = state_named(earlier, name)
    write_files(state.files, root)
    notes: list[Event] = [event for event in earlier.events[: name.event + 1] if isinstance(event, Note)]
    return [*(note for note in notes if not isinstance(note, Note) or not isinstance(note.said, Begin)), Note(Begin())]


def pick(recording: Recording, count: int, seed: int, *, family: str | None = None) -> list[StateName]:
    """Return the names of so many states, drawn from all events and families, in the order of their events.

    What changed last is drawn most often: the rest has been drawn at earlier events.
    """
    draw = random.Random(f"{recording.workload}/{seed}/{family}")
    moments = [(at, len(parts)) for at, parts, _, _ in _moments(recording)]
    names = []
    for _ in range(count):
        at, parts = draw.choice(moments)
        chosen = family or draw.choice(FAMILIES)
        first, second = sorted(max(parts - 1 - int(draw.expovariate(1 / _RECENT_PARTS)), 0) for _ in range(2))
        index = {"newest": 0, "durable": 0, "sample": draw.randrange(1000), "without": second, "only": second}.get(
            chosen, first * parts + second
        )
        names.append(StateName(recording.workload, recording.seed, at, chosen, index))
    return sorted(set(names), key=lambda name: (name.event, name.family, name.number))


def states_named(recording: Recording, names: Iterable[StateName]) -> Iterator[State]:
    """Build states, given in the order of their events."""
    waiting = deque(names)
    for at, parts, disk, promises in _moments(recording):
        while waiting and waiting[0].event == at:
            name = waiting.popleft()
            choice = _choice(name, parts)
            yield State(name, choice, disk.files(choice), promises)
    if waiting:
        raise ValueError(f"the recording has no event {waiting[0].event} that changes a file")


def state_named(recording: Recording, name: StateName) -> State:
    """Build one state."""
    return next(states_named(recording, [name]))


def names_at(recording: Recording, at: int, parts: int, *, pairs: int, samples: int) -> list[StateName]:
    """Return the names of all states of an event with single changes, and of so many pairs and samples."""
    both = list(itertools.combinations(range(parts), 2))
    draw = random.Random(f"{recording.seed}/{at}")
    found = [
        ("newest", 0),
        ("durable", 0),
        *((family, index) for family in ("without", "only") for index in range(parts)),
    ]
    for family in ("without2", "only2"):
        found += [(family, first * parts + second) for first, second in draw.sample(both, min(pairs, len(both)))]
    found += [("sample", index) for index in range(samples)]
    return [StateName(recording.workload, recording.seed, at, family, index) for family, index in found]


def all_names(recording: Recording, *, pairs: int, samples: int) -> Iterator[StateName]:
    """Yield the names of the states of all events, see `names_at`."""
    for at, parts, _, _ in _moments(recording):
        yield from names_at(recording, at, len(parts), pairs=pairs, samples=samples)


def _moments(recording: Recording) -> Iterator[tuple[int, dict[Part, int], Disk, Promises]]:
    """Yield each event with the parts that are not durable after it. Disk and promises are those of that moment."""
    disk, promises = Disk(recording.tree), Promises()
    begin = next(
        (at for at, event in enumerate(recording.events) if isinstance(event, Note) and isinstance(event.said, Begin)),
        0,
    )
    for at, event in enumerate(recording.events):
        disk.apply(at, event)
        if isinstance(event, Note):
            promises.add(event.said)
            # Of several notes in a row the last one has all promises.
            following = recording.events[at + 1] if at + 1 < len(recording.events) else None
            if isinstance(following, Note):
                continue
        if at >= begin:
            yield at, disk.parts(), disk, promises


def _choice(name: StateName, parts: dict[Part, int]) -> Choice:
    listed = list(parts)
    match name.family:
        case "newest":
            return {}
        case "durable":
            return dict.fromkeys(listed, 0)
        case "sample":
            return _sample(parts, random.Random(str(name)))
        case "without" | "only":
            chosen: tuple[int, ...] = (name.number,)
        case "without2" | "only2":
            chosen = divmod(name.number, max(len(listed), 1))
        case _:
            raise ValueError(f"unknown family {name.family}")
    is_without = name.family.startswith("without")
    return {part: 0 for index, part in enumerate(listed) if (index in chosen) == is_without}


def _sample(parts: dict[Part, int], draw: random.Random) -> Choice:
    choice: dict[Part, int | Torn] = {}
    kept = draw.random()  # how much of the cache was written back
    for part, versions in parts.items():
        if draw.random() < kept:
            continue
        chosen = draw.randrange(versions)
        choice[part] = chosen
        if isinstance(part, Page) and draw.random() < _TORN_SHARE:
            mask = draw.getrandbits(PAGE_BYTES // SECTOR_BYTES)
            choice[part] = Torn(chosen, draw.randrange(versions), mask)
    return choice


class Explorer:
    """Starts a broker on states; `states` counts them, without those that are equal to an earlier one."""

    def __init__(self, scratch: Path, *, closes_every: int = 8) -> None:
        """After every so many starts the broker is also stopped cleanly, and its files are verified."""
        self.states = 0
        self._closes_every = closes_every
        self.equal = 0
        self._root = scratch / "state"
        self._seen: set[tuple[bytes, int]] = set()

    def explore(self, state: State, recording: Recording) -> Failure | None:
        """Start on one state of a recording; return what was found."""
        allowed = state.promises.allowed_holdings(recording.events[state.name.event + 1 :])
        key = (fingerprint(state.files), hash((len(allowed), _promised(state.promises))))
        if key in self._seen:
            self.equal += 1
            return None
        self._seen.add(key)
        self.states += 1
        complaints = self._complaints(state, is_closed=self.states % self._closes_every == 0, allowed=allowed)
        return Failure(state.name, _losses(state.choice, recording), complaints) if complaints else None

    def _complaints(self, state: State, *, is_closed: bool, allowed: Sequence[Holding]) -> list[str]:
        write_files(state.files, self._root)
        errors = _Errors()
        logging.getLogger("barnabas").addHandler(errors)
        opened: Opened | None = None
        try:
            opened = start(self._root)
            complaints = list(violations(opened, state.promises, allowed))
            if is_closed and not complaints:
                opened.close()
                opened = None
                directories = [self._root / "one", self._root / "two"]
                found = DirectoriesCheck(directories).run()
                complaints = [f"verify: {each}" for each in found if not _may_be_damaged(each.path, state.promises)]
            return complaints + errors.lines
        except (MetadataError, StorageError, BrokerError, OSError) as error:
            return [f"the start or the use was refused: {type(error).__name__}: {error}", *errors.lines]
        except Exception as bug:  # noqa: BLE001 - whatever a start raises is a finding
            return [f"a bug: {type(bug).__name__}: {bug}", *errors.lines]
        finally:
            logging.getLogger("barnabas").removeHandler(errors)
            if opened is not None:
                abandon(opened)
            shutil.rmtree(self._root)


class _Errors(logging.Handler):
    """Collects what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"logged: {record.getMessage()}")


def _promised(promises: Promises) -> tuple[object, ...]:
    logs = ((log, each.durable_end, each.start_at_most, each.is_compacted) for log, each in promises.logs.items())
    return (*sorted(logs), promises.outcomes.key(), promises.shares.key(), *sorted(promises.pruned.items()))


def _may_be_damaged(path: Path, promises: Promises) -> bool:
    """Return whether damage to a file is no finding, because it does no harm.

    A torn producer snapshot is recognized by its CRC and not used. A segment that was deleted before, and is back after
    the power cut, may lack its indexes; retention deletes it again.
    """
    parsed = parse_file_name(path.name)
    if parsed is None:
        return False
    starts = {log: each.start_at_most for log, each in promises.logs.items()} | promises.pruned
    return parsed.kind is FileKind.SNAPSHOT or any(
        f"{log.topic}-{log.partition}" == path.parent.name and parsed.offset < start for log, start in starts.items()
    )


def _losses(choice: Choice, recording: Recording) -> list[str]:
    names: dict[int, str] = {}
    for event in recording.events:
        match event:
            case Link(_, name, node, _) | Rename(_, _, _, name, node):
                names[node] = name
            case _:
                pass
    lines = []
    for part, version in choice.items():
        match part:
            case Entry(at):
                lines.append(f"{'' if version else 'not '}there: {recording.events[at]}")
            case Size(node):
                lines.append(f"size of {names.get(node, node)}: version {version}")
            case Page(node, number):
                lines.append(f"page {number} of {names.get(node, node)}: version {version}")
    return lines


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """Yield a new directory, in memory where possible: a state has dozens of files, and thousands of syncs are made."""
    memory = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(prefix="torture-", dir=memory if os.access(memory, os.W_OK) else None))
    try:
        yield path
    finally:
        shutil.rmtree(path)
