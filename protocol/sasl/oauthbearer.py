r"""OAUTHBEARER (RFC 7628), both sides.

The client's first message is `n,[a=authzid],^A(key=value^A)*^A`, with one pair `auth=Bearer <token>`. The answer to a
refused token is a challenge, a JSON object; the client then sends one byte ^A, and the exchange fails with that JSON as
its message. The texts are Kafka's. Source: OAuthBearerSaslServer, OAuthBearerClientInitialResponse.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from barnabas.protocol.sasl.exchange import Challenge, Failure, SaslError, Step, Success, Work

OAUTHBEARER: Final = "OAUTHBEARER"

MAX_TOKEN_CHARACTERS: Final = 64 * 1024
"""Limit on a token before anything of it is decoded."""

_SEPARATOR: Final = "\x01"
_END_OF_FAILED_EXCHANGE: Final = b"\x01"
_FIRST_MESSAGE: Final = re.compile(
    r"n,(?:a=(?P<identity>(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)
_INVALID_TOKEN: Final = '{"status":"invalid_token"}'


class AcceptedToken(NamedTuple):
    """What a valid token says: whose it is, and its end in ms since the epoch."""

    user: str
    expires_at_ms: int


class RefusedToken(NamedTuple):
    """Why a token is not valid, for the log; without anything of the token."""

    reason: str


class FirstMessage(NamedTuple):
    """The client's first message; its extensions are checked for their form and ignored."""

    token: str
    identity: str

    def __repr__(self) -> str:
        return "FirstMessage([hidden])"


def parse_first_message(data: bytes) -> FirstMessage:
    """Parse a first message. Raises SaslError, whose text contains nothing of the message."""
    # Bounded before the expressions run: they are linear, but a token of a megabyte is nobody's.
    text = data.decode(errors="replace")
    if len(text) > 2 * MAX_TOKEN_CHARACTERS:
        raise SaslError("the OAUTHBEARER message is too long")
    match = _FIRST_MESSAGE.fullmatch(text)
    if match is None:
        raise SaslError("the OAUTHBEARER message is malformed")
    pairs = dict(pair.split("=", 1) for pair in match["pairs"].split(_SEPARATOR) if pair)
    auth = _AUTH.fullmatch(pairs.get("auth", ""))
    if auth is None or auth["scheme"].lower() != "bearer":
        raise SaslError("the OAUTHBEARER message has no bearer token")
    if len(auth["token"]) > MAX_TOKEN_CHARACTERS:
        raise SaslError("the token is too long")
    return FirstMessage(auth["token"], match["identity"] or "")


class OAuthBearerServer:
    """The server side. `validate` may block; it is called as the Work of a step."""

    def __init__(self, validate: Callable[[str], AcceptedToken | RefusedToken]) -> None:
        self._validate = validate
        self._identity = ""
        self._refused: RefusedToken | None = None

    def respond(self, data: bytes) -> Step:
        """Take the first message, or the byte that ends a failed exchange."""
        if self._refused is not None and data == _END_OF_FAILED_EXCHANGE:
            return Failure(self._refused.reason, _INVALID_TOKEN)
        self._refused = None
        try:
            first = parse_first_message(data)
        except SaslError as error:
            return Failure(str(error))
        self._identity = first.identity
        return Work(lambda: self._validate(first.token))

    def resume(self, result: Any) -> Step:
        """Take the outcome of `validate`."""
        if isinstance(result, RefusedToken):
            self._refused = result
            return Challenge(_INVALID_TOKEN.encode())
        assert isinstance(result, AcceptedToken), "the outcome of validate"
        if self._identity not in ("", result.user):
            text = (
                f"Authentication failed: Client requested an authorization id ({self._identity}) that is different "
                f"from the token's principal name ({result.user})"
            )
            return Failure("the authorization id is not the token's subject", text, result.user)
        return Success(b"", result.user, result.expires_at_ms)


class OAuthBearerClient:
    """The client side."""

    def __init__(self, token: str) -> None:
        """Raises SaslError for a token that is not one."""
        if _AUTH.fullmatch(f"Bearer {token}") is None:
            raise SaslError("the text is not a bearer token: a token has letters, digits and -_~+/.= only")
        self._message = f"n,,\x01auth=Bearer {token}\x01\x01".encode()
        self.is_complete = False

    def start(self) -> bytes:
        """Return the first message."""
        return self._message

    def respond(self, data: bytes) -> bytes | None:
        """Take the server's answer: empty if the token is accepted, else JSON with the reason."""
        if data:
            return _END_OF_FAILED_EXCHANGE
        self.is_complete = True
        return None
