"""Unpatched clients of a broker whose every listener authenticates: what works, and each client's own refusals."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from tests.interop.clients import building
from tests.interop.clients.driver import Driver, DriverError, Limits, Unsupported
from tests.interop.clients.security import (
    MUTUAL,
    REFUSALS,
    SECURE,
    TIMEOUT_MS,
    Development,
    Login,
    SecureBroker,
    secure_barnabas,
)

pytestmark = pytest.mark.timeout(300)


@dataclass(frozen=True)
class SecureClient:
    """A client, and the patterns of its errors."""

    name: str
    command: Callable[[], list[str]]
    refused: str
    """A user or password that the broker refuses."""
    refused_token: str
    """An OAUTHBEARER token that the broker refuses."""
    untrusted: str
    """A certificate of the broker that the client refuses."""
    refused_certificate: str
    """A certificate of the client that the broker refuses."""
    refusal_ms: int = TIMEOUT_MS
    """Timeout of a refused round; short for clients that try until it ends."""
    gaps: Mapping[str, str] = field(default_factory=dict)
    """Reasons why good logins fail, by kind; such a login fails at Apache Kafka, too."""


def _python(library: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", "tests.interop.clients.python.secure", library]


CLIENTS = (
    SecureClient(
        "confluent-kafka",
        _python("confluent"),
        refused="^_AUTHENTICATION: .*(Invalid username or password|invalid credentials)",
        refused_token="^_AUTHENTICATION: .*invalid_token",
        untrusted="^(_SSL|_TRANSPORT): .*certificate verify failed",
        refused_certificate="^(_SSL|_TRANSPORT): .*alert certificate (expired|required)|certificate required",
    ),
    # It drops an answer that arrives together with the end of the connection.
    SecureClient(
        "kafka-python",
        _python("kafka-python"),
        refused="(?s)^KafkaTimeoutError: .*(SaslAuthenticationFailed|socket disconnected)",
        refused_token="(?s)^KafkaTimeoutError: .*(SaslAuthenticationFailed|socket disconnected)",
        untrusted="(?s)^KafkaTimeoutError: .*CERTIFICATE_VERIFY_FAILED",
        refused_certificate="^KafkaTimeoutError: ",
        refusal_ms=4000,
    ),
    # It takes the broker's refusal of a token for success; its next request ends the connection.
    SecureClient(
        "aiokafka",
        _python("aiokafka"),
        refused="(?s)^KafkaConnectionError: .*AuthenticationFailed",
        refused_token="^UnknownTopicOrPartitionError: ",
        untrusted="(?s)^KafkaConnectionError: .*CERTIFICATE_VERIFY_FAILED",
        refused_certificate="^KafkaConnectionError: ",
        refusal_ms=4000,
    ),
    SecureClient(
        "Java 4.3.0",
        lambda: building.java("4.3.0", "Secure"),
        refused=r"errors\.SaslAuthenticationException: Authentication failed",
        refused_token=r"errors\.SaslAuthenticationException: {\"status\":\"invalid_token\"}",
        untrusted=r"errors\.SslAuthenticationException",
        refused_certificate=r"errors\.SslAuthenticationException",
    ),
    SecureClient(
        "franz-go",
        lambda: building.go("franz"),
        refused="^SASL_AUTHENTICATION_FAILED: .*(Invalid username or password|invalid credentials)",
        refused_token="unexpected data in oauth response",  # the JSON with the status
        untrusted="x509: (certificate has expired|cannot validate certificate for 127.0.0.1)",
        refused_certificate="remote error: tls: (expired certificate|certificate required)",
    ),
    SecureClient(
        "sarama",
        lambda: building.go("sarama"),
        refused="SASL Authentication failed: .*(Invalid username or password|invalid credentials)",
        refused_token="SASL Authentication failed: .*invalid credentials with SASL mechanism OAUTHBEARER",
        untrusted="x509: (certificate has expired|cannot validate certificate for 127.0.0.1)",
        refused_certificate="remote error: tls: (expired certificate|certificate required)",
    ),
    SecureClient(
        "kcat",
        building.kcat_secure,
        refused="Local: Authentication failure: .*(Invalid username or password|invalid credentials)",
        refused_token="^unused$",  # it sends no signed tokens
        untrusted="certificate verify failed",
        refused_certificate="alert certificate (expired|required)",
        gaps={"SCRAM-SHA-512": "librdkafka before 2.6.1 repeats its nonce, which Kafka 4 refuses, too"},
    ),
    # It takes the refusal of a token for success, too, and reports the answer to its next request.
    SecureClient(
        "kafkajs",
        lambda: building.node("secure"),
        refused="SASLAuthenticationError: .*(Invalid username or password|invalid credentials)",
        refused_token="Request is not valid given the current SASL state",
        untrusted="certificate has expired|does not match certificate's altnames",
        refused_certificate="alert certificate (expired|required)",
    ),
)


@pytest.fixture(scope="module")
def development(tmp_path_factory: pytest.TempPathFactory) -> Development:
    return Development(tmp_path_factory.mktemp("development"))


@pytest.fixture(scope="module")
def broker(development: Development, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    with secure_barnabas(development, tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture(scope="module", params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> SecureClient:
    found: SecureClient = request.param
    return found


@pytest.fixture(scope="module")
def driver(client: SecureClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    driver = Driver(client.command(), tmp_path_factory.mktemp("driver"), Limits())
    yield driver
    driver.close()


LOGINS = {
    "PLAIN": (SECURE, Development.plain),
    "SCRAM-SHA-512": (SECURE, Development.scram),
    "OAUTHBEARER": (SECURE, Development.bearer),
    "mTLS": (MUTUAL, Development.mutual),
}


@pytest.mark.parametrize("kind", LOGINS)
def test_a_client_produces_and_consumes_in_a_group(
    driver: Driver,
    client: SecureClient,
    broker: SecureBroker,
    development: Development,
    kind: str,
    request: pytest.FixtureRequest,
) -> None:
    if kind in client.gaps:
        # Not strict: the installed version may have the fix.
        request.node.add_marker(pytest.mark.xfail(reason=client.gaps[kind], strict=False))
    value = f"{client.name}-{kind}"
    listener, login = LOGINS[kind]
    assert value in attempt(driver, client, broker, listener, login(development), value)


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refused_client_reports_why(
    driver: Driver, client: SecureClient, broker: SecureBroker, development: Development, name: str
) -> None:
    refusal = REFUSALS[name]
    with pytest.raises(DriverError, match=getattr(client, refusal.pattern)):
        attempt(driver, client, broker, refusal.listener, refusal.login(development), "refused", client.refusal_ms)


def attempt(
    driver: Driver,
    client: SecureClient,
    broker: SecureBroker,
    listener: str,
    login: Login,
    value: str,
    timeout_ms: int = TIMEOUT_MS,
) -> list[str]:
    """Run a round; skip the test if the client lacks the mechanism."""
    try:
        return broker.attempt(driver, listener, login, value, timeout_ms)
    except Unsupported as reason:
        pytest.skip(f"not supported by {client.name}: {reason}")
