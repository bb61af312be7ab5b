"""Neutral requests and responses of delegation tokens: CreateDelegationToken and its three siblings. Times in ms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from barnabas.protocol.errors import ErrorCode

NO_TIME: Final = -1
"""A timestamp in the answer to a request that is not allowed."""


class TokenPrincipal(NamedTuple):
    """An owner, requester or renewer."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


@dataclass(slots=True)
class CreateDelegationTokenRequest:
    """Create a token for the requester, or for another owner. `max_lifetime_ms` below 1: the broker's maximum."""

    renewers: list[TokenPrincipal]
    max_lifetime_ms: int
    owner_type: str | None = None
    owner_name: str | None = None


@dataclass(slots=True)
class CreateDelegationTokenResponse:
    """The token with its HMAC, which is its password."""

    owner: TokenPrincipal
    requester: TokenPrincipal
    error: ErrorCode = ErrorCode.NONE
    issued_ms: int = 0
    expires_ms: int = 0
    max_ms: int = 0
    token_id: str = ""
    hmac: bytes = field(default=b"", repr=False)


@dataclass(slots=True)
class ChangeDelegationTokenRequest:
    """RenewDelegationToken or ExpireDelegationToken: the token with that HMAC shall end after `period_ms`."""

    hmac: bytes = field(repr=False)
    period_ms: int


@dataclass(slots=True)
class ChangeDelegationTokenResponse:
    """The new time of expiration."""

    error: ErrorCode = ErrorCode.NONE
    expires_ms: int = 0


@dataclass(slots=True)
class DescribeDelegationTokenRequest:
    """`owners` None: all tokens that the requester may see."""

    owners: list[TokenPrincipal] | None


@dataclass(slots=True)
class DescribedToken:
    """One token."""

    owner: TokenPrincipal
    requester: TokenPrincipal
    issued_ms: int
    expires_ms: int
    max_ms: int
    token_id: str
    hmac: bytes = field(repr=False)
    renewers: list[TokenPrincipal]


@dataclass(slots=True)
class DescribeDelegationTokenResponse:
    """The tokens."""

    error: ErrorCode = ErrorCode.NONE
    tokens: list[DescribedToken] = field(default_factory=list)
