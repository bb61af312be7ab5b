"""A bench with one log's directory; see tests/support/storage/bench.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.storage.bench import LogBench


@pytest.fixture
def bench(tmp_path: Path) -> LogBench:
    return LogBench(tmp_path)
