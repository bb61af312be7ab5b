"""The short form of the soak: two rounds of load with kills, stalls and, for root, a full disk. `make soak` runs hours.

A failure is tried again with `python -m tests.torture.soak --seed`; the timing of the machine is not repeated.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.daemon import with_fault
from tests.torture.soak.faults import KILL
from tests.torture.soak.mutations import MUTATIONS
from tests.torture.soak.running import Plan, soak

pytestmark = pytest.mark.slow


async def test_mixed_load_with_faults_has_no_anomaly() -> None:
    outcome = await soak(Plan(seconds=12, seed=3, round_seconds=6, mean_pause=2))

    assert not outcome.anomalies, outcome.anomalies[:10]
    assert not outcome.rising, outcome.trends
    assert outcome.totals[f"faults: {KILL}"] > 0
    kinds = ("acknowledged records", "records read", "committed transactions", "aborted transactions", "offset commits")
    assert all(outcome.totals[each] for each in kinds), outcome.totals


@pytest.mark.parametrize("name", MUTATIONS)
async def test_a_fault_in_the_code_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "BARNABAS_TORTURE" not in os.environ:
        pytest.skip("part of `make torture`")
    monkeypatch.delenv("BARNABAS_TORTURE")  # a broker takes it for a property
    mutation = MUTATIONS[name]
    environ = with_fault(tmp_path, mutation.code)

    outcome = await soak(Plan(seconds=12, seed=3, round_seconds=6, mean_pause=mutation.mean_pause, environ=environ))

    assert mutation.found <= {*(each.kind for each in outcome.anomalies), *outcome.rising}, outcome
