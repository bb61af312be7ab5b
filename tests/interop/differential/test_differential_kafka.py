"""A few scripts on Apache Kafka and Barnabas: `python -m tests.interop.differential` runs many."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.interop.differential import steps
from tests.interop.differential.drawing import CLEANER, CODECS, LAGS, SESSIONS, TRANSACTIONS, ScriptDrawer
from tests.interop.differential.running import running_pair

pytestmark = pytest.mark.timeout(300)  # a JVM starts, on machines of any speed
SEEDS = range(1, 13)
SEEDS_WITH_SESSIONS = (4001, 4002)
SEEDS_WITH_CODECS = (5001, 5002)
SEEDS_WITH_CLEANER: Mapping[int, Sequence[str]] = {
    6001: (),
    6151: (TRANSACTIONS, LAGS),
    6191: (TRANSACTIONS, CODECS),
}
"""With what else."""
SEEDS_WITH_RESTARTS = (3001, 3002)


def test_both_brokers_answer_and_store_the_same(tmp_path: Path) -> None:
    now = int(time.time()) * 1000
    scripts = [ScriptDrawer(seed, now).script() for seed in SEEDS]
    scripts += [ScriptDrawer(seed, now, extras=(SESSIONS,)).script() for seed in SEEDS_WITH_SESSIONS]
    scripts += [ScriptDrawer(seed, now, extras=(CODECS,)).script() for seed in SEEDS_WITH_CODECS]
    scripts += [ScriptDrawer(seed, now, restarts=1).script() for seed in SEEDS_WITH_RESTARTS]
    _run(tmp_path, scripts, now, cleans=False)


def test_both_cleaners_leave_the_same(tmp_path: Path) -> None:
    now = int(time.time()) * 1000
    scripts = [ScriptDrawer(seed, now, extras=(CLEANER, *more)).script() for seed, more in SEEDS_WITH_CLEANER.items()]
    _run(tmp_path, scripts, now, cleans=True)


def _run(directory: Path, scripts: Iterable[steps.Script], now: int, *, cleans: bool) -> None:
    with running_pair(directory, cleans=cleans) as pair:
        for script in scripts:
            found = pair.run(script)
            assert found is None, f"{found}\n--now {now}\n{pair.logs()}"
        assert pair.end() == []
