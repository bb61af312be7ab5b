"""The C programs of the benchmarks, compiled once for all tests of this folder."""

from __future__ import annotations

import pytest

from benchmarks.runs.programs import Programs


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(tmp_path_factory.mktemp("bin"))
