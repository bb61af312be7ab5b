"""SaslHandshake (17), versions 0-1: the choice of a SASL mechanism; see broker/security/sasl/gate.py.

After version 0 the mechanism's messages follow as bare frames, after version 1 as SaslAuthenticate requests.
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import INT16, STRING, Array, Message
from barnabas.protocol.messages.security.sasl import SaslHandshakeRequest, SaslHandshakeResponse

_NEVER_FLEXIBLE = 2

REQUEST = Message(_NEVER_FLEXIBLE, SaslHandshakeRequest, mechanism=STRING)
RESPONSE = Message(_NEVER_FLEXIBLE, error=INT16, mechanisms=Array(STRING))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: SaslHandshakeRequest, code: ErrorCode, message: str) -> bytes:
    """A refusal."""
    return RESPONSE.write(version, SaslHandshakeResponse(code))
