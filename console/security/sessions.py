"""Sessions: what belongs to one browser. A cookie has the random name of a session, everything else stays here."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from barnabas.console.cluster.access import ClusterAccess

COOKIE: Final = "barnabas_console"

IDLE_S: Final = 8 * 3600
"""A session ends when no page was asked for so long."""

SESSIONS_MAX: Final = 200
"""Each has connections to the brokers; the one that was idle for longest ends when there are more."""


@dataclass(slots=True)
class Session:
    """A user who is signed in, with connections of their own."""

    user: str
    access: ClusterAccess
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """Put into every form, see `forgery`."""
    used_at: float = field(default_factory=time.monotonic)


class SessionStore:
    """Sessions by the value of their cookie."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}

    def find(self, request: Request) -> Session | None:
        """Return the session of a request, if it has not ended."""
        session = self._sessions.get(request.cookies.get(COOKIE, ""))
        if session is None or time.monotonic() - session.used_at > IDLE_S:
            return None
        session.used_at = time.monotonic()
        return session

    async def begin(self, request: Request, response: Response, session: Session) -> None:
        """Keep a session, and put its cookie into the response. A session of the same browser before it ends."""
        await self.end(request)
        await self._end_oldest()
        name = secrets.token_urlsafe(32)
        self._sessions[name] = session
        response.set_cookie(COOKIE, name, httponly=True, samesite="strict", secure=request.url.scheme == "https")

    async def end(self, request: Request) -> None:
        """End the session of a request and close its connections."""
        session = self._sessions.pop(request.cookies.get(COOKIE, ""), None)
        if session is not None:
            await session.access.close()

    async def close(self) -> None:
        """End all sessions."""
        for session in self._sessions.values():
            await session.access.close()
        self._sessions.clear()

    async def _end_oldest(self) -> None:
        now = time.monotonic()
        by_use = sorted(self._sessions.items(), key=lambda each: each[1].used_at)
        surplus = len(by_use) - SESSIONS_MAX + 1
        for index, (name, session) in enumerate(by_use):
            if index < surplus or now - session.used_at > IDLE_S:
                del self._sessions[name]
                await session.access.close()
