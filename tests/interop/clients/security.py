"""Certificates, users and tokens for the clients of a broker whose every listener authenticates.

    SECURE      SASL_SSL: PLAIN, SCRAM-SHA-512, OAUTHBEARER
    MUTUAL      SSL, with required client certificates
    EXPIRED     SASL_SSL, with an expired certificate
    ELSEWHERE   SASL_SSL, with a certificate for another host

Only super users may do anything, so a round that succeeds proves the principal of its login, too.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import trustme
from confluent_kafka.admin import AdminClient, NewTopic, ScramCredentialInfo, ScramMechanism
from confluent_kafka.admin import UserScramCredentialDeletion as Deletion
from confluent_kafka.admin import UserScramCredentialUpsertion as Upsertion
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.interop.clients.driver import Driver
from tests.support.daemon import start_daemon
from tests.support.kafka.apache_kafka import Kafka
from tests.support.tls import authority_pem, pem_bundle, write_private

SECURE, MUTUAL, EXPIRED, ELSEWHERE = ("SECURE", "MUTUAL", "EXPIRED", "ELSEWHERE")
PROTOCOLS = {SECURE: "SASL_SSL", MUTUAL: "SSL", EXPIRED: "SASL_SSL", ELSEWHERE: "SASL_SSL"}
TOPIC = "secured"
"""The topic of all rounds."""
CALL_TIMEOUT_S = 30

TIMEOUT_MS = 20_000
_MODULES = "org.apache.kafka.common.security"
_ADMIN = ("admin", "admin-secret")
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Login:
    """How a client authenticates; the fields of a driver's `login`."""

    ca: str
    certificate: str | None = None
    mechanism: str | None = None
    user: str | None = None
    password: str | None = None
    token: str | None = None
    is_delegated: bool = False
    """Whether user and password are a delegation token's id and HMAC."""

    def fields(self) -> dict[str, Any]:
        """Return the fields as JSON."""
        return asdict(self)

    def but(self, **changed: Any) -> Login:
        """Return a login that differs in some fields."""
        return replace(self, **changed)


class Development:
    """The files in a directory, the broker's properties, and logins that succeed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._authority = trustme.CA()
        self.signing_key = self.new_signing_key()
        self.ca = str(write_private(directory / "ca.pem", authority_pem(self._authority)))
        self._broker = self._certificate("broker")
        self._client = self._certificate("carol")
        self.expired_certificate = self._certificate("expired", not_after=datetime.now(UTC) - _DAY)
        self._other_host = self._certificate("elsewhere", host="broker.example")
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.signing_key.public_key()))
        key_set = {"keys": [{**public, "kid": "test", "alg": "RS256", "use": "sig"}]}
        self._jwks = write_private(directory / "jwks.json", json.dumps(key_set))

    @staticmethod
    def new_signing_key() -> rsa.RSAPrivateKey:
        """Return a key for tokens."""
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)

    @property
    def jwks_url(self) -> str:
        """The address of the key set."""
        return self._jwks.as_uri()

    def properties(self) -> dict[str, str]:
        """Return the properties of security."""
        mechanisms = "PLAIN,SCRAM-SHA-512,OAUTHBEARER"
        properties = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self._broker,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.ca,
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+),.*$/$1/,DEFAULT",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": ";".join(f"User:{name}" for name in ("admin", "alice", "bob", "carol", "dave", "ANONYMOUS")),
            "delegation.token.secret.key": "token-secret",
            "listener.name.mutual.ssl.client.auth": "required",
            "listener.name.expired.ssl.keystore.type": "PEM",
            "listener.name.expired.ssl.keystore.location": self.expired_certificate,
            "listener.name.elsewhere.ssl.keystore.type": "PEM",
            "listener.name.elsewhere.ssl.keystore.location": self._other_host,
        }
        for name in ("secure", "expired", "elsewhere"):
            prefix = f"listener.name.{name}"
            properties |= {
                f"{prefix}.sasl.enabled.mechanisms": mechanisms if name == "secure" else "PLAIN",
                f"{prefix}.plain.sasl.jaas.config": f"{_MODULES}.plain.PlainLoginModule required "
                f'user_{_ADMIN[0]}="{_ADMIN[1]}" user_alice="pencil";',
            }
        properties["listener.name.secure.scram-sha-512.sasl.jaas.config"] = (
            f"{_MODULES}.scram.ScramLoginModule required;"
        )
        properties |= {
            "listener.name.secure.oauthbearer.sasl.jaas.config": (
                f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;"
            ),
            "listener.name.secure.oauthbearer.sasl.server.callback.handler.class": (
                f"{_MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
            ),
            "sasl.oauthbearer.jwks.endpoint.url": self.jwks_url,
            "sasl.oauthbearer.expected.issuer": "https://idp.example",
            "sasl.oauthbearer.expected.audience": "kafka",
        }
        return properties

    def plain(self) -> Login:
        """Return alice's login by PLAIN."""
        return Login(self.ca, mechanism="PLAIN", user="alice", password="pencil")

    def scram(self) -> Login:
        """Return bob's login by SCRAM-SHA-512."""
        return Login(self.ca, mechanism="SCRAM-SHA-512", user="bob", password="crayon")

    def mutual(self) -> Login:
        """Return carol's login by certificate."""
        return Login(self.ca, certificate=self._client)

    def bearer(self, *, expires_in_s: int = 600) -> Login:
        """Return dave's login by a signed token."""
        expires_at = int(time.time()) + expires_in_s
        claims = {"sub": "dave", "iss": "https://idp.example", "aud": "kafka", "iat": expires_at - 1200}
        token = jwt.encode({**claims, "exp": expires_at}, self.signing_key, "RS256", headers={"kid": "test"})
        return Login(self.ca, mechanism="OAUTHBEARER", token=token)

    def _certificate(self, name: str, *, host: str = "127.0.0.1", not_after: datetime | None = None) -> str:
        after = not_after or datetime.now(UTC) + _DAY
        leaf = self._authority.issue_cert(host, common_name=name, not_before=after - 30 * _DAY, not_after=after)
        return str(write_private(self._directory / f"{name}.pem", pem_bundle(leaf)))


@dataclass(frozen=True, slots=True)
class Refusal:
    """A connection that fails: a listener, a login, and the attribute of SecureClient with the error's pattern."""

    listener: str
    pattern: str
    login: Callable[[Development], Login]


REFUSALS = {
    "wrong password, PLAIN": Refusal(SECURE, "refused", lambda files: files.plain().but(password="wrong")),
    "wrong password, SCRAM": Refusal(SECURE, "refused", lambda files: files.scram().but(password="wrong")),
    "deleted user": Refusal(SECURE, "refused", lambda files: files.scram().but(user="erin", password="deleted")),
    "expired token": Refusal(SECURE, "refused_token", lambda files: files.bearer(expires_in_s=-3600)),
    "expired certificate of the broker": Refusal(EXPIRED, "untrusted", Development.plain),
    "wrong host name": Refusal(ELSEWHERE, "untrusted", Development.plain),
    "expired certificate of the client": Refusal(
        MUTUAL, "refused_certificate", lambda files: files.mutual().but(certificate=files.expired_certificate)
    ),
    "no certificate of the client": Refusal(
        MUTUAL, "refused_certificate", lambda files: files.mutual().but(certificate=None)
    ),
}


class Administration:
    """Topics and SCRAM users of a broker, by librdkafka as the user `admin`."""

    def __init__(self, bootstrap: str, ca: str) -> None:
        self._client = AdminClient(
            {
                "bootstrap.servers": bootstrap,
                "security.protocol": "SASL_SSL",
                "ssl.ca.location": ca,
                "sasl.mechanism": "PLAIN",
                "sasl.username": _ADMIN[0],
                "sasl.password": _ADMIN[1],
                "log_level": 0,
            }
        )

    def create_topic(self, name: str) -> None:
        """Create a topic of one partition."""
        self._client.create_topics([NewTopic(name, 1, 1)])[name].result(CALL_TIMEOUT_S)

    def add_user(self, name: str, password: str) -> None:
        """Store a SCRAM-SHA-512 credential."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        self._alter(Upsertion(name, info, password.encode()))

    def delete_user(self, name: str) -> None:
        """Delete a user's SCRAM-SHA-512 credential."""
        self._alter(Deletion(name, ScramMechanism.SCRAM_SHA_512))

    def _alter(self, change: Upsertion | Deletion) -> None:
        for future in self._client.alter_user_scram_credentials([change]).values():
            future.result(CALL_TIMEOUT_S)


@dataclass(frozen=True, slots=True)
class SecureBroker:
    """A running broker with the listeners of this module."""

    ports: Mapping[str, int]

    def bootstrap(self, listener: str) -> str:
        """Return the address of a listener."""
        return f"127.0.0.1:{self.ports[listener]}"

    def attempt(
        self, driver: Driver, listener: str, login: Login, value: str, timeout_ms: int = TIMEOUT_MS
    ) -> list[str]:
        """Return the values that a round reads. Raises DriverError with the client's error."""
        fields = {"topic": TOPIC, "group": f"group-of-{value}", "value": value, "timeout_ms": timeout_ms}
        driver.bootstrap = self.bootstrap(listener)
        values: list[str] = driver.call("round", **fields, login=login.fields())["values"]
        return values


@contextmanager
def secure_barnabas(development: Development, directory: Path) -> Iterator[SecureBroker]:
    """Run a daemon with all mechanisms."""
    properties = {
        **development.properties(),
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in PROTOCOLS),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in PROTOCOLS.items()),
    }
    with start_daemon(directory, *(f"{name}={value}" for name, value in properties.items())) as daemon:
        found = {name: re.findall(rf"listening, listener={name}://\S+ port=(\d+)", daemon.log) for name in PROTOCOLS}
        yield _prepared({name: int(ports[0]) for name, ports in found.items()}, development)


@contextmanager
def secure_kafka(development: Development, directory: Path) -> Iterator[SecureBroker]:
    """Run Apache Kafka with the same files."""
    kafka = Kafka("4.3.0", directory / "data", directory)
    kafka.settings |= development.properties()
    kafka.extra_listeners = dict(PROTOCOLS)
    kafka.system_properties["org.apache.kafka.sasl.oauthbearer.allowed.urls"] = development.jwks_url
    kafka.format()
    with kafka.running():
        yield _prepared(kafka.extra_ports, development)


def _prepared(ports: Mapping[str, int], development: Development) -> SecureBroker:
    administration = Administration(f"127.0.0.1:{ports[SECURE]}", development.ca)
    administration.create_topic(TOPIC)
    administration.add_user("bob", "crayon")
    administration.add_user("erin", "deleted")
    administration.delete_user("erin")
    return SecureBroker(ports)
