"""SaslAuthenticate (36), versions 0-2: one message of a SASL mechanism each way; see broker/security/sasl/gate.py.

Version 1 added the session's lifetime, version 2 is flexible.
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import BYTES, INT16, INT64, MESSAGE, Message, since
from barnabas.protocol.messages.security.sasl import SaslAuthenticateRequest, SaslAuthenticateResponse

REQUEST = Message(2, SaslAuthenticateRequest, auth_bytes=BYTES)
RESPONSE = Message(2, error=INT16, message=MESSAGE, auth_bytes=BYTES, session_lifetime_ms=since(1, INT64))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: SaslAuthenticateRequest, code: ErrorCode, message: str) -> bytes:
    """A refusal."""
    return RESPONSE.write(version, SaslAuthenticateResponse(error=code, message=message))
