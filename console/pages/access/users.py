"""Users with SCRAM passwords: the list, a new password, deletion. A password is never shown or logged."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from barnabas.clients.errors import RefusedError
from barnabas.clients.network.cluster import Cluster
from barnabas.console.cluster.security import ensure_answered
from barnabas.console.pages.listing import Listing
from barnabas.console.web import access_of, checked_form, chosen, field, render
from barnabas.protocol.messages.security.scram_credentials import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramDeletion,
)
from barnabas.protocol.sasl.scram_keys import SCRAM_MECHANISMS
from barnabas.protocol.sasl.scram_upsertions import scram_upsertion

_LABELS: Final = {mechanism.code: label for label, mechanism in SCRAM_MECHANISMS.items()}


class Credential(NamedTuple):
    """A user's password of one mechanism; `code` is Kafka's number of it."""

    user: str
    mechanism: str
    iterations: int
    code: int


async def _users(request: Request) -> Response:
    return await _page(request)


async def _page(request: Request, problem: str | None = None) -> Response:
    access = await access_of(request)
    found: Sequence[Credential] = ()
    status = 200 if problem is None else 409
    try:
        found = await _described(access.kafka)
    except RefusedError as error:
        problem = problem or str(error)
    listing: Listing[Credential] = Listing(
        found,
        request.query_params,
        {"name": lambda each: each.user, "mechanism": lambda each: each.mechanism},
        lambda each: each.user,
    )
    return render(
        request, "users.html", status=status, listing=listing, problem=problem, mechanisms=tuple(SCRAM_MECHANISMS)
    )


async def _described(kafka: Cluster) -> list[Credential]:
    answer = await kafka.ask_any(DescribeUserScramCredentialsRequest())
    ensure_answered(answer.error, answer.message)
    return [
        Credential(result.user, _LABELS.get(each.mechanism, str(each.mechanism)), each.iterations, each.mechanism)
        for result in answer.results
        for each in result.credentials
    ]


async def _set(request: Request) -> Response:
    form = await checked_form(request)
    access = await access_of(request)
    user, mechanism, password = (
        field(form, "user"),
        SCRAM_MECHANISMS.get(field(form, "mechanism")),
        form.get("password"),
    )
    if mechanism is None or not isinstance(password, str) or not password:
        return await _page(request, "the password is empty, or the mechanism is unknown")
    if not user or not user.isascii():
        return await _page(request, f"user {user!r} could not log in: SCRAM names are ASCII")
    credential = await asyncio.to_thread(scram_upsertion, user, mechanism, password)
    return await _alter(request, access.kafka, AlterUserScramCredentialsRequest(upsertions=[credential]))


async def _delete(request: Request) -> Response:
    form = await checked_form(request)
    access = await access_of(request)
    code = field(form, "mechanism")
    if not code.isascii() or not code.isdigit():
        return await _page(request, f"unknown mechanism {code!r}")
    deletion = ScramDeletion(name=chosen(form, "user"), mechanism=int(code))
    return await _alter(request, access.kafka, AlterUserScramCredentialsRequest(deletions=[deletion]))


async def _alter(request: Request, kafka: Cluster, change: AlterUserScramCredentialsRequest) -> Response:
    try:
        answer = await kafka.ask_any(change)
        for result in answer.results:
            ensure_answered(result.error, result.message)
    except RefusedError as error:
        return await _page(request, str(error))
    return RedirectResponse("/users", 303)


ROUTES = (
    Route("/users", _users),
    Route("/users", _set, methods=["POST"]),
    Route("/users/delete", _delete, methods=["POST"]),
)
