"""The short form of the soak: two rounds of load with kills, stalls and, for root, a full disk. `make soak` runs hours.

A failure is tried again with `python -m tests.torture.soak --seed`; the timing of the machine is not repeated.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.daemon import with_fault
from tests.torture.soak.faults import CUT, KILL, MIRROR
from tests.torture.soak.mutations import MUTATIONS
from tests.torture.soak.running import Plan, soak

pytestmark = pytest.mark.slow

SEED = 95
"""Draws every kind of fault that can end in a wrong answer within 12 s: kill, stall, full, cut, mirror."""


async def test_mixed_load_with_faults_has_no_anomaly() -> None:
    outcome = await soak(Plan(12, SEED, round_seconds=6, mean_pause=1.5))

    assert not outcome.anomalies, outcome.anomalies[:10]
    assert not outcome.rising, outcome.trends
    assert all(outcome.totals[f"faults: {each}"] for each in (KILL, CUT, MIRROR)), outcome.totals
    kinds = (
        "acknowledged records",
        "records read",
        "committed transactions",
        "aborted transactions",
        "transactions timed out",
        "offset commits",
        "share acknowledgements",
        "deleted groups",
        "promoted topics",
    )
    assert all(outcome.totals[each] for each in kinds), outcome.totals


@pytest.mark.parametrize("name", MUTATIONS)
async def test_a_fault_in_the_code_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "BARNABAS_TORTURE" not in os.environ:
        pytest.skip("part of `make torture`")
    monkeypatch.delenv("BARNABAS_TORTURE")  # a broker takes it for a property
    mutation = MUTATIONS[name]
    environ = {**with_fault(tmp_path, mutation.code), **mutation.environ}
    environs = (None, environ) if mutation.is_of_mirror else (environ, None)

    outcome = await soak(Plan(12, SEED, 6, mutation.mean_pause, mutation.faults, *environs))

    assert mutation.found <= {*(each.kind for each in outcome.anomalies), *outcome.rising}, outcome
