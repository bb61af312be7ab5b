"""Delegation tokens beside Apache Kafka: the same requests of the same users get the same answers.

Java's login with a token is in test_delegation_tokens_java.py. librdkafka has no setting for the SCRAM extension
`tokenauth=true`, so that its clients cannot log in with tokens anywhere.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.security.resources import Operation, PatternType, Permission, ResourceType
from barnabas.protocol.sasl.plain import PLAIN, PlainClient
from barnabas.protocol.sasl.scram_client import ScramClient
from barnabas.protocol.sasl.scram_keys import SCRAM_SHA_512
from tests.support.authorization.entities import request
from tests.support.daemon import start_daemon
from tests.support.eventually import eventually
from tests.support.kafka.apache_kafka import Kafka
from tests.support.kafka.fields import Fields
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.sasl_wire import SaslWire

pytestmark = pytest.mark.timeout(300)

USERS = ("alice", "bob", "carol", "dave", "erin", "frank")
SUPER_USER = "carol"
HOUR_MS = 3_600_000
_MODULES = "org.apache.kafka.common.security"
SETTINGS = {
    "listener.name.tokens.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "listener.name.tokens.plain.sasl.jaas.config": f"{_MODULES}.plain.PlainLoginModule required "
    + " ".join(f'user_{name}="{name}"' for name in USERS)
    + ";",
    "listener.name.tokens.scram-sha-512.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:{SUPER_USER};User:ANONYMOUS",
    "delegation.token.secret.key": "token-secret",
    "delegation.token.max.lifetime.ms": str(HOUR_MS),
    "delegation.token.expiry.time.ms": str(HOUR_MS // 2),
    "connection.failed.authentication.delay.ms": "0",
}


@dataclass(frozen=True)
class Token:
    """A created or described token."""

    owner: str
    requester: str
    issued_ms: int
    expires_ms: int
    max_ms: int
    token_id: str
    hmac: bytes
    renewers: tuple[str, ...] = ()

    def essence(self) -> tuple[object, ...]:
        """Return what two brokers have in common."""
        lifetime, until = self.max_ms - self.issued_ms, self.expires_ms - self.issued_ms
        return self.owner, self.requester, self.renewers, lifetime, round(until / 30_000), len(self.hmac)


@dataclass
class Side:
    """One of the two brokers, and what it answered."""

    port: int
    open_port: int
    outcomes: list[object] = field(default_factory=list)

    def login(self, user: str) -> SaslWire:
        wire = SaslWire("127.0.0.1", self.port)
        assert wire.login(PLAIN, PlainClient(user, user)).error_code == 0
        return wire

    def token_login(self, token_id: str, hmac: bytes) -> tuple[SaslWire, ErrorCode]:
        wire = SaslWire("127.0.0.1", self.port)
        password = base64.b64encode(hmac).decode()
        answer = wire.login("SCRAM-SHA-512", ScramClient(SCRAM_SHA_512, token_id, password, is_token=True))
        return wire, ErrorCode(int(answer.error_code))

    def create(self, user: str, *, version: int = 3, **fields: Any) -> Token | None:
        """Create a token; note the answer; wait until the token is described."""
        with self.login(user) as wire:
            token = self.create_on(wire, version=version, **fields)
        if token is not None:
            self._wait(lambda: token.token_id in {each.token_id for each in self.described()})
        return token

    def create_on(self, wire: KafkaWire, *, version: int = 3, **fields: Any) -> Token | None:
        values = {"renewers": [], "max_lifetime": -1, **fields}
        if version >= 3:
            values = {"owner_principal_type": None, "owner_principal_name": None, **values}
        found = self._call(wire, "create_delegation_token", version, values)
        error = ErrorCode(found.int16())
        owner = f"{found.text()}:{found.text()}"
        requester = f"{found.text()}:{found.text()}" if version >= 3 else ""
        token = Token(owner, requester, found.int64(), found.int64(), found.int64(), found.text(), found.data())
        if error:
            # Kafka answers some refusals with times of -1, and others of 0.
            self.note(error, owner, requester, token.issued_ms, token.expires_ms, token.max_ms, token.token_id)
            return None
        self.note(error, *token.essence())
        return token

    def change(self, verb: str, user: str, hmac: bytes, period_ms: int = -1, *, version: int = 2) -> None:
        """Renew or expire a token; note the answer; wait until the new time is described."""
        with self.login(user) as wire:
            error, expires_ms = self.change_on(verb, wire, hmac, period_ms, version=version)
        if not error:
            has_ended = verb == "expire" and period_ms < 0
            wanted = [] if has_ended else [expires_ms]
            self._wait(lambda: [each.expires_ms for each in self.described() if each.hmac == hmac] == wanted)

    def change_on(
        self, verb: str, wire: KafkaWire, hmac: bytes, period_ms: int = -1, *, version: int = 2
    ) -> tuple[ErrorCode, int]:
        name = "renew_period" if verb == "renew" else "expiry_time_period"
        found = self._call(wire, f"{verb}_delegation_token", version, {"hmac": hmac, name: period_ms})
        error, expires_ms = ErrorCode(found.int16()), found.int64()
        self.note(error, expires_ms if error else round((expires_ms - time.time() * 1000) / 30_000))
        return error, expires_ms

    def describe(self, user: str, owners: list[str] | None = None, *, version: int = 3) -> None:
        """Describe tokens, and note them."""
        with self.login(user) as wire:
            error, tokens = self.describe_on(wire, owners, version=version)
        self.note(error, sorted(map(str, (token.essence() for token in tokens))))

    def described(self) -> list[Token]:
        """Return all tokens."""
        with self.login(SUPER_USER) as wire:
            return self.describe_on(wire)[1]

    def describe_on(
        self, wire: KafkaWire, owners: list[str] | None = None, *, version: int = 3
    ) -> tuple[ErrorCode, list[Token]]:
        named = owners if owners is None else [{"principal_type": "User", "principal_name": each} for each in owners]
        found = self._call(wire, "describe_delegation_token", version, {"owners": named})
        error, tokens = ErrorCode(found.int16()), []
        for _ in range(found.count()):
            owner = f"{found.text()}:{found.text()}"
            requester = f"{found.text()}:{found.text()}" if version >= 3 else ""
            times = found.int64(), found.int64(), found.int64()
            token_id, hmac, renewers = found.text(), found.data(), []
            for _ in range(found.count()):
                renewers.append(f"{found.text()}:{found.text()}")
                found.end_of_structure()
            found.end_of_structure()
            tokens.append(Token(owner, requester, *times, token_id, hmac, tuple(sorted(renewers))))
        return error, tokens

    def note(self, *outcome: object) -> None:
        self.outcomes.append(outcome)

    @staticmethod
    def _wait(is_described: Callable[[], bool]) -> None:
        """Wait until Kafka's broker has the controller's change."""
        eventually(lambda: is_described() or None, what="the change is described")

    @staticmethod
    def _call(wire: KafkaWire, api: str, version: int, values: dict[str, Any]) -> Fields:
        wire.send(request(api, version, values))
        return Fields(wire.receive_frame(), is_flexible=version >= 2)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """Apache Kafka and Barnabas, with the same users and ACLs."""
    kafka = Kafka("4.3.0", tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("kafka"))
    kafka.settings |= SETTINGS
    kafka.extra_listeners = {"TOKENS": "SASL_PLAINTEXT"}
    kafka.format()
    with ExitStack() as stack:
        broker = stack.enter_context(kafka.running())
        daemon = stack.enter_context(
            start_daemon(
                tmp_path_factory.mktemp("barnabas"),
                "listeners=TOKENS://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
                "listener.security.protocol.map=TOKENS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
                *(f"{name}={value}" for name, value in SETTINGS.items()),
            )
        )
        ports = dict(re.findall(r"listening, listener=(\w+)://\S+ port=(\d+)", daemon.log))
        both = Side(kafka.extra_ports["TOKENS"], broker.port), Side(int(ports["TOKENS"]), int(ports["PLAINTEXT"]))
        for side in both:
            grant(side, "dave", ResourceType.USER, "User:alice", Operation.CREATE_TOKENS)
            grant(side, "erin", ResourceType.USER, "User:alice", Operation.DESCRIBE_TOKENS)
        yield both


def grant(side: Side, user: str, kind: ResourceType, name: str, operation: Operation) -> None:
    """Create an ACL."""
    creation = {
        "resource_type": int(kind),
        "resource_name": name,
        "resource_pattern_type": int(PatternType.LITERAL),
        "principal": f"User:{user}",
        "host": "*",
        "operation": int(operation),
        "permission_type": int(Permission.ALLOW),
    }
    with side.login(SUPER_USER) as wire:
        wire.send(request("create_acls", 2, {"creations": [creation]}))
        assert [each.error_code.value for each in wire.receive("create_acls", 2).results] == [0]


def renewers(*names: str, kind: str = "User") -> list[dict[str, str]]:
    """Return renewers as in a request."""
    return [{"principal_type": kind, "principal_name": name} for name in names]


def of_owner(name: str, kind: str = "User") -> dict[str, Any]:
    """Return the owner as in a request."""
    return {"owner_principal_type": kind, "owner_principal_name": name}


def created(token: Token | None) -> Token:
    """Return the token of a creation that has to succeed."""
    assert token is not None
    return token


def creation(side: Side) -> None:
    for version in (1, 2, 3):
        side.create("alice", version=version)
    for lifetime_ms in (0, 1, 60_000, HOUR_MS, 2 * HOUR_MS, -2):
        side.create("bob", max_lifetime=lifetime_ms)
    side.create("alice", renewers=renewers("bob", "frank"))
    side.create("alice", renewers=renewers("bob", kind="Group"))
    side.create("alice", **of_owner("bob"))
    side.create("alice", **of_owner("alice"))
    side.create("dave", **of_owner("alice"))
    side.create("dave", **of_owner("bob"))
    side.create("dave", **of_owner("alice", kind="Group"))
    side.create(SUPER_USER, **of_owner("frank"))


def change(side: Side) -> None:
    own = created(side.create("alice", renewers=renewers("bob")))
    for_alice = created(side.create("dave", **of_owner("alice")))
    for verb in ("renew", "expire"):
        for user in ("alice", "bob", "dave", "erin", SUPER_USER):
            for token in (own, for_alice):
                side.change(verb, user, token.hmac, 600_000)
        for period_ms in (1_200_000, 2 * HOUR_MS):
            side.change(verb, "alice", own.hmac, period_ms)
        for version in (1, 2):
            side.change(verb, "alice", own.hmac, 300_000, version=version)
        side.change(verb, "alice", b"unknown", 600_000)
        side.change(verb, "alice", b"", 600_000)
        side.change(verb, "alice", own.hmac, 0)  # the default period, or an immediate end
    side.change("renew", "alice", own.hmac, -1)
    side.change("expire", "frank", own.hmac, -1)
    side.change("expire", "bob", own.hmac, -1)
    side.change("expire", "bob", own.hmac, -1)


def description(side: Side) -> None:
    first = created(side.create("alice", renewers=renewers("bob")))
    created(side.create("dave", **of_owner("alice")))
    created(side.create("bob"))
    for user in USERS:
        for owners in (None, [], ["alice"], ["bob", "alice"], ["nobody"]):
            side.describe(user, owners)
    grant(side, "frank", ResourceType.DELEGATION_TOKEN, first.token_id, Operation.DESCRIBE)
    eventually(lambda: sees(side, "frank") or None, what="the ACL is in force")
    side.describe("frank")
    for version in (1, 2):
        side.describe("alice", version=version)


def sees(side: Side, user: str) -> bool:
    """Return whether a user sees any token."""
    with side.login(user) as wire:
        return bool(side.describe_on(wire)[1])


def login(side: Side) -> None:
    token = created(side.create("alice"))
    wire, error = side.token_login(token.token_id, token.hmac)
    with wire:
        side.note(error, is_served(side, token))
        side.create_on(wire)
        side.change_on("renew", wire, token.hmac)
        side.change_on("expire", wire, token.hmac)
        side.note(*side.describe_on(wire))
    attempts = ((token.token_id, b"wrong"), ("unknown", token.hmac), ("alice", b"alice"))
    for token_id, hmac in attempts:
        wire, error = side.token_login(token_id, hmac)
        wire.socket.close()
        side.note(error)
    side.change("expire", "alice", token.hmac, 1)
    time.sleep(0.05)
    side.note(is_served(side, token))
    side.change("renew", "alice", token.hmac)
    side.change("expire", "alice", token.hmac, 1000)
    side.change("expire", "alice", token.hmac)
    wire, error = side.token_login(token.token_id, token.hmac)
    wire.socket.close()
    side.note(error)


def is_served(side: Side, token: Token) -> bool:
    """Return whether a token's client is served.

    Kafka completes the login of an expired token, and closes the connection at the next request; Barnabas refuses the
    login.
    """
    wire, error = side.token_login(token.token_id, token.hmac)
    with wire:
        if error:
            return False
        try:
            side.describe_on(wire)
        except ConnectionError:
            return False
    return True


def plaintext(side: Side) -> None:
    with KafkaWire("127.0.0.1", side.open_port) as wire:
        side.create_on(wire)
        side.change_on("renew", wire, b"x")
        side.change_on("expire", wire, b"x")
        side.note(*side.describe_on(wire))


SCENARIOS: dict[str, Callable[[Side], None]] = {
    "creation": creation,
    "renewal and expiration": change,
    "description": description,
    "login": login,
    "plaintext": plaintext,
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_answers_are_those_of_kafka(sides: tuple[Side, Side], name: str) -> None:
    for side in sides:
        side.outcomes = []
        SCENARIOS[name](side)
        for token in side.described():  # scenarios start without tokens
            side.change("expire", token.owner.partition(":")[2], token.hmac)
    theirs, ours = sides
    assert ours.outcomes == theirs.outcomes
