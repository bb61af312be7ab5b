"""Fixtures for tests whose files must be on a disk: `make test` puts pytest's own directories into memory.

In memory the kernel does not say whether a page is cached, so the broker reads records, and sends them, in another way.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


class DiskPaths:
    """What these tests use of pytest's factory of temporary directories."""

    def __init__(self, base: Path) -> None:
        self._base = base

    def mktemp(self, basename: str) -> Path:
        """Create a directory whose name begins with `basename`."""
        return Path(tempfile.mkdtemp(prefix=f"{basename}-", dir=self._base))


@pytest.fixture(scope="session")
def tmp_path_factory() -> Iterator[DiskPaths]:
    with tempfile.TemporaryDirectory(prefix="barnabas-tests-") as base:
        yield DiskPaths(Path(base))


@pytest.fixture
def tmp_path(tmp_path_factory: DiskPaths, request: pytest.FixtureRequest) -> Path:
    return tmp_path_factory.mktemp(request.node.name[:30].replace("/", "_"))
