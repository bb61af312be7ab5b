"""Logins, ACLs, tokens and credentials, with an authorizer and a SASL listener."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

from tests.support.answers.play import Play
from tests.support.answers.requests import versions
from tests.support.answers.scripts.made import ANYTHING
from tests.support.kafka.fields import Fields

ALLOW = {
    "resource_type": 2,
    "resource_name": "orders",
    "resource_pattern_type": 3,
    "principal": "User:u",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}


def sasl_handshake(play: Play) -> None:
    for version in versions("sasl_handshake"):
        play.ask("sasl_handshake", version, "success", {"mechanism": "PLAIN"}, on=play.connect("SECURE"))
        play.ask("sasl_handshake", version, "no such mechanism", {"mechanism": "X"}, on=play.connect("SECURE"))
        play.ask("sasl_handshake", version, "without a SASL listener", {"mechanism": "PLAIN"})
        play.ask("sasl_handshake", version, "after the login", {"mechanism": "PLAIN"}, on=play.log_in("nobody"))


def sasl_authenticate(play: Play) -> None:
    api = "sasl_authenticate"

    def handshake(mechanism: str) -> Any:
        connection = play.connect("SECURE")
        play.quiet("sasl_handshake", {"mechanism": mechanism}, on=connection)
        return connection

    for version in versions(api):
        play.ask(api, version, "success, PLAIN", {"auth_bytes": b"\0nobody\0secret"}, on=handshake("PLAIN"))
        play.ask(api, version, "a wrong password", {"auth_bytes": b"\0nobody\0wrong"}, on=handshake("PLAIN"))
        play.ask(api, version, "no such user", {"auth_bytes": b"\0who\0secret"}, on=handshake("PLAIN"))
        play.ask(api, version, "another user's name", {"auth_bytes": b"admin\0nobody\0secret"}, on=handshake("PLAIN"))
        play.ask(api, version, "not a message", {"auth_bytes": b"x"}, on=handshake("PLAIN"))
        play.ask(api, version, "without a handshake", {"auth_bytes": b"\0nobody\0secret"}, on=play.connect("SECURE"))
        play.ask(api, version, "without a SASL listener", {"auth_bytes": b"\0nobody\0secret"})
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", b"salt", 4096)
    upsertion = {"name": "scram", "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": salted}
    play.quiet("alter_user_scram_credentials", {"upsertions": [upsertion]})
    for version in versions(api):
        connection = handshake("SCRAM-SHA-256")
        opening = {"auth_bytes": b"n,,n=scram,r=nonce"}
        first = play.ask(api, version, "success, SCRAM's first message", opening, on=connection).auth_bytes
        final = {"auth_bytes": _scram_final(salted, b"n=scram,r=nonce", first)}
        play.ask(api, version, "success, SCRAM's last message", final, on=connection)
        connection = handshake("SCRAM-SHA-256")
        first = play.quiet(api, opening, on=connection).auth_bytes
        final = {"auth_bytes": _scram_final(b"wrong" * 6, b"n=scram,r=nonce", first)}
        play.ask(api, version, "SCRAM with a wrong password", final, on=connection)
    for version in reversed(versions(api)):  # behind the others: each draws a nonce
        opening = {"auth_bytes": b"n,,n=who,r=nonce"}
        play.ask(api, version, "SCRAM, no such user", opening, on=handshake("SCRAM-SHA-256"))
        play.ask(api, version, "SCRAM, not a message", {"auth_bytes": b"x"}, on=handshake("SCRAM-SHA-256"))


def _scram_final(salted: bytes, bare: bytes, first: bytes) -> bytes:
    nonce = first.split(b",")[0]
    without_proof = b"c=biws," + nonce
    key = hmac.digest(salted, b"Client Key", "sha256")
    signature = hmac.digest(hashlib.sha256(key).digest(), b",".join([bare, first, without_proof]), "sha256")
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    return without_proof + b",p=" + base64.b64encode(proof)


def create_acls(play: Play) -> None:
    play.each("create_acls", "success", {"creations": [ALLOW]})
    for case, fields in (
        ("an empty name", {"resource_name": ""}),
        ("any operation", {"operation": 1}),
        ("an operation that the resource lacks", {"operation": 9}),
        ("any permission", {"permission_type": 1}),
        ("a pattern to match with", {"resource_pattern_type": 2}),
        ("any resource", {"resource_type": 1}),
        ("no principal", {"principal": "u"}),
        ("another cluster", {"resource_type": 4, "resource_name": "x"}),
        ("an empty host", {"host": ""}),
    ):
        play.each("create_acls", case, {"creations": [{**ALLOW, **fields}]})


def describe_acls(play: Play) -> None:
    play.each("describe_acls", "success, all", ANYTHING)
    play.each("describe_acls", "success, none", {**ANYTHING, "principal_filter": "User:nobody"})
    play.each("describe_acls", "no such operation", {**ANYTHING, "operation": 99})
    play.each("describe_acls", "no such resource type", {**ANYTHING, "resource_type_filter": 99})
    play.each("describe_acls", "no such pattern", {**ANYTHING, "pattern_type_filter": 99})
    play.each("describe_acls", "unknown operation", {**ANYTHING, "operation": 0})


def delete_acls(play: Play) -> None:
    for version in versions("delete_acls"):
        play.quiet("create_acls", {"creations": [ALLOW]})
        play.ask("delete_acls", version, "success", {"filters": [{**ANYTHING, "principal_filter": "User:u"}]})
    play.each("delete_acls", "success, none", {"filters": [{**ANYTHING, "principal_filter": "User:nobody"}]})
    play.each("delete_acls", "no such operation", {"filters": [{**ANYTHING, "operation": 99}]})
    play.each("delete_acls", "no such resource type", {"filters": [{**ANYTHING, "resource_type_filter": 99}]})


def alter_client_quotas(play: Play) -> None:
    def asked(kind: str, name: str | None, key: str, value: float, **fields: Any) -> dict[str, Any]:
        only = fields.pop("validate_only", False)
        entity = [{"entity_type": kind, "entity_name": name}]
        return {"entries": [{"entity": entity, "ops": [{"key": key, "value": value, **fields}]}], "validate_only": only}

    api, rate = "alter_client_quotas", "producer_byte_rate"
    play.each(api, "success", asked("user", "u", rate, 5e9))
    play.each(api, "success, the default", asked("client-id", None, rate, 5e9))
    play.each(api, "success, only validated", asked("user", "u", rate, 1e9, validate_only=True))
    play.each(api, "success, removed", asked("user", "u", rate, 0.0, remove=True))
    play.each(api, "no such quota", asked("user", "u", "nothing", 1.0))
    play.each(api, "a quota of zero", asked("user", "u", rate, 0.0))
    play.each(api, "a fraction", asked("user", "u", rate, 1.5))
    play.each(api, "no such entity", asked("nothing", "u", rate, 1.0))
    play.each(api, "no entity", {"entries": [{"entity": [], "ops": [{"key": rate, "value": 1.0}]}]})
    play.each(api, "an address that is none", asked("ip", "x y", "connection_creation_rate", 5.0))
    twice = asked("user", "u", rate, 5e9)
    play.each(api, "an entity twice", {**twice, "entries": twice["entries"] * 2})


def alter_user_scram_credentials(play: Play) -> None:
    api = "alter_user_scram_credentials"

    def upserted(**fields: Any) -> dict[str, Any]:
        own = {"name": "u", "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"x" * 32}
        return {"upsertions": [{**own, **fields}]}

    play.each(api, "success, upserted", upserted())
    play.each(api, "too few iterations", upserted(iterations=1))
    play.each(api, "too many iterations", upserted(iterations=1 << 20))
    play.each(api, "no such mechanism", upserted(mechanism=9))
    play.each(api, "an empty name", upserted(name=""))
    play.each(api, "an empty password", upserted(salted_password=b""))
    both = {**upserted(), "deletions": [{"name": "u", "mechanism": 1}]}
    play.each(api, "upserted and deleted", both)
    play.each(api, "success, deleted", {"deletions": [{"name": "u", "mechanism": 1}]})
    play.each(api, "no such credential", {"deletions": [{"name": "u", "mechanism": 1}]})


_LIFETIME = {"owner_principal_type": "", "owner_principal_name": "", "max_lifetime": -1}


def create_delegation_token(play: Play) -> None:
    api = "create_delegation_token"
    owner = play.log_in("owner")
    renewers = [{"principal_type": "User", "principal_name": "admin"}]
    play.each(api, "success", {**_LIFETIME, "renewers": renewers}, on=owner)
    play.each(api, "a renewer that is no user", {**_LIFETIME, "renewers": [{"principal_type": "Group"}]}, on=owner)
    other = {**_LIFETIME, "owner_principal_type": "User", "owner_principal_name": "admin"}
    play.each(api, "for another user", other, since=3, on=owner)
    play.each(api, "without a login", _LIFETIME)


def _token(play: Play) -> tuple[Any, bytes]:
    """Return a connection of a token's owner, and the token's HMAC."""
    owner = play.log_in("owner")
    frame = play.quiet_frame("create_delegation_token", {**_LIFETIME, "renewers": []}, on=owner)
    fields = Fields(frame, is_flexible=True)
    fields.int16()
    for _ in range(4):
        fields.text()
    for _ in range(3):
        fields.int64()
    fields.text()
    return owner, fields.data()


def renew_delegation_token(play: Play) -> None:
    api = "renew_delegation_token"
    owner, token = _token(play)
    play.each(api, "success", {"hmac": token, "renew_period": 1000}, on=owner)
    play.each(api, "no such token", {"hmac": b"nothing", "renew_period": 1000}, on=owner)
    play.each(api, "not a renewer", {"hmac": token, "renew_period": 1000}, on=play.log_in("nobody"))
    play.each(api, "without a login", {"hmac": token, "renew_period": 1000})


def describe_delegation_token(play: Play) -> None:
    api = "describe_delegation_token"
    owner, _ = _token(play)
    owners = [{"principal_type": "User", "principal_name": "owner"}]
    play.each(api, "success", {"owners": owners}, on=owner)
    play.each(api, "success, all", {"owners": None}, on=owner)
    play.each(api, "success, of nobody", {"owners": []}, on=owner)
    play.each(api, "without a login", {"owners": None})


def expire_delegation_token(play: Play) -> None:
    api = "expire_delegation_token"
    for version in versions(api):
        owner, token = _token(play)
        play.ask(api, version, "success, later", {"hmac": token, "expiry_time_period": 1000}, on=owner)
        play.ask(api, version, "success, now", {"hmac": token, "expiry_time_period": -1}, on=owner)
    play.each(api, "no such token", {"hmac": b"nothing", "expiry_time_period": 1000}, on=owner)
    play.each(api, "without a login", {"hmac": token, "expiry_time_period": 1000})
    owner, token = _token(play)
    play.each(api, "not a renewer", {"hmac": token, "expiry_time_period": -1}, on=play.log_in("nobody"))
