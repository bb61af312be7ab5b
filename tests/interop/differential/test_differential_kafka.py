"""A few scripts on Apache Kafka and Barnabas: `python -m tests.interop.differential` runs many."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.interop.differential.drawing import ScriptDrawer
from tests.interop.differential.running import running_pair

pytestmark = pytest.mark.timeout(300)  # a JVM starts, on machines of any speed
SEEDS = range(1, 13)
SEEDS_WITH_RESTARTS = (3001, 3002)


def test_both_brokers_answer_and_store_the_same(tmp_path: Path) -> None:
    now = int(time.time()) * 1000
    with running_pair(tmp_path) as pair:
        scripts = [ScriptDrawer(seed, now).script() for seed in SEEDS]
        scripts += [ScriptDrawer(seed, now, restarts=1).script() for seed in SEEDS_WITH_RESTARTS]
        for script in scripts:
            found = pair.run(script)
            assert found is None, f"{found}\n--now {now}\n{pair.logs()}"
        assert pair.end() == []
