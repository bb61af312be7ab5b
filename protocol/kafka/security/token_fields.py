"""Fields of principals and messages that the delegation tokens' codecs share."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    BYTES,
    INT16,
    INT64,
    NO_THROTTLE,
    STRING,
    Computed,
    Field,
    Message,
    rows,
    since,
)
from barnabas.protocol.messages.security.delegation_tokens import (
    ChangeDelegationTokenRequest,
    ChangeDelegationTokenResponse,
    TokenPrincipal,
)

PRINCIPALS: Final = rows(TokenPrincipal, type=STRING, name=STRING)

OWNER_AND_REQUESTER: Final[dict[str, Field]] = {
    "principal_type": Computed(STRING, attrgetter("owner.type")),
    "principal_name": Computed(STRING, attrgetter("owner.name")),
    "requester_type": since(3, Computed(STRING, attrgetter("requester.type"))),
    "requester_name": since(3, Computed(STRING, attrgetter("requester.name"))),
}

CHANGE_REQUEST: Final = Message(2, ChangeDelegationTokenRequest, hmac=BYTES, period_ms=INT64)
CHANGE_RESPONSE: Final = Message(2, error=INT16, expires_ms=INT64, throttle_ms=NO_THROTTLE)


def encode_change_error(version: int, request: object, code: ErrorCode, message: str) -> bytes:
    """The refusal of RenewDelegationToken and ExpireDelegationToken."""
    return CHANGE_RESPONSE.write(version, ChangeDelegationTokenResponse(code))
