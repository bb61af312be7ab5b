"""Bounds the bodies of requests, because a form is read into memory before its token can be checked."""

from __future__ import annotations

from typing import Final

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

FORM_MAX_BYTES: Final = 256 * 1024
"""Of every form but the one below."""

RECORD_MAX_BYTES: Final = 64 * 1024 * 1024
"""Of a form with a record: 10 MB of bytes in hex, or of text in which each byte is escaped as three."""

_RECORD_PATH: Final = "/produce"


class _TooLargeError(Exception):
    """More has come than the path may have."""


class BodyLimit:
    """ASGI middleware that answers 413 to a larger body, and does not read the rest of it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and count its body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = RECORD_MAX_BYTES if scope["path"].endswith(_RECORD_PATH) else FORM_MAX_BYTES
        size, has_begun = 0, False

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > most:
                raise _TooLargeError
            return message

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            if _declared(scope) > most:
                raise _TooLargeError
            await self._app(scope, counted, noted)
        except _TooLargeError:
            if not has_begun:
                sentence = f"a form of this page has at most {most:,} bytes"
                response = PlainTextResponse(sentence, 413, headers={"Connection": "close"})
                await response(scope, receive, send)


def _declared(scope: Scope) -> int:
    """The Content-Length; 0 without one."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0
