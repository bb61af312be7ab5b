"""One GET of an HTTPS address within a deadline, for documents of an identity provider.

The standard library limits each wait for the socket alone: a provider that sends a byte every few seconds would hold
its caller for days. Here every wait gets the time that is left of the whole fetch, redirections included. Only the
resolver's own timeouts limit the lookup of the host's name.
"""

from __future__ import annotations

import http.client
import io
import ssl
import time
import urllib.error
import urllib.request
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import socket


class FetchError(Exception):
    """The document cannot be fetched; `str(error)` is one sentence."""


def fetch_https(url: str, *, max_bytes: int, timeout_seconds: float) -> bytes:
    """Return the body at an HTTPS URL. Raises FetchError. Blocks for at most `timeout_seconds`, and the name's lookup.

    Like `urllib`, it uses the proxy and the authorities of the environment.
    """
    deadline = time.monotonic() + timeout_seconds
    opener = urllib.request.build_opener(_HttpsOnly, _HttpsWithDeadline(deadline))
    try:
        with opener.open(url, timeout=timeout_seconds) as response:
            body: bytes = response.read(max_bytes + 1)
    except urllib.error.HTTPError as error:
        with error:
            raise FetchError(f"{url} answered {error.code}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, TimeoutError):
            reason = f"no complete response within {timeout_seconds:g} s"
        raise FetchError(f"{url} cannot be fetched: {reason}") from error
    if len(body) > max_bytes:
        raise FetchError(f"{url} has more than {max_bytes} bytes")
    return body


class _HttpsOnly(urllib.request.HTTPRedirectHandler):
    """Follows redirections to HTTPS addresses only: keys from elsewhere could be anybody's."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if urlsplit(newurl).scheme != "https":
            raise urllib.error.URLError(f"it redirects to {newurl}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _HttpsWithDeadline(urllib.request.HTTPSHandler):
    """Opens connections whose waits end at a deadline of the monotonic clock."""

    def __init__(self, deadline: float) -> None:
        super().__init__()
        self._deadline = deadline

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        context = ssl.create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        connection: Any = partial(_Connection, self._deadline)
        return self.do_open(connection, req, context=context)


class _Connection(http.client.HTTPSConnection):
    """A connection for one request. Connecting and the TLS handshake are one wait each, limited by `timeout`."""

    def __init__(self, deadline: float, host: str, **options: Any) -> None:
        options["timeout"] = _left(deadline)
        super().__init__(host, **options)
        self._deadline = deadline
        response: Any = partial(_Response, deadline)
        self.response_class = response  # also of a proxy's response to CONNECT

    def connect(self) -> None:
        self.timeout = _left(self._deadline)
        super().connect()


class _Response(http.client.HTTPResponse):
    """A response that is read until the deadline."""

    def __init__(self, deadline: float, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp.close()
        self.fp = io.BufferedReader(_Reader(deadline, sock))


class _Reader(io.RawIOBase):
    """The bytes of a socket, which stays open until this is closed."""

    def __init__(self, deadline: float, sock: socket.socket) -> None:
        self._deadline = deadline
        self._socket = sock
        self._bytes = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._socket.settimeout(_left(self._deadline))
        return self._bytes.readinto(buffer)

    def close(self) -> None:
        self._bytes.close()
        super().close()


def _left(deadline: float) -> float:
    """Return the seconds until the deadline. Raises TimeoutError."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left
