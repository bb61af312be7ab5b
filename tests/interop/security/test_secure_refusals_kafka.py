"""Failed logins and handshakes: clients report the same at Apache Kafka and at Barnabas.

Only the numbers of TLS alerts differ: OpenSSL's are more specific than Java's. An expired certificate is alert 45
instead of 46, a missing one 116 (TLS 1.3's certificate_required) instead of 42.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.interop.clients import building
from tests.interop.clients.driver import Driver, DriverError, Limits, Unsupported
from tests.interop.clients.errors import essence
from tests.interop.clients.security import REFUSALS, SECURE, Development, SecureBroker, secure_barnabas, secure_kafka

pytestmark = pytest.mark.timeout(300)

CLIENTS: dict[str, Callable[[], list[str]]] = {
    "Java 4.3.0": lambda: building.java("4.3.0", "Secure"),
    "confluent-kafka": lambda: [sys.executable, "-m", "tests.interop.clients.python.secure", "confluent"],
    "sarama": lambda: building.go("sarama"),
    "kcat": building.kcat_secure,
}


@pytest.fixture(scope="module")
def development(tmp_path_factory: pytest.TempPathFactory) -> Development:
    return Development(tmp_path_factory.mktemp("development"))


@pytest.fixture(scope="module")
def brokers(
    development: Development, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SecureBroker, SecureBroker]]:
    """Apache Kafka and Barnabas, with the same files and users."""
    with ExitStack() as stack:
        theirs = stack.enter_context(secure_kafka(development, tmp_path_factory.mktemp("kafka")))
        yield theirs, stack.enter_context(secure_barnabas(development, tmp_path_factory.mktemp("barnabas")))


@pytest.fixture(scope="module", params=CLIENTS)
def driver(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    driver = Driver(CLIENTS[request.param](), tmp_path_factory.mktemp("driver"), Limits())
    yield driver
    driver.close()


@pytest.mark.parametrize("name", REFUSALS)
def test_the_error_is_the_one_with_kafka(
    driver: Driver, brokers: tuple[SecureBroker, SecureBroker], development: Development, name: str
) -> None:
    refusal = REFUSALS[name]
    errors = []
    for broker in brokers:
        try:
            with pytest.raises(DriverError) as caught:
                broker.attempt(driver, refusal.listener, refusal.login(development), "refused")
        except Unsupported as reason:
            pytest.skip(f"not supported: {reason}")
        errors.append(essence(caught.value))
    assert errors[1] == errors[0]


def test_kcats_scram_login_ends_as_with_kafka(
    brokers: tuple[SecureBroker, SecureBroker], development: Development, tmp_path: Path
) -> None:
    """librdkafka before 2.6.1 repeats its nonce in the last message; Kafka 4 refuses it although the password fits."""
    driver = Driver(building.kcat_secure(), tmp_path, Limits())
    outcomes: list[object] = []
    try:
        for broker in brokers:
            try:
                outcomes.append(broker.attempt(driver, SECURE, development.scram(), "by-kcat"))
            except DriverError as error:
                outcomes.append(essence(error))
    finally:
        driver.close()
    assert outcomes[1] == outcomes[0]
