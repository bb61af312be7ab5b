"""The console as a Starlette application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from barnabas.clients.errors import ClientError, RefusedError
from barnabas.console.formats import compile_templates
from barnabas.console.pages import ROUTES
from barnabas.console.security import sign_in
from barnabas.console.security.body_limit import BodyLimit
from barnabas.console.security.forgery import KnownHosts
from barnabas.console.security.headers import SecurityHeaders
from barnabas.console.settings import ConsoleSettings
from barnabas.console.web import Console, SignInNeededError, render

_STATIC: Final = Path(__file__).parent / "static"

_FIRST_OBSERVATION_S: Final = 5.0
"""How long the start waits for it, so that no page has to; without brokers, pages say why."""


def build_app(
    settings: ConsoleSettings,
    host_names: Collection[str] = (),
    ready: Callable[[ConsoleSettings], None] = lambda _: None,
) -> Starlette:
    """Return the application. `host_names`: names, besides addresses and localhost, under which it is reached.

    `ready` is called once, when pages are served, and before the first one is asked for, with the settings and the
    mechanism by which people sign in, if the cluster has already told that.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.console = console = Console(settings)
        await asyncio.gather(console.observe(_FIRST_OBSERVATION_S), asyncio.to_thread(compile_templates))
        ready(console.settings)
        try:
            yield
        finally:
            await app.state.console.close()

    return Starlette(
        routes=[*ROUTES, *sign_in.ROUTES, Mount("/static", StaticFiles(directory=_STATIC), name="static")],
        middleware=[
            Middleware(SecurityHeaders),
            Middleware(KnownHosts, host_names=host_names),
            Middleware(BodyLimit),
        ],
        exception_handlers={
            SignInNeededError: _sign_in_needed,
            ClientDisconnect: _gone,
            ClientError: _cluster_failed,
            HTTPException: _refused,
        },
        lifespan=lifespan,
    )


async def _sign_in_needed(request: Request, error: Exception) -> Response:
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse(f"/sign-in?next={quote(path)}", 303)


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=400)  # which nobody reads: the client left within its form


async def _cluster_failed(request: Request, error: Exception) -> Response:
    status = 409 if isinstance(error, RefusedError) else 502
    return render(request, "error.html", status=status, heading="The broker did not answer as asked", reason=str(error))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    heading = "There is no such page" if error.status_code == 404 else "This is not possible"
    reason = request.url.path if error.status_code == 404 and error.detail == "Not Found" else error.detail
    return render(request, "error.html", status=error.status_code, heading=heading, reason=reason)
