"""One Spark session for all tests in this folder, and a broker per file.

`local[2,3]`: two tasks at a time, each tried three times (plain `local[2]` never retries, a cluster does).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.daemon import Daemon, start_daemon
from tests.support.spark.session import missing_for_spark, running_spark

HERE = Path(__file__).parent

TIMEOUT_S = 300
"""The first test of a session waits for the JVM, which is slow on a busy machine until its code is compiled."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test here `spark`; skip it with a reason where Spark cannot run."""
    missing = missing_for_spark()
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))
            if missing is not None:
                item.add_marker(pytest.mark.skip(reason=missing))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Return the session."""
    with running_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Start a broker for the tests of one file; each test creates its own topics."""
    with start_daemon(tmp_path_factory.mktemp("broker")) as running:
        yield running
