"""DescribeDelegationToken (41), versions 1-3. The requester came with version 3."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import BYTES, INT16, INT64, NO_THROTTLE, STRING, Array, Message, rows
from barnabas.protocol.kafka.security.token_fields import OWNER_AND_REQUESTER, PRINCIPALS
from barnabas.protocol.messages.security.delegation_tokens import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

REQUEST = Message(2, DescribeDelegationTokenRequest, owners=Array(PRINCIPALS.item, nullable_from=0))
RESPONSE = Message(
    2,
    error=INT16,
    tokens=rows(
        **OWNER_AND_REQUESTER,
        issued_ms=INT64,
        expires_ms=INT64,
        max_ms=INT64,
        token_id=STRING,
        hmac=BYTES,
        renewers=PRINCIPALS,
    ),
    throttle_ms=NO_THROTTLE,
)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: DescribeDelegationTokenRequest, code: ErrorCode, message: str) -> bytes:
    """A refusal without tokens."""
    return RESPONSE.write(version, DescribeDelegationTokenResponse(code))
