"""DescribeUserScramCredentials (key 50): the mechanisms of users' passwords, without salts or keys."""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class DescribeUserScramCredentialsRequest:
    """An empty list means all users."""

    users: list[str]


@dataclass(slots=True)
class ScramCredentialInfo:
    """`mechanism` 1: SCRAM-SHA-256, 2: SCRAM-SHA-512."""

    mechanism: int
    iterations: int


@dataclass(slots=True)
class ScramUserResult:
    """One user's credentials."""

    user: str
    credentials: list[ScramCredentialInfo] = field(default_factory=list)
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(slots=True)
class DescribeUserScramCredentialsResponse:
    """Each user once."""

    results: list[ScramUserResult]
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
