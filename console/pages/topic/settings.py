"""A topic's properties, each with its value and the layer that sets it; the page that changes one.

A new value is shown first: the broker checks it, and Barnabas explains what it would delete.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from barnabas.clients.errors import ClientError, RefusedError, reason_of
from barnabas.clients.network.cluster import Cluster
from barnabas.console.cluster.access import ClusterAccess
from barnabas.console.cluster.topic_changes import change_setting
from barnabas.console.formats import part
from barnabas.console.pages.topic.partitions import topic_of
from barnabas.console.web import checked_form, field, render
from barnabas.explanation.change import CHANGEABLE, UnexplainableChangeError, explain_change
from barnabas.explanation.setting import change_sentences, config_sentences
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.configs import (
    TOPIC_LAYER,
    TOPIC_RESOURCE,
    ConfigEntry,
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)

LAYERS: Final = {
    TOPIC_LAYER: "topic",
    2: "broker, dynamic",
    3: "all brokers, dynamic",
    4: "broker's start (file, environment)",
    5: "default",
}
"""Kafka's codes of sources, in decreasing precedence."""


async def described(
    kafka: Cluster,
    resource: ConfigResource,
    names: list[str] | None = None,
    *,
    documented: bool = False,
    node_id: int | None = None,
) -> Sequence[ConfigEntry]:
    """Return the properties of a topic or broker, all without `names`. Raises ClientError.

    A broker answers for itself only: `node_id` is asked, any without one.
    """
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(type=resource.type, name=resource.name, names=names)],
        include_documentation=documented,
    )
    if node_id is None:
        answer = await kafka.ask_any(request)
    else:
        answer = await kafka.ask(node_id, request)
    for each in answer.results:
        if each.error is not ErrorCode.NONE:
            raise RefusedError(each.error, f"the settings of {resource.name}: {each.message or reason_of(each.error)}")
        entries: Sequence[ConfigEntry] = each.entries
        return entries
    return ()


async def _settings(request: Request) -> Response:
    access, topic = await topic_of(request)
    entries = await described(access.kafka, ConfigResource(TOPIC_RESOURCE, topic.name))
    rows = [(each, LAYERS.get(each.source_code, f"source {each.source_code}")) for each in entries]
    rows.sort(key=lambda row: (row[0].source_code != TOPIC_LAYER, row[0].name))
    return render(request, "topic_settings.html", topic=topic, rows=rows, tab="settings")


async def _setting(request: Request) -> Response:
    """One property: what it is, where its value comes from, and with `?to=` what another value would do."""
    access, topic = await topic_of(request)
    return await _setting_page(request, access, topic.name, request.query_params.get("to"))


async def _setting_page(
    request: Request, access: ClusterAccess, topic: str, new: str | None, problem: str | None = None
) -> Response:
    name = request.path_params["name"]
    resource = ConfigResource(TOPIC_RESOURCE, topic)
    entries = await described(access.kafka, resource, [name], documented=True)
    entry = next((each for each in entries if each.name == name), None)
    if entry is None:
        raise HTTPException(404, f"a topic has no property {name!r}")
    effects: list[str] = []
    if new is not None and problem is None:
        try:
            await change_setting(access.kafka, resource, name, new, validate_only=True)
            effects = await _effects(access, topic, name, new)
        except (RefusedError, UnexplainableChangeError) as error:
            problem = str(error)
    return render(
        request,
        "topic_setting.html",
        status=200 if problem is None else 409,
        topic_name=topic,
        entry=entry,
        layer=LAYERS.get(entry.source_code, f"source {entry.source_code}"),
        is_own=entry.source_code == TOPIC_LAYER,
        layers=await _layers(access, topic, name),
        new=new,
        effects=effects,
        problem=problem,
    )


async def _layers(access: ClusterAccess, topic: str, name: str) -> Sequence[str]:
    """What each layer has, in words; nothing where the broker does not tell."""
    if not access.is_barnabas:
        return ()
    try:
        explained = await access.admin.explain_setting(topic, name)
    except ClientError as error:
        return (str(error),)
    return [sentence.strip() for sentence in config_sentences(topic, explained, None)]


async def _effects(access: ClusterAccess, topic: str, name: str, new: str) -> list[str]:
    if not access.is_barnabas:
        return ["The broker would accept this value. What it would delete is told by Barnabas brokers only."]
    if name not in CHANGEABLE:
        return ["The broker would accept this value. It deletes nothing by itself."]
    change = explain_change(await access.admin.explain_topic(topic), name, new)
    return [sentence.strip() for sentence in change_sentences(change)]


async def _change(request: Request) -> Response:
    form = await checked_form(request)
    access, topic = await topic_of(request)
    name = request.path_params["name"]
    new = None if field(form, "action") == "remove" else field(form, "to")
    try:
        await change_setting(access.kafka, ConfigResource(TOPIC_RESOURCE, topic.name), name, new)
    except RefusedError as error:
        return await _setting_page(request, access, topic.name, new, str(error))
    return RedirectResponse(f"/topics/{part(topic.name)}/settings/{part(name)}", 303)


ROUTES = (
    Route("/topics/{topic}/settings", _settings),
    Route("/topics/{topic}/settings/{name}", _setting),
    Route("/topics/{topic}/settings/{name}", _change, methods=["POST"]),
)
