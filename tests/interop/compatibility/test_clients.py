"""The matrix of docs/compatibility.md: every feature with each of Kafka's unpatched clients.

With BARNABAS_COMPATIBILITY_BROKER=kafka:4.3.0 the clients run against Apache Kafka instead, which checks the tests: a
feature that fails there is a wrong test. BARNABAS_COMPATIBILITY_RESULT=FILE writes the results to a file. For
BARNABAS_COMPATIBILITY_RECORD=DIRECTORY see clients/recording.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.interop.clients.all_features import ALL_FEATURES
from tests.interop.clients.driver import Driver, Unsupported
from tests.interop.clients.features import Feature, Trial
from tests.interop.clients.group_features import GROUP_FEATURES
from tests.interop.clients.programs import CLIENTS, KNOWN_GAPS, Client
from tests.interop.clients.recording import RecordingProxy
from tests.interop.clients.result import RESULT_VARIABLE, Matrix
from tests.interop.clients.target import Target


@pytest.fixture(scope="module")
def matrix(target: Target) -> Iterator[Matrix]:
    matrix = Matrix(target)
    yield matrix
    if path := os.environ.get(RESULT_VARIABLE):
        matrix.write(Path(path))


@pytest.fixture(scope="module")
def driver_of(
    target: Target, proxy: RecordingProxy | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Client], Driver]]:
    running: dict[str, Driver] = {}

    def start(client: Client) -> Driver:
        if client.name not in running:
            for driver in running.values():  # one driver at a time: a closed JVM frees its memory
                driver.close()
            running.clear()
            command = client.command()
            running[client.name] = Driver(command, tmp_path_factory.mktemp("driver"), client.limits)
        driver = running[client.name]
        if proxy is not None:
            proxy.client = client.name
        driver.bootstrap = target.bootstrap
        return driver

    yield start
    for driver in running.values():
        driver.close()


@pytest.mark.parametrize("feature", ALL_FEATURES, ids=lambda feature: feature.name)
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_that_we_did_not_write_works_unchanged(
    client: Client,
    feature: Feature,
    target: Target,
    matrix: Matrix,
    driver_of: Callable[[Client], Driver],
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    def start() -> Driver:
        another = Driver(client.command(), tmp_path_factory.mktemp("driver"), client.limits)
        another.bootstrap = target.bootstrap
        return another

    driver = driver_of(client)
    matrix.add_client(client.name, driver.version())
    gap = KNOWN_GAPS.get((client.name, feature.name))
    if gap is not None and target.name == "Barnabas":
        request.node.add_marker(pytest.mark.xfail(reason=gap, strict=True))
    topic = f"{re.sub('[^a-z0-9]', '', client.name.lower())}-{feature.name}"
    tries = client.limits.tries_in_a_group if feature in GROUP_FEATURES else 1
    try:
        with matrix.outcome_of(client.name, feature):
            for number in range(1, tries):
                with suppress(AssertionError):
                    feature.check(Trial(driver, target, f"{topic}-{number}", client.member, start))
                    return
            feature.check(Trial(driver, target, topic, client.member, start))
    except Unsupported as reason:
        pytest.skip(f"not supported by {client.name}: {reason}")
