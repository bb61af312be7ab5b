"""SaslHandshake (key 17) and SaslAuthenticate (key 36): a client authenticates before its first other request.

After version 0 of the handshake the mechanism's messages follow as bare frames, after version 1 as SaslAuthenticate
requests; see broker/security/sasl/gate.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bytes, Error, Int64, Message, SecretBytes, String

_NEVER_FLEXIBLE: Final = 2


class SaslHandshakeResponse(Struct, flexible=_NEVER_FLEXIBLE):
    """`mechanisms`: those that the listener has enabled."""

    error: Error = ErrorCode.NONE
    mechanisms: Sequence[String] = ()


class SaslHandshakeRequest(Request[SaslHandshakeResponse], api=ApiKey.SASL_HANDSHAKE, flexible=_NEVER_FLEXIBLE):
    """The mechanism that the client chose."""

    mechanism: String

    def refused(self, code: ErrorCode, message: str) -> SaslHandshakeResponse:
        """The code."""
        return SaslHandshakeResponse(error=code)


class SaslAuthenticateResponse(Struct, flexible=2):
    """The server's message.

    `session_lifetime_ms`: re-authenticate within that time; 0: no limit, or not authenticated yet. `message` is empty
    without an error, as in Kafka.
    """

    error: Error = ErrorCode.NONE
    message: Message = ""
    auth_bytes: Bytes = b""
    session_lifetime_ms: Int64 = since(1, default=0)


class SaslAuthenticateRequest(Request[SaslAuthenticateResponse], api=ApiKey.SASL_AUTHENTICATE, flexible=2):
    """One message of the mechanism."""

    auth_bytes: SecretBytes

    def refused(self, code: ErrorCode, message: str) -> SaslAuthenticateResponse:
        """The code and the message."""
        return SaslAuthenticateResponse(error=code, message=message)
