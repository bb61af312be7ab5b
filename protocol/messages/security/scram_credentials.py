"""AlterUserScramCredentials (key 51): sets and deletes SCRAM passwords of users.

Mechanisms are Kafka's numbers: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode


class ScramDeletion(NamedTuple):
    """Deletes a user's credential of one mechanism."""

    name: str
    mechanism: int


class ScramUpsertion(NamedTuple):
    """Sets a user's credential of one mechanism. The salted password is a secret: it suffices to log in."""

    name: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes

    def __repr__(self) -> str:
        return f"ScramUpsertion({self.name!r}, mechanism={self.mechanism}, [hidden])"


@dataclass(slots=True)
class AlterUserScramCredentialsRequest:
    """At most one change per user."""

    deletions: list[ScramDeletion] = field(default_factory=list)
    upsertions: list[ScramUpsertion] = field(default_factory=list)

    def changes(self) -> list[ScramDeletion | ScramUpsertion]:
        """Return deletions and upsertions, in the order in which Kafka checks them."""
        return [*self.deletions, *self.upsertions]


@dataclass(slots=True)
class AlteredScramUser:
    """The result for one user."""

    user: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(slots=True)
class AlterUserScramCredentialsResponse:
    """Each user of the request once."""

    results: list[AlteredScramUser]
