"""A bench with one log's directory; see tests/support/storage/bench.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.broker.storage.kernels import kernel
from tests.support.storage.bench import LogBench


@pytest.fixture
def python_appends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let logs that are opened from now on append without the compiled kernel, whose writes Python cannot intercept."""
    monkeypatch.setattr(kernel, "_append_kernel", None)


@pytest.fixture
def bench(tmp_path: Path) -> LogBench:
    return LogBench(tmp_path)
