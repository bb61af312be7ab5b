"""What every page needs: the running console, the user's access to the cluster, and templates."""

from __future__ import annotations

import asyncio
import logging
import secrets
from dataclasses import replace
from typing import Any

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse

from barnabas.clients.errors import ClientError
from barnabas.console.cluster.access import ClusterAccess
from barnabas.console.formats import ENVIRONMENT
from barnabas.console.records.schemas import SchemaRegistry
from barnabas.console.security.forgery import TOKEN_FIELD, ensure_own_origin, ensure_own_page
from barnabas.console.security.mechanism import offered_mechanism
from barnabas.console.security.sessions import SessionStore
from barnabas.console.settings import ConsoleSettings

logger = logging.getLogger(__name__)


class SignInNeededError(Exception):
    """A page was asked for without a session."""


class Console:
    """The state of a running console: one per application."""

    def __init__(self, settings: ConsoleSettings) -> None:
        self.settings = settings
        """With the mechanism by which people sign in once the cluster was asked for it, see `_settle_sign_in`."""
        self.sessions = SessionStore()
        url = settings.schema_registry
        self.schemas = None if url is None else SchemaRegistry(url)
        self.token = secrets.token_urlsafe(32)
        """The forms' token of browsers that have no session."""
        self._shared: ClusterAccess | None = None
        self._opening = asyncio.Lock()
        self._is_settled = settings.sign_in_mechanism is not None or settings.client.security.mechanism is not None

    async def observe(self, timeout_s: float) -> None:
        """Begin to observe the cluster, and wait for the first snapshot, or for its failure, but no longer than this.

        Where people sign in, observations begin with their sessions.
        """
        if self.settings.sign_in_mechanism is not None:
            return
        try:
            async with asyncio.timeout(timeout_s):
                await (await self._shared_access()).observer.snapshot()
        except SignInNeededError:
            return
        except (ClientError, TimeoutError) as error:
            logger.info("the cluster is not known yet: %s", str(error) or "it has not answered")

    async def access(self, request: Request) -> ClusterAccess:
        """Return the connections that a request may use. Raises SignInNeededError and ClientError."""
        if self.settings.sign_in_mechanism is not None:
            session = self.sessions.find(request)
            if session is None:
                raise SignInNeededError
            return session.access
        return await self._shared_access()

    async def _shared_access(self) -> ClusterAccess:
        async with self._opening:
            await self._settle_sign_in()
            if self._shared is None:
                self._shared = await ClusterAccess.open(self.settings.client, self.settings.observation_interval_s)
            return self._shared

    async def _settle_sign_in(self) -> None:
        """Find out whether people have to sign in, unless the console was started with a login, or told so.

        Raises SignInNeededError if they do, ClientError while the cluster cannot be asked.
        """
        if not self._is_settled:
            mechanism = await offered_mechanism(self.settings.client)
            self.settings = replace(self.settings, sign_in_mechanism=mechanism)
            self._is_settled = True
        if self.settings.sign_in_mechanism is not None:
            raise SignInNeededError

    def token_of(self, request: Request) -> str:
        """Return the token that forms of this browser have."""
        session = self.sessions.find(request)
        return self.token if session is None else session.token

    async def close(self) -> None:
        """Close all connections to the brokers."""
        await self.sessions.close()
        if self._shared is not None:
            await self._shared.close()


def console_of(request: Request) -> Console:
    """Return the console that serves a request."""
    console: Console = request.app.state.console
    return console


async def access_of(request: Request) -> ClusterAccess:
    """Return the connections that a request may use. Raises SignInNeededError and ClientError."""
    return await console_of(request).access(request)


def ensure_changes(request: Request) -> None:
    """Raise HTTPException (403) if the console only shows."""
    if not console_of(request).settings.allows_changes:
        raise HTTPException(403, "this console only shows: start it with --allow-changes to change something")


async def checked_form(request: Request) -> FormData:
    """Return the form of a request that changes something.

    Raises HTTPException (403) if the console only shows, or if the form is not from one of its pages, and
    SignInNeededError. The form, which may be large, is read last.
    """
    console = console_of(request)
    ensure_changes(request)
    ensure_own_origin(request)
    if console.settings.sign_in_mechanism is not None and console.sessions.find(request) is None:
        raise SignInNeededError
    form = await request.form()
    ensure_own_page(request, str(form.get(TOKEN_FIELD, "")), console.token_of(request))
    return form


def field(form: FormData, name: str) -> str:
    """Return a text field of a form, without spaces around it; empty if it is not there."""
    value = form.get(name, "")
    return value.strip() if isinstance(value, str) else ""


def chosen(form: FormData, name: str) -> str:
    """Return a text field as it is: what a page of ours has filled in may be a name with spaces around it."""
    value = form.get(name, "")
    return value if isinstance(value, str) else ""


def render(request: Request, template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
    """Make a page. Templates also have `request`, `settings`, `session` and `csrf_token`."""
    console = console_of(request)
    session = console.sessions.find(request)
    page = ENVIRONMENT.get_template(template).render(
        request=request,
        settings=console.settings,
        session=session,
        csrf_token=console.token_of(request),
        **context,
    )
    return HTMLResponse(page, status)
