"""Access rules: the list, a new one, deletion."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, TypeVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from barnabas.clients.errors import RefusedError
from barnabas.console.cluster.security import ensure_answered
from barnabas.console.pages.listing import Listing
from barnabas.console.web import access_of, checked_form, chosen, field, render
from barnabas.protocol.messages.security.acls import (
    Acl,
    AclFilter,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    code_name,
)
from barnabas.protocol.messages.security.resources import (
    CLUSTER_NAME,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

Kind = TypeVar("Kind", bound=IntEnum)

_FIELDS: Final = ("principal", "host", "resource_type", "resource_name", "pattern", "operation", "permission")
_CHOICES: Final = {
    "resource_type": [each.name for each in ResourceType if each not in {ResourceType.UNKNOWN, ResourceType.ANY}],
    "pattern": [PatternType.LITERAL.name, PatternType.PREFIXED.name],
    "operation": [each.name for each in Operation if each not in {Operation.UNKNOWN, Operation.ANY}],
    "permission": [Permission.ALLOW.name, Permission.DENY.name],
}


async def _acls(request: Request) -> Response:
    return await _page(request, dict.fromkeys(_FIELDS, ""))


async def _page(request: Request, given: dict[str, str], problem: str | None = None) -> Response:
    access = await access_of(request)
    found: Sequence[Acl] = ()
    status = 200 if problem is None else 409
    try:
        answer = await access.kafka.ask_any(DescribeAclsRequest.of(AclFilter()))
        ensure_answered(answer.error, answer.message)
        found = answer.acls
    except RefusedError as error:
        problem = problem or str(error)
    listing: Listing[Acl] = Listing(
        found,
        request.query_params,
        {
            "name": lambda each: (each.principal, each.resource_type, each.resource_name),
            "resource": lambda each: (each.resource_type, each.resource_name, each.principal),
        },
        str,
    )
    return render(
        request,
        "acls.html",
        status=status,
        listing=listing,
        rows=[(each, {name: str(code) for name, code in each._asdict().items()}) for each in listing.rows],
        type_of=lambda each: code_name(ResourceType, each.resource_type),
        given=given,
        choices=_CHOICES,
        problem=problem,
    )


async def _add(request: Request) -> Response:
    form = await checked_form(request)
    access = await access_of(request)
    given = {name: field(form, name) for name in _FIELDS}
    try:
        acl = _acl_of(given)
        answer = await access.kafka.ask_any(CreateAclsRequest.of([acl]))
        for result in answer.results:
            ensure_answered(result.error, result.message)
    except (RefusedError, ValueError) as error:
        return await _page(request, given, str(error))
    return RedirectResponse("/acls", 303)


def _acl_of(given: dict[str, str]) -> Acl:
    """Raises ValueError."""
    kind = _choice(ResourceType, given["resource_type"])
    name = CLUSTER_NAME if kind is ResourceType.CLUSTER else given["resource_name"]
    if not name:
        raise ValueError("name the resource; * is all of its type")
    if ":" not in given["principal"]:
        raise ValueError(f"{given['principal']!r} is no principal: write User:NAME, or User:* for everybody")
    return Acl(
        kind,
        name,
        _choice(PatternType, given["pattern"]),
        given["principal"],
        given["host"] or "*",
        _choice(Operation, given["operation"]),
        _choice(Permission, given["permission"]),
    )


def _choice(kind: type[Kind], name: str) -> Kind:
    try:
        return kind[name]
    except KeyError:
        raise ValueError(f"{name!r} is not known") from None


async def _delete(request: Request) -> Response:
    form = await checked_form(request)
    access = await access_of(request)
    numbers = ("resource_type", "pattern_type", "operation", "permission")
    try:
        codes = {name: int(field(form, name)) for name in numbers}
        selected = AclFilter(
            **codes,
            resource_name=chosen(form, "resource_name"),
            principal=chosen(form, "principal"),
            host=chosen(form, "host"),
        )
        answer = await access.kafka.ask_any(DeleteAclsRequest(filters=[selected]))
        for result in answer.results:
            ensure_answered(result.error, result.message)
    except (RefusedError, ValueError) as error:
        return await _page(request, dict.fromkeys(_FIELDS, ""), str(error))
    return RedirectResponse("/acls", 303)


ROUTES = (
    Route("/acls", _acls),
    Route("/acls", _add, methods=["POST"]),
    Route("/acls/delete", _delete, methods=["POST"]),
)
