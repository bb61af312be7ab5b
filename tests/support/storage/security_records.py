"""Records of users, ACLs, quotas and tokens for tests."""

from __future__ import annotations

from barnabas.protocol.messages.security.resources import Operation, PatternType, Permission, ResourceType
from barnabas.protocol.metadata.security_records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    EntityData,
    UserScramCredentialRecord,
)

SCRAM_SECRETS = (b"a salt", b"a stored key", b"a server key")


def scram_record(user: str = "alice", mechanism: int = 1, iterations: int = 4096) -> UserScramCredentialRecord:
    """Return a user's credential, with which no login succeeds."""
    return UserScramCredentialRecord(user, mechanism, *SCRAM_SECRETS, iterations)


def acl_record(
    number: int = 1,
    *,
    resource: ResourceType = ResourceType.TOPIC,
    name: str = "orders",
    pattern: PatternType = PatternType.LITERAL,
    principal: str = "User:alice",
    host: str = "*",
    operation: Operation = Operation.READ,
    permission: Permission = Permission.ALLOW,
) -> AccessControlEntryRecord:
    """Return an ACL whose id ends with `number`."""
    return AccessControlEntryRecord(
        number.to_bytes(16, "big"), resource, name, pattern, principal, host, operation, permission
    )


def quota_record(
    key: str = "producer_byte_rate", value: float = 1024.0, *, remove: bool = False, **entity: str | None
) -> ClientQuotaRecord:
    """Return a limit of an entity, by default user alice; `client_id` is the type `client-id`."""
    pairs = entity or {"user": "alice"}
    entity_rows = tuple(EntityData(kind.replace("_", "-"), name) for kind, name in pairs.items())
    return ClientQuotaRecord(entity_rows, key, value, remove)


def token_record(token_id: str = "token", expires_ms: int = 2_000) -> DelegationTokenRecord:
    """Return a token of alice that bob requested and carol may renew."""
    return DelegationTokenRecord("User:alice", "User:bob", ("User:carol",), 1_000, 9_000, expires_ms, token_id)
