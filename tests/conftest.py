"""Settings that must be in effect before any test module is imported."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# The same Hypothesis examples in every run: by default they would be random here and fixed in CI, so a change could
# fail on examples that its author has not run. `--hypothesis-profile=searching` looks for new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("searching", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("repeatable")

# Background jobs of a shell ignore SIGINT, and a test's child processes, some of which tests interrupt, would inherit
# that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Record the outcomes of the ecosystem's tests if a file for them is named; share the work of collection."""
    if path := os.environ.get("BARNABAS_ECOSYSTEM_RESULT"):
        from tests.support.ecosystem.recording import Recorder

        config.pluginmanager.register(Recorder(Path(path).resolve()))
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        from tests.support.shared_rewriting import SharedRewriting

        config.pluginmanager.register(SharedRewriting(int(worker.removeprefix("gw"))))


def pytest_collection_finish() -> None:
    """Leave what collection has loaded out of garbage collections, which some tests ask for again and again."""
    gc.collect()
    gc.freeze()


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Fail a test that leaves a signal ignored: programs that later tests start, Apache Kafka for one, inherit that."""
    ignored = [number for number in (signal.SIGTERM, signal.SIGINT) if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)
    assert not ignored, f"{item.name} left {ignored} ignored"


# .ci/run names one xdist worker in which the event loops of tests and daemons run in asyncio's debug mode.
if os.environ.get("PYTEST_XDIST_WORKER") == os.environ.get("ASYNCIO_DEBUG_WORKER", ""):
    os.environ["PYTHONASYNCIODEBUG"] = "1"

# Several test modules use its assertions, and any of them may be collected first.
pytest.register_assert_rewrite("tests.interop.clients.features")
