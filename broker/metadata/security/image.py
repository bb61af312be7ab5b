"""SecurityImage: ACLs, SCRAM credentials, tokens and client quotas of the metadata log. Immutable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from barnabas.protocol.messages.security.acls import Acl

__all__ = ["DelegationToken", "QuotaEntity", "ScramCredential", "SecurityImage", "quota_entity"]

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Pairs of type (`user`, `client-id`, `ip`) and name, sorted by type; the name None is the default entity."""


def quota_entity(pairs: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    """Return the entity of pairs in any order; of several pairs of one type the last counts."""
    return tuple(sorted(dict(pairs).items(), key=lambda pair: pair[0]))


class ScramCredential(NamedTuple):
    """A broker's part of a user's SCRAM password. Never logged, never shown."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential([hidden], iterations={self.iterations})"


class DelegationToken(NamedTuple):
    """A token without its HMAC, which follows from `token_id` and delegation.token.secret.key. Times in ms."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    max_ms: int
    expires_ms: int


_EMPTY: Final[Mapping[Any, Any]] = MappingProxyType({})


class SecurityImage(NamedTuple):
    """The state after all records."""

    acls: Mapping[bytes, Acl] = _EMPTY
    """By the 16 bytes of their id."""
    scram: Mapping[tuple[str, int], ScramCredential] = _EMPTY
    """By user and mechanism: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""
    tokens: Mapping[str, DelegationToken] = _EMPTY
    """By token id."""
    quotas: Mapping[QuotaEntity, Mapping[str, float]] = _EMPTY
