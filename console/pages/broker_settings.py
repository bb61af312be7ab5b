"""The brokers' properties: of one broker, with the layer that sets each; changes of dynamic ones.

A change is made for all brokers or for one. The broker checks it first.
"""

from __future__ import annotations

from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from barnabas.clients.errors import RefusedError
from barnabas.console.cluster.topic_changes import change_setting
from barnabas.console.formats import part
from barnabas.console.pages.listing import Listing
from barnabas.console.pages.topic.settings import LAYERS, described
from barnabas.console.web import access_of, checked_form, field, render
from barnabas.protocol.messages.cluster.configs import BROKER_RESOURCE, ConfigEntry, ConfigResource

_ALL: Final = ""
"""Name of the resource with the properties of all brokers."""
_OWN_LAYERS: Final = {2: "this", 3: "all"}


async def _settings(request: Request) -> Response:
    access = await access_of(request)
    await access.kafka.load(())
    nodes = sorted(access.kafka.node_ids)
    broker = _broker_of(request.query_params.get("broker", str(nodes[0])), nodes)
    entries = await described(access.kafka, ConfigResource(BROKER_RESOURCE, str(broker)), node_id=broker)
    listing: Listing[ConfigEntry] = Listing(
        entries,
        request.query_params,
        {
            "name": lambda each: each.name,
            "layer": lambda each: (each.source_code, each.name),
            "value": lambda each: each.value,
        },
        lambda each: f"{each.name} {each.value or ''}",
    )
    return render(request, "broker_settings.html", listing=listing, layers=LAYERS, nodes=nodes, broker=broker)


def _broker_of(text: str, nodes: list[int]) -> int:
    if text.isascii() and text.isdigit() and len(text) < 11 and int(text) in nodes:
        return int(text)
    raise HTTPException(404, f"there is no broker {text!r}")


async def _setting(request: Request) -> Response:
    return await _page(request)


async def _page(request: Request, problem: str | None = None) -> Response:
    access = await access_of(request)
    await access.kafka.load(())
    name, nodes = request.path_params["name"], sorted(access.kafka.node_ids)
    broker = _broker_of(request.query_params.get("broker", str(nodes[0])), nodes)
    resource = ConfigResource(BROKER_RESOURCE, str(broker))
    entries = await described(access.kafka, resource, [name], documented=True, node_id=broker)
    entry = next((each for each in entries if each.name == name), None)
    if entry is None:
        raise HTTPException(404, f"a broker has no property {name!r}")
    return render(
        request,
        "broker_setting.html",
        status=200 if problem is None else 409,
        entry=entry,
        layer=LAYERS.get(entry.source_code, f"source {entry.source_code}"),
        own_layer=_OWN_LAYERS.get(entry.source_code),
        broker=broker,
        problem=problem,
    )


async def _change(request: Request) -> Response:
    form = await checked_form(request)
    access = await access_of(request)
    await access.kafka.load(())
    name, nodes = request.path_params["name"], sorted(access.kafka.node_ids)
    broker = _broker_of(request.query_params.get("broker", str(nodes[0])), nodes)
    resource = ConfigResource(BROKER_RESOURCE, _ALL if field(form, "of") == "all" else str(broker))
    value = None if field(form, "action") == "remove" else field(form, "to")
    try:
        await change_setting(access.kafka, resource, name, value, validate_only=True)
        await change_setting(access.kafka, resource, name, value)
    except RefusedError as error:
        return await _page(request, str(error))
    return RedirectResponse(f"/settings/{part(name)}?broker={broker}", 303)


ROUTES = (
    Route("/settings", _settings),
    Route("/settings/{name}", _setting),
    Route("/settings/{name}", _change, methods=["POST"]),
)
