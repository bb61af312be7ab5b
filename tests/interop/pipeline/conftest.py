"""All tests in this folder need Spark."""

from __future__ import annotations

import pytest

from tests.support.interop import require_or_skip
from tests.support.spark.session import missing_for_spark


@pytest.fixture(scope="session", autouse=True)
def _needs_spark() -> None:
    missing = missing_for_spark()
    if missing is not None:
        require_or_skip(missing)
