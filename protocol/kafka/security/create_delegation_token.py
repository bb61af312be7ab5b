"""CreateDelegationToken (38), versions 1-3. The owner and the requester came with version 3."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import BYTES, INT16, INT64, NO_THROTTLE, NULLABLE_STRING, STRING, Message, since
from barnabas.protocol.kafka.security.token_fields import OWNER_AND_REQUESTER, PRINCIPALS
from barnabas.protocol.messages.security.delegation_tokens import (
    NO_TIME,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    TokenPrincipal,
)

REQUEST = Message(
    2,
    CreateDelegationTokenRequest,
    owner_type=since(3, NULLABLE_STRING),
    owner_name=since(3, NULLABLE_STRING),
    renewers=PRINCIPALS,
    max_lifetime_ms=INT64,
)
RESPONSE = Message(
    2,
    error=INT16,
    **OWNER_AND_REQUESTER,
    issued_ms=INT64,
    expires_ms=INT64,
    max_ms=INT64,
    token_id=STRING,
    hmac=BYTES,
    throttle_ms=NO_THROTTLE,
)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: CreateDelegationTokenRequest, code: ErrorCode, message: str) -> bytes:
    """The refusal of a request that could not be planned."""
    nobody = TokenPrincipal("", "")
    return RESPONSE.write(version, CreateDelegationTokenResponse(nobody, nobody, code, NO_TIME, NO_TIME, NO_TIME))
