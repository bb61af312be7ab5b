"""DescribeUserScramCredentials (50) and AlterUserScramCredentials (51): SCRAM passwords of users.

Mechanisms are Kafka's numbers: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512. Salts and keys are never described.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int8, Int32, Message, Nullable, SecretBytes, String


class ScramCredentialInfo(Struct):
    """One credential."""

    mechanism: Int8
    iterations: Int32


class ScramUserResult(Struct):
    """One user's credentials."""

    user: String
    error: Error = ErrorCode.NONE
    message: Message = None
    credentials: Sequence[ScramCredentialInfo] = ()


class DescribeUserScramCredentialsResponse(Struct, flexible=0):
    """Each user once."""

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    message: Message = None
    results: Sequence[ScramUserResult] = ()


class UserName(Struct):
    """A user to describe."""

    name: String


class DescribeUserScramCredentialsRequest(
    Request[DescribeUserScramCredentialsResponse], api=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, flexible=0
):
    """None, or an empty list, means all users."""

    users: Annotated[Sequence[UserName] | None, Nullable()] = None

    @property
    def names(self) -> list[str]:
        """The users' names; empty for all."""
        return [each.name for each in self.users or ()]

    def refused(self, code: ErrorCode, message: str) -> DescribeUserScramCredentialsResponse:
        """The refusal of the whole request and, as in Kafka without its name, of each user."""
        results = [ScramUserResult(user="", error=code, message=message) for _ in self.users or ()]
        return DescribeUserScramCredentialsResponse(error=code, message=message, results=results)


class ScramDeletion(Struct):
    """Deletes a user's credential of one mechanism."""

    name: String
    mechanism: Int8


class ScramUpsertion(Struct):
    """Sets a user's credential of one mechanism. The salted password is a secret: it suffices to log in."""

    name: String
    mechanism: Int8
    iterations: Int32
    salt: SecretBytes
    salted_password: SecretBytes


class AlteredScramUser(Struct):
    """The result for one user."""

    user: String
    error: Error = ErrorCode.NONE
    message: Message = None


class AlterUserScramCredentialsResponse(Struct, flexible=0):
    """Each user of the request once."""

    throttle_ms: Int32 = 0
    results: Sequence[AlteredScramUser]


class AlterUserScramCredentialsRequest(
    Request[AlterUserScramCredentialsResponse], api=ApiKey.ALTER_USER_SCRAM_CREDENTIALS, flexible=0
):
    """At most one change per user."""

    deletions: Sequence[ScramDeletion] = ()
    upsertions: Sequence[ScramUpsertion] = ()

    def changes(self) -> list[ScramDeletion | ScramUpsertion]:
        """Return deletions and upsertions, in the order in which Kafka checks them."""
        return [*self.deletions, *self.upsertions]

    def refused(self, code: ErrorCode, message: str) -> AlterUserScramCredentialsResponse:
        """The refusal at every user."""
        names = dict.fromkeys(change.name for change in self.changes())
        results = [AlteredScramUser(user=name, error=code, message=message) for name in names]
        return AlterUserScramCredentialsResponse(results=results)
