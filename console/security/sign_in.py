"""The pages to sign in and out, with a user and password of the broker (SASL/SCRAM or PLAIN)."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from barnabas.clients.errors import AuthenticationError
from barnabas.clients.security.settings import Password
from barnabas.config.security.secret import Secret
from barnabas.console.cluster.access import ClusterAccess
from barnabas.console.security.forgery import TOKEN_FIELD, ensure_own_page
from barnabas.console.security.sessions import Session
from barnabas.console.web import console_of, render

logger = logging.getLogger(__name__)

_LOGGED_CHARACTERS: Final = 100
"""Of a claimed user's name, which may be as long as a form."""


async def _sign_in(request: Request) -> Response:
    console = console_of(request)
    if request.method != "POST":
        return render(request, "sign_in.html", next=_own_path(request.query_params.get("next", "/")))
    form = await request.form()
    ensure_own_page(request, str(form.get(TOKEN_FIELD, "")), console.token_of(request))
    user, password = str(form.get("user", "")).strip(), str(form.get("password", ""))
    client = console.settings.client
    mechanism = console.settings.sign_in_mechanism
    if mechanism is None:
        raise HTTPException(404)
    security = replace(client.security, mechanism=mechanism, login=Password(user, Secret(password)))
    try:
        access = await ClusterAccess.open(replace(client, security=security), console.settings.observation_interval_s)
    except AuthenticationError as error:
        host = request.client and request.client.host
        logger.warning("sign-in of %r from %s failed: %s", user[:_LOGGED_CHARACTERS], host, error)
        return render(
            request, "sign_in.html", status=401, user=user, next=_own_path(str(form.get("next", "/"))), failed=True
        )
    response = RedirectResponse(_own_path(str(form.get("next", "/"))), 303)
    await console.sessions.begin(request, response, Session(user, access))
    return response


async def _sign_out(request: Request) -> Response:
    console = console_of(request)
    form = await request.form()
    ensure_own_page(request, str(form.get(TOKEN_FIELD, "")), console.token_of(request))
    await console.sessions.end(request)
    return RedirectResponse("/sign-in", 303)


def _own_path(path: str) -> str:
    """Return the path if it is one of this console's, else the first page."""
    is_own = path.startswith("/") and not path.startswith("//") and "\\" not in path
    return path if is_own else "/"


ROUTES = (
    Route("/sign-in", _sign_in, methods=["GET", "POST"]),
    Route("/sign-out", _sign_out, methods=["POST"]),
)
