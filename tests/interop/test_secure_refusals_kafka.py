"""Failed logins and handshakes: Java and librdkafka report the same at Apache Kafka and at Barnabas.

Only the numbers of TLS alerts differ: OpenSSL's are more specific than Java's. An expired certificate is alert 45
instead of 46, a missing one 116 (TLS 1.3's certificate_required) instead of 42.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.interop.clients import building
from tests.interop.clients.driver import Driver, DriverError, Limits
from tests.interop.clients.security import REFUSALS, Development, SecureBroker, secure_barnabas, secure_kafka

pytestmark = pytest.mark.timeout(300)

CLIENTS: dict[str, Callable[[], list[str]]] = {
    "Java 4.3.0": lambda: building.java("4.3.0", "Secure"),
    "confluent-kafka": lambda: [sys.executable, "-m", "tests.interop.clients.python.secure", "confluent"],
}
WITHOUT_TOKENS = tuple(name for name in REFUSALS if name != "expired token")


_VARIABLE = re.compile(r":\d+/\w+|after \d+ms in state \w+")
_TLS = re.compile(r"^(?:_SSL|_TRANSPORT): .*(certificate verify failed| alert ).*")


def essence(error: DriverError) -> str:
    """Return the first line of an error without numbers, and of librdkafka's TLS errors only the kind.

    Code and text of those depend on whether librdkafka notices in its handshake or at its first request.
    """
    first = str(error).partition("\n")[0]
    return _TLS.sub(r"\1", _VARIABLE.sub("", first))


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


@pytest.mark.parametrize("name", WITHOUT_TOKENS)
def test_the_error_is_the_one_with_kafka(
    driver: Driver, brokers: tuple[SecureBroker, SecureBroker], development: Development, name: str
) -> None:
    refusal = REFUSALS[name]
    errors = []
    for broker in brokers:
        with pytest.raises(DriverError) as caught:
            broker.attempt(driver, refusal.listener, refusal.login(development), "refused")
        errors.append(essence(caught.value))
    assert errors[1] == errors[0]
