"""Everything below this folder is interop: `make test` leaves it out, `make interop` runs it, whether marked or not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import interop

HERE = Path(__file__).parent

pytest.register_assert_rewrite("tests.interop.clients.features")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark by place: a forgotten marker would put minutes of Java into `make test`."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.interop)


@pytest.fixture
def require_or_skip() -> Callable[[str], None]:
    """`tests.support.interop.require_or_skip`: call it with what is missing."""
    return interop.require_or_skip
