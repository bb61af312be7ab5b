"""The short form of the faults: a few of the calls. `make torture` lets every call go wrong in every way.

A failure names its fault, which `python -m tests.torture --fault NAME` repeats.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.storage.kernels.kernel import append_commit
from tests.support.daemon import REPOSITORY
from tests.support.faults.failing_writes import FailingWrites
from tests.torture.crash_states.explorer import scratch_directory
from tests.torture.faulty_calls.injection import KINDS, parse_fault
from tests.torture.faulty_calls.mutations import CALL_MUTATIONS
from tests.torture.faulty_calls.running import all_outcomes, run_with
from tests.torture.faulty_calls.scenarios import SCENARIOS
from tests.torture.faulty_calls.stalls import run_with_hanging_disk

QUICK = (
    *("appends/two/3/EIO", "appends/two/30/EIO", "appends/two/63/ENOSPC", "appends/two/9/short+ENOSPC"),
    *("retention/two/38/ENOSPC", "compaction/two/20/EIO"),
    *("move/two/29/ENOSPC", "move/two/79/ENOSPC", "move/two/3/EMFILE"),
    *("start/two/0/short", "start/two/0/wrong", "start/one/0/wrong"),
)


@pytest.fixture
def scratch() -> Iterator[Path]:
    with scratch_directory() as path:
        yield path


@pytest.mark.parametrize("fault", QUICK)
def test_a_fault_takes_its_directory_offline_at_most_and_loses_nothing(fault: str, scratch: Path) -> None:
    outcome = run_with(parse_fault(fault), scratch)

    assert outcome.failed is not None
    assert not outcome.complaints, outcome


def test_a_disk_that_hangs_delays_only_what_waits_for_it(scratch: Path) -> None:
    assert not run_with_hanging_disk("two", scratch)


@pytest.mark.timeout(330)
def test_writes_of_the_compiled_append_may_go_wrong(tmp_path: Path) -> None:
    if append_commit is None:
        pytest.skip("the compiled kernels are not built, or not used")
    environ = {**FailingWrites(tmp_path).environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "tests.torture.faulty_calls.compiled_appends", str(tmp_path)]

    found = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300, check=False)

    assert found.returncode == 0, found.stdout + found.stderr[-2000:]
    assert int(found.stdout.split()[0]) > 100, found.stdout


@pytest.mark.parametrize("name", CALL_MUTATIONS)
def test_a_fault_in_the_code_is_found(name: str, scratch: Path) -> None:
    assert CALL_MUTATIONS[name].complaints(scratch)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_call_may_go_wrong(scenario: str, scratch: Path) -> None:
    if "BARNABAS_TORTURE" not in os.environ:
        pytest.skip("part of `make torture`")
    kinds = set()
    for fault, outcome in all_outcomes(scenario, scratch):
        kinds.add(fault.kind)
        assert not outcome.complaints, (str(fault), outcome)
    assert kinds >= set(KINDS) - {"wrong"}
