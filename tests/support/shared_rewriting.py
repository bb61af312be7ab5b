"""Collection that shares the work of rewriting assertions between xdist's workers.

Each worker imports all test modules, and pytest rewrites the assertions of each: most of the CPU of a collection,
unless their bytecode is kept. Every second worker collects from the end of the tree, and the workers find what another
has written. Then all of them put the tests in the same order.
"""

from __future__ import annotations

import sys
from collections.abc import Generator

import pytest


class SharedRewriting:
    """A plugin for one of xdist's workers."""

    def __init__(self, number: int) -> None:
        self._is_reversed = number % 2 == 1
        # PYTHONDONTWRITEBYTECODE, as set in many containers, would let each worker rewrite everything in each run.
        sys.dont_write_bytecode = False

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Turn the order of a folder's files."""
        report = yield
        if self._is_reversed and isinstance(collector, pytest.Directory):
            report.result.reverse()
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Sort by file, before other plugins order the tests; tests of one file keep their order."""
        items.sort(key=lambda item: item.path.parts)
