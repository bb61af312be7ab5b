"""The short form of the crash-state explorer: a sample of the states of each workload, always the same.

`make torture` explores more. A failure names its state, which `python -m tests.torture --replay NAME` builds again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.torture.crash_states.explorer import Explorer, pick, record, scratch_directory, states_named
from tests.torture.crash_states.mutations import MUTATIONS
from tests.torture.crash_states.workloads import WORKLOADS

SEED = 1
STATES = 13
MUTATION_STATES = 400
QUICK_MUTATIONS = (
    "small files are renamed before their content is synced",
    "metadata changes are not synced",
    "recovery points are written before the data",
)


@pytest.fixture
def scratch() -> Iterator[Path]:
    with scratch_directory() as path:
        yield path


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_start_after_a_power_cut_keeps_what_was_promised(workload: str, scratch: Path) -> None:
    recording = record(workload, SEED, scratch)
    explorer = Explorer(scratch)

    failures = [
        str(failure)
        for state in states_named(recording, pick(recording, STATES, SEED))
        if (failure := explorer.explore(state, recording)) is not None
    ]

    assert not failures, "\n".join(failures[:3])
    assert explorer.states > STATES // 3


def test_a_recording_is_repeated_exactly(scratch: Path) -> None:
    assert record("topics", SEED, scratch) == record("topics", SEED, scratch)


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_in_the_code_is_found(name: str, scratch: Path) -> None:
    if name not in QUICK_MUTATIONS and "BARNABAS_TORTURE" not in os.environ:
        pytest.skip("part of `make torture`")
    mutation = MUTATIONS[name]
    explorer = Explorer(scratch)

    with mutation.applied():
        recording = record(mutation.workload, SEED, scratch)
        states = states_named(recording, pick(recording, MUTATION_STATES, SEED, family=mutation.family))
        found = next((failure for state in states if (failure := explorer.explore(state, recording))), None)

    assert found is not None, f"{explorer.states} states of {mutation.workload} show nothing"
