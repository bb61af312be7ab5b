"""CreateDelegationToken (38), RenewDelegationToken (39), ExpireDelegationToken (40), DescribeDelegationToken (41).

Times in ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int32, Int64, Nullable, NullableString, SecretBytes, String

NO_TIME: Final = -1
"""A timestamp in the answer to a request that is not allowed."""


class TokenPrincipal(Struct):
    """An owner, requester or renewer."""

    type: String
    name: String

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


class CreateDelegationTokenResponse(Struct, flexible=2):
    """The token with its HMAC, which is its password."""

    error: Error = ErrorCode.NONE
    owner_type: String = ""
    owner_name: String = ""
    requester_type: String = since(3, default="")
    requester_name: String = since(3, default="")
    issued_ms: Int64 = 0
    expires_ms: Int64 = 0
    max_ms: Int64 = 0
    token_id: String = ""
    hmac: SecretBytes = b""
    throttle_ms: Int32 = 0


class CreateDelegationTokenRequest(
    Request[CreateDelegationTokenResponse], api=ApiKey.CREATE_DELEGATION_TOKEN, flexible=2
):
    """Create a token for the requester, or for another owner. `max_lifetime_ms` below 1: the broker's maximum."""

    owner_type: NullableString = since(3, default="")
    owner_name: NullableString = since(3, default="")
    renewers: Sequence[TokenPrincipal] = ()
    max_lifetime_ms: Int64

    def refused(self, code: ErrorCode, message: str) -> CreateDelegationTokenResponse:
        """The refusal of a request that could not be planned."""
        return CreateDelegationTokenResponse(error=code, issued_ms=NO_TIME, expires_ms=NO_TIME, max_ms=NO_TIME)


class ChangeDelegationTokenResponse(Struct, flexible=2):
    """The new time of expiration."""

    error: Error = ErrorCode.NONE
    expires_ms: Int64 = 0
    throttle_ms: Int32 = 0


class ChangeDelegationTokenRequest(Request[ChangeDelegationTokenResponse], flexible=2):
    """RenewDelegationToken or ExpireDelegationToken: the token with that HMAC shall end after `period_ms`."""

    hmac: SecretBytes
    period_ms: Int64

    def refused(self, code: ErrorCode, message: str) -> ChangeDelegationTokenResponse:
        """The code."""
        return ChangeDelegationTokenResponse(error=code)


class RenewDelegationTokenRequest(ChangeDelegationTokenRequest, api=ApiKey.RENEW_DELEGATION_TOKEN, flexible=2):
    """The token shall live longer."""


class ExpireDelegationTokenRequest(ChangeDelegationTokenRequest, api=ApiKey.EXPIRE_DELEGATION_TOKEN, flexible=2):
    """The token shall end sooner; with a negative period at once."""


RenewDelegationTokenResponse = ExpireDelegationTokenResponse = ChangeDelegationTokenResponse


class DescribedToken(Struct):
    """One token."""

    owner_type: String
    owner_name: String
    requester_type: String = since(3, default="")
    requester_name: String = since(3, default="")
    issued_ms: Int64
    expires_ms: Int64
    max_ms: Int64
    token_id: String
    hmac: SecretBytes
    renewers: Sequence[TokenPrincipal] = ()


class DescribeDelegationTokenResponse(Struct, flexible=2):
    """The tokens."""

    error: Error = ErrorCode.NONE
    tokens: Sequence[DescribedToken] = ()
    throttle_ms: Int32 = 0


class DescribeDelegationTokenRequest(
    Request[DescribeDelegationTokenResponse], api=ApiKey.DESCRIBE_DELEGATION_TOKEN, flexible=2
):
    """`owners` None: all tokens that the requester may see."""

    owners: Annotated[Sequence[TokenPrincipal] | None, Nullable()] = None

    def refused(self, code: ErrorCode, message: str) -> DescribeDelegationTokenResponse:
        """The code, without tokens."""
        return DescribeDelegationTokenResponse(error=code)
