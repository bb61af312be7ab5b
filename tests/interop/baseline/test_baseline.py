"""The baseline (tools/baseline) and this tree open each other's directories, and say the same about them.

One of them writes a workload and is killed, loses power or stops. It opens a copy and is asked for everything
(`described`); the other one opens another copy and must say the same, and so must the first one after that (the way
back). Both verify what the other has left. `make test-baseline` builds the baseline and runs these tests.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.clients.testing import BrokerProcess
from barnabas.protocol.records.batch import iter_batches
from tests.interop.baseline.described import Description, describe, differences
from tests.interop.baseline.mixed_traffic import OPEN, write
from tests.support.daemon import REPOSITORY
from tests.support.interop import is_required
from tests.torture.crash_states.workloads import WORKLOADS

pytestmark = pytest.mark.timeout(600)
SEED = int(os.environ.get("BARNABAS_FUZZ_SEED", "3"))
MIXED_SECONDS = 8.0
NEVER = 2**31 - 1
BASELINE = REPOSITORY / "build" / "baseline"
NOT_IN_HISTORY = 3
"""Exit code of tools/baseline: what has only the newest commits cannot build an old one."""


class Program(NamedTuple):
    """One of the two: its interpreter, and the folder with its `tests`."""

    name: str
    python: str
    home: Path

    @property
    def environ(self) -> dict[str, str]:
        """What its `barnabas` and its `tests` are imported by."""
        return {"PYTHONPATH": str(self.home)}


OLD = Program("baseline", str(BASELINE / "venv" / "bin" / "python"), BASELINE)
NEW = Program("this tree", sys.executable, REPOSITORY)
BOTH_WAYS = pytest.mark.parametrize(
    ("writer", "other"), [pytest.param(OLD, NEW, id="baseline-writes"), pytest.param(NEW, OLD, id="tree-writes")]
)


class Broker(BrokerProcess):
    """A broker of either program on two log directories below `root`."""

    def __init__(self, program: Program, root: Path, scratch: Path, **settings: object) -> None:
        kept = {
            "log.dirs": f"{root}/one,{root}/two",
            "log.cleaner.enable": "false",
            "metadata.max.retention.bytes": 1,
            "share.coordinator.snapshot.update.records.per.snapshot": 3,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            # The workloads' clock is that of another year: nothing goes because of its age.
            "offsets.retention.minutes": NEVER,
            "transactional.id.expiration.ms": NEVER,
            "producer.id.expiration.ms": NEVER,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": NEVER,
            **settings,
        }
        super().__init__(scratch, kept, program.environ)
        self._python = program.python

    def command(self) -> list[str]:
        return [self._python, *super().command()[1:]]


@pytest.fixture(scope="module", autouse=True)
def _baseline() -> None:
    built = [str(REPOSITORY / "tools" / "baseline"), *([] if is_required() else ["--built"])]
    done = subprocess.run(
        built, env={**os.environ, "PYTHON": sys.executable}, capture_output=True, text=True, check=False
    )
    if done.returncode == NOT_IN_HISTORY or (done.returncode and not is_required()):
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr


def run(program: Program, *arguments: str, may_fail: bool = False) -> str:
    """Run an interpreter; return its output."""
    environ = {**{name: each for name, each in os.environ.items() if name[:9] != "BARNABAS_"}, **program.environ}
    # -P: neither this folder nor that of a script is searched for modules.
    command = [program.python, "-P", *arguments]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert may_fail or done.returncode == 0, f"{program.name}, {' '.join(arguments)}: {done.stdout}{done.stderr}"
    return done.stdout


def said_by(program: Program, root: Path, scratch: Path) -> Description:
    """Open a directory, ask for everything, and stop."""
    with Broker(program, root, scratch) as broker:
        found = describe(broker)
        assert broker.stop() == 0, broker.log_tail()
    return found


def ensure_verified(program: Program, root: Path) -> None:
    """Verify all files. A producer snapshot that a power cut has torn is no finding: it is recognized and not used."""
    found = run(program, "-m", "barnabas", "log", "verify", "--json", f"{root}/one", f"{root}/two", may_fail=True)
    *findings, summary = found.splitlines()
    assert '"summary"' in summary, found
    findings = [line for line in findings if '"finding"' in line and '.snapshot"' not in line]
    assert not findings, f"{program.name}: {findings}"


def exchange(
    writer: Program,
    other: Program,
    root: Path,
    scratch: Path,
    *,
    ages: bool = True,
    between: Callable[[], object] = int,
) -> Description:
    """Let the writer open a copy, the other one the original, and the writer that again; return what they all say.

    `ages`: whether the workload's clock is the machine's. What is known of an old producer goes at the start after a
    clean stop, as in Kafka. `between` is called before the other one opens the directory.
    """
    first = said_by(writer, shutil.copytree(root, scratch / "copy"), scratch / "first")
    between()
    second = said_by(other, root, scratch / "second")
    assert not (found := differences(first, second)), f"{writer.name}, and {other.name} after it: " + "\n".join(found)
    ensure_verified(other, root)
    ensure_verified(writer, root)
    third = said_by(writer, root, scratch / "third")
    if not ages:
        second, third = ({at: said for at, said in each.items() if at[0] != "producers"} for each in (second, third))
    assert not (found := differences(second, third)), f"{other.name}, and {writer.name} back: " + "\n".join(found)
    ensure_verified(other, root)
    return first


def leave(writer: Program, workload: str, scratch: Path) -> Path:
    """Let a program run a workload of the crash explorer; return the folder with what is left."""
    states = scratch / "states"
    states.mkdir()
    run(writer, str(Path(__file__).with_name("leave_states.py")), workload, str(SEED), str(states))
    return states


@BOTH_WAYS
@pytest.mark.parametrize("workload", WORKLOADS)
def test_what_a_workload_leaves_is_the_same_to_the_other_program(
    workload: str, writer: Program, other: Program, tmp_path: Path
) -> None:
    states = leave(writer, workload, tmp_path)

    for how in ("killed", "power-cut"):
        (tmp_path / how).mkdir()
        exchange(writer, other, states / how, tmp_path / how, ages=False)


@pytest.mark.parametrize(
    ("workload", "log", "said"),
    [
        ("append_and_roll", "orders-0", "batch orders 0"),
        ("group_offsets", "__consumer_offsets-0", "offsets of group"),
        ("topics", "__cluster_metadata-0", "topic"),
    ],
)
def test_a_lost_batch_is_found(workload: str, log: str, said: str, tmp_path: Path) -> None:
    root = leave(OLD, workload, tmp_path) / "killed"

    with pytest.raises(AssertionError, match=said):
        exchange(OLD, NEW, root, tmp_path, between=lambda: lose_last_batch(root, log))


def lose_last_batch(root: Path, log: str) -> None:
    """Cut the last batch off a log."""
    segment = max(path for path in root.glob(f"*/{log}/*.log") if path.stat().st_size)
    os.truncate(segment, list(iter_batches(segment.read_bytes()))[-1].position)


@BOTH_WAYS
@pytest.mark.parametrize("how", ["killed", "stopped"])
async def test_what_mixed_traffic_leaves_is_the_same_to_the_other_program(
    how: str, writer: Program, other: Program, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()

    def start(settings: Mapping[str, object]) -> Broker:
        broker = Broker(writer, root, tmp_path / "writer", **settings)
        broker.start()
        return broker

    await write(start, root, SEED, MIXED_SECONDS, is_killed=how == "killed")
    found = await asyncio.to_thread(exchange, writer, other, root, tmp_path)

    assert {kind for _, kind, _ in found["groups",]} >= {"classic", "consumer", "share", "streams"}, found["groups",]
    assert "Ongoing" in repr(found["transaction", OPEN])
    assert all("alice" in repr(found[each,]) for each in ("users", "ACLs", "quotas"))
    assert found["configs", 4, ""][1]["message.max.bytes"] == "2000000"
    assert {said[0] for place, said in found.items() if place[0] == "log"} == {"one", "two"}
    assert list(root.glob("*/__cluster_metadata-0/*.checkpoint")), "no snapshot"
