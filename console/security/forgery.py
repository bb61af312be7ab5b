"""Refuses requests that another site makes in the name of someone who uses the console.

Two things are checked. The Host must be an address, localhost, or a name that the console was started with: otherwise
a site could have its own name resolve to this machine and read the pages. A request that signs in or out, or changes
something, must come from a page of the console: its Origin is the Host, and its form has the session's token.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from hmac import compare_digest
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

TOKEN_FIELD: Final = "csrf_token"


class KnownHosts:
    """ASGI middleware that answers 400 to a Host header with an unknown name."""

    def __init__(self, app: ASGIApp, host_names: Collection[str]) -> None:
        """`host_names`: those besides addresses and localhost."""
        self._app = app
        self._host_names = {each.lower() for each in host_names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] == "http":
            host = _host_name(Headers(scope=scope).get("host", ""))
            if host != "localhost" and host not in self._host_names and not _is_address(host):
                sentence = f"this console does not answer for the name {host!r}: start it with --host-name {host}"
                await PlainTextResponse(sentence, 400)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def ensure_own_origin(request: Request) -> None:
    """Raise HTTPException (403) if the Origin is not the Host."""
    origin = urlsplit(request.headers.get("origin", "")).netloc
    if origin != request.headers.get("host"):
        raise HTTPException(403, "the request was not made by a page of this console (Origin and Host differ)")


def ensure_own_page(request: Request, given: str, expected: str) -> None:
    """Raise HTTPException (403) unless the request was made by one of the console's own pages."""
    ensure_own_origin(request)
    if not compare_digest(given.encode(), expected.encode()):
        raise HTTPException(403, "the form is out of date: load its page again and repeat the change")


def _host_name(host: str) -> str:
    return urlsplit(f"//{host}").hostname or ""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
