"""Messages of SCRAM (RFC 5802), as Kafka reads and writes them.

    client-first    n,[a=<authzid>],n=<user>,r=<nonce>[,<name>=<value>]...
    server-first    r=<client's nonce><server's nonce>,s=<salt>,i=<iterations>
    client-final    c=<base64 of the header n,[a=],>,r=<both nonces>,p=<proof>
    server-final    v=<signature>, or e=<error>

Channel binding (`y`, `p`) and mandatory extensions (`m=`) are refused; other extensions are ignored, as the RFC says,
but for Kafka's `tokenauth=true` in client-first: the user name is a token id. Names are ASCII, with `=2C` for a comma
and `=3D` for an equals sign. Readers raise SaslError. Source: Kafka's ScramMessages.
"""

from __future__ import annotations

import base64
import re
from typing import Final, NamedTuple

from barnabas.protocol.sasl.exchange import SaslError

GS2_HEADER: Final = "n,,"
"""No channel binding, no authorization id."""

_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_NONCE = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"

_CLIENT_FIRST = re.compile(
    rf"(?P<gs2>n,(?:a=(?P<identity>{_NAME}))?,)(?P<bare>n=(?P<user>{_NAME}),r=(?P<nonce>{_NONCE})"
    rf"(?P<extensions>{_EXTENSIONS}))"
)
_SERVER_FIRST = re.compile(rf"r=(?P<nonce>{_NONCE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,9}}){_EXTENSIONS}")
_CLIENT_FINAL = re.compile(
    rf"(?P<unproved>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_NONCE})(?:,(?!p=)[A-Za-z]+={_VALUE})*),p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL = re.compile(rf"(?:e=(?P<error>{_VALUE})|v=(?P<signature>{_BASE64})){_EXTENSIONS}")
_ESCAPES = {"=2C": ",", "=3D": "="}


class ClientFirst(NamedTuple):
    """`bare` is the message after the header, which both sides sign. `identity` is empty if it is not given."""

    identity: str
    user: str
    nonce: str
    is_token: bool
    bare: str


class ServerFirst(NamedTuple):
    """The server's nonce begins with the client's."""

    nonce: str
    salt: bytes
    iterations: int


class ClientFinal(NamedTuple):
    """`unproved` is the message without the proof, which both sides sign."""

    nonce: str
    proof: bytes
    unproved: str


def read_client_first(data: bytes) -> ClientFirst:
    """Read the client's first message."""
    found = _match(_CLIENT_FIRST, data, "client-first")
    extensions = dict(each.partition("=")[::2] for each in found["extensions"].split(",") if each)
    return ClientFirst(
        identity=_unescape(found["identity"] or ""),
        user=_unescape(found["user"]),
        nonce=found["nonce"],
        is_token=extensions.get("tokenauth", "").lower() == "true",
        bare=found["bare"],
    )


def client_first_bare(user: str, nonce: str, *, is_token: bool) -> str:
    """Return the client's first message without its header. Raises SaslError for a name that SCRAM cannot transport."""
    name = user.replace("=", "=3D").replace(",", "=2C")
    if re.fullmatch(_NAME, name) is None:
        raise SaslError("SCRAM needs a user name, in ASCII")
    return f"n={name},r={nonce}{',tokenauth=true' if is_token else ''}"


def server_first(nonce: str, salt: bytes, iterations: int) -> str:
    """Return the server's first message."""
    return f"r={nonce},s={_encode(salt)},i={iterations}"


def read_server_first(data: bytes) -> ServerFirst:
    """Read the server's first message."""
    found = _match(_SERVER_FIRST, data, "server-first")
    return ServerFirst(found["nonce"], base64.b64decode(found["salt"]), int(found["iterations"]))


def client_final_unproved(nonce: str) -> str:
    """Return the client's final message without its proof."""
    return f"c={_encode(GS2_HEADER.encode())},r={nonce}"


def client_final(unproved: str, proof: bytes) -> bytes:
    """Return the client's final message."""
    return f"{unproved},p={_encode(proof)}".encode()


def read_client_final(data: bytes) -> ClientFinal:
    """Read the client's final message. The channel binding is not compared: the server offers none, as in Kafka."""
    found = _match(_CLIENT_FINAL, data, "client-final")
    return ClientFinal(found["nonce"], base64.b64decode(found["proof"]), found["unproved"])


def server_final(signature: bytes) -> bytes:
    """Return the server's final message."""
    return f"v={_encode(signature)}".encode()


def read_server_final(data: bytes) -> bytes:
    """Return the signature of the server's final message. Raises SaslError also where the server reports an error."""
    found = _match(_SERVER_FINAL, data, "server-final")
    if found["error"] is not None:
        raise SaslError(f"the server refuses the SCRAM login: {found['error']}")
    return base64.b64decode(found["signature"])


def _match(pattern: re.Pattern[str], data: bytes, what: str) -> re.Match[str]:
    """Match a whole message. The error does not quote it: messages contain proofs."""
    try:
        found = pattern.fullmatch(data.decode("ascii"))
    except UnicodeDecodeError:
        found = None
    if found is None:
        raise SaslError(f"the SCRAM {what} message is malformed")
    return found


def _unescape(name: str) -> str:
    return re.sub("=2C|=3D", lambda found: _ESCAPES[found[0]], name)


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()
