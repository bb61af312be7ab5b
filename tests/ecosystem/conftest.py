"""Marks all tests below this folder as ecosystem: `make test` and `make interop` skip them, `make ecosystem` runs them.

Each test has the marker with arguments as well, for its row on docs/ecosystem.md: software, version, what was run, and
a sentence about what has to be set, if anything. The first run fetches and compiles software for minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, start_daemon

HERE = Path(__file__).parent
TIMEOUT_S = 1800


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.ecosystem)
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """Run a broker with default settings."""
    with start_daemon(tmp_path / "broker") as running:
        yield running
