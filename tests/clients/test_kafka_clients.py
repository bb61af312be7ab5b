"""A smoke test for each of Kafka's Python clients, unchanged; `make interop` tries them all for everything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.clients.driver import Driver
from tests.interop.clients.features import FEATURES, Trial
from tests.interop.clients.programs import CLIENTS, Client
from tests.interop.clients.target import Target, running_barnabas

SMOKE = ("create-topic", "codec-zstd", "idempotent", "over-the-limit", "by-time")
PYTHON_CLIENTS = tuple(client for client in CLIENTS if client.name in ("confluent-kafka", "kafka-python", "aiokafka"))


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with running_barnabas(tmp_path_factory.mktemp("barnabas")) as running:
        yield running


@pytest.mark.parametrize("client", PYTHON_CLIENTS, ids=lambda client: client.name)
def test_a_client_writes_reads_and_is_refused_as_at_kafka(
    client: Client, target: Target, tmp_path_factory: pytest.TempPathFactory
) -> None:
    driver = Driver(client.command(), tmp_path_factory.mktemp("driver"), client.limits)
    driver.bootstrap = target.bootstrap
    try:
        for feature in FEATURES:
            if feature.name in SMOKE:
                feature.check(Trial(driver, target, f"{client.name}-{feature.name}"))
    finally:
        driver.close()
