"""Marks all tests below this folder as interop: `make test` skips them, `make interop` runs them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.clients.recording import RecordingProxy
from tests.interop.clients.result import RESULT_VARIABLE, add_tools
from tests.interop.clients.target import Target, running_barnabas, running_kafka
from tests.support import interop
from tests.support.kafka.apache_kafka import Kafka

HERE = Path(__file__).parent
BROKER_VARIABLE = "BARNABAS_COMPATIBILITY_BROKER"
RECORD_VARIABLE = "BARNABAS_COMPATIBILITY_RECORD"
TOOLS_VERSION = "4.3.0"

LONGEST = (
    "test_containers.py",
    "test_baseline.py",
    "test_pipeline_kafka_target.py",
    "test_clients.py",
    "test_kafka_admin_tools.py",
    "test_kafka_opens_our_directory.py",
    "test_pipeline_kills.py",
    "test_turns.py",
    "test_pipeline_cluster.py",
    "test_pipeline_demo.py",
    "test_pipeline_transactions.py",
    "test_security_kafka.py",
    "test_kafka_metadata_kept.py",
)
"""Files of several minutes."""

Tool = Callable[..., str]
"""Runs one of Kafka's tools, a class below org.apache.kafka.tools, with arguments; returns its output."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark by folder, because one forgotten marker would add minutes of Java to `make test`; put long files first.

    A worker gets whole files: with the longest ones at the end, one worker would wait for the other.
    """
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.interop)
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(LONGEST)))


@pytest.fixture
def require_or_skip() -> Callable[[str], None]:
    """Return `tests.support.interop.require_or_skip`, which takes a description of the missing software."""
    return interop.require_or_skip


@pytest.fixture(scope="module")
def proxy(request: pytest.FixtureRequest) -> Iterator[RecordingProxy | None]:
    """Put a proxy between clients and broker if BARNABAS_COMPATIBILITY_RECORD names a directory for their requests."""
    directory = os.environ.get(RECORD_VARIABLE)
    if directory is None:
        yield None
        return
    recording = RecordingProxy()
    recording.client = request.module.__name__.rpartition(".")[2]
    yield recording
    recording.write(Path(directory))


@pytest.fixture(scope="module")
def target(proxy: RecordingProxy | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Run the broker under test: Barnabas, or the one in BARNABAS_COMPATIBILITY_BROKER."""
    broker, _, version = os.environ.get(BROKER_VARIABLE, "barnabas").partition(":")
    directory = tmp_path_factory.mktemp(broker)
    is_kafka = broker == "kafka"
    with running_kafka(version, directory, proxy) if is_kafka else running_barnabas(directory, proxy) as running:
        yield running


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[str, str]]:
    """Collect "yes" or "no" for each of Kafka's tools."""
    found: dict[str, str] = {}
    yield found
    if path := os.environ.get(RESULT_VARIABLE):
        add_tools(Path(path), TOOLS_VERSION, found)


@pytest.fixture
def tool(request: pytest.FixtureRequest, tmp_path: Path, outcomes: dict[str, str]) -> Iterator[Tool]:
    """Return a Tool; the outcome of the test counts for the first tool that it runs."""
    kafka = Kafka(TOOLS_VERSION, tmp_path / "unused", tmp_path)
    used: list[str] = []

    def run(name: str, *arguments: str, stdin: str = "") -> str:
        used.append(name.rpartition(".")[2])
        return kafka.tool(f"org.apache.kafka.tools.{name}", *arguments, stdin=stdin)

    failures = request.session.testsfailed
    yield run
    if used:
        failed = request.session.testsfailed > failures or outcomes.get(used[0]) == "no"
        outcomes[used[0]] = "no" if failed else "yes"
