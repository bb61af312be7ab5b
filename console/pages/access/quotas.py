"""Quotas of users, client ids and addresses: the list, a new limit, removal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from barnabas.clients.errors import RefusedError
from barnabas.console.cluster.security import ensure_answered
from barnabas.console.pages.listing import Listing
from barnabas.console.web import access_of, checked_form, field, render
from barnabas.protocol.messages.security.client_quotas import (
    CLIENT_ID,
    IP,
    USER,
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
    EntityPair,
    QuotaAlteration,
    QuotaOp,
    entity_of,
    pairs_of,
)

_UNITS: Final = {
    "producer_byte_rate": "bytes/s",
    "consumer_byte_rate": "bytes/s",
    "request_percentage": "% of the broker's time",
    "controller_mutation_rate": "partitions/s created or deleted",
    "connection_creation_rate": "new connections/s of an address",
}
_KINDS: Final = {"user": USER, "client": CLIENT_ID, "ip": IP}
_DEFAULT: Final = "*"
"""What people write for all of a kind that have no limit of their own."""


class Limit(NamedTuple):
    """One limit of an entity. `parts` names the entity in a form."""

    entity: str
    key: str
    value: float
    unit: str
    parts: str


async def _quotas(request: Request) -> Response:
    return await _page(request)


async def _page(request: Request, problem: str | None = None) -> Response:
    access = await access_of(request)
    found: Sequence[Limit] = ()
    status = 200 if problem is None else 409
    try:
        answer = await access.kafka.ask_any(DescribeClientQuotasRequest(filters=()))
        ensure_answered(answer.error, answer.message)
        found = [
            Limit(_text(pairs), limit.key, limit.value, _UNITS.get(limit.key, ""), json.dumps(pairs))
            for pairs, limits in ((pairs_of(entry.entity), entry.values) for entry in answer.entries or ())
            for limit in limits
        ]
    except RefusedError as error:
        problem = problem or str(error)
    listing: Listing[Limit] = Listing(
        found,
        request.query_params,
        {"name": lambda each: (each.entity, each.key), "limit": lambda each: (each.key, each.entity)},
        lambda each: f"{each.entity} {each.key}",
    )
    return render(request, "quotas.html", status=status, listing=listing, problem=problem, units=_UNITS)


def _text(entity: Sequence[EntityPair]) -> str:
    return ", ".join(f"every {kind}" if name is None else f"{kind} {name}" for kind, name in sorted(entity))


async def _set(request: Request) -> Response:
    form = await checked_form(request)
    parts: list[EntityPair] = []
    for name, kind in _KINDS.items():
        if text := field(form, name):
            parts.append((kind, None if text == _DEFAULT else text))
    if not parts:
        return await _page(request, "name a user, a client id or an address; * is every one without a limit of its own")
    try:
        value = float(field(form, "value"))
    except ValueError:
        return await _page(request, f"{field(form, 'value')!r} is not a number")
    return await _alter(request, parts, QuotaOp(key=field(form, "key"), value=value))


async def _remove(request: Request) -> Response:
    form = await checked_form(request)
    try:
        parts = [(str(kind), name) for kind, name in json.loads(field(form, "parts"))]
    except (ValueError, TypeError):
        return await _page(request, "the form cannot be read: load its page again")
    return await _alter(request, parts, QuotaOp(key=field(form, "key"), value=0.0, remove=True))


async def _alter(request: Request, parts: Sequence[EntityPair], operation: QuotaOp) -> Response:
    access = await access_of(request)
    try:
        altered = QuotaAlteration(entity=entity_of(parts), ops=[operation])
        answer = await access.kafka.ask_any(AlterClientQuotasRequest(entries=[altered]))
        for result in answer.results:
            ensure_answered(result.error, result.message)
    except RefusedError as error:
        return await _page(request, str(error))
    return RedirectResponse("/quotas", 303)


ROUTES = (
    Route("/quotas", _quotas),
    Route("/quotas", _set, methods=["POST"]),
    Route("/quotas/delete", _remove, methods=["POST"]),
)
