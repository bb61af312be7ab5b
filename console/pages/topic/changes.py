"""Creating topics; more partitions; deleting records and topics. Only with `--allow-changes`."""

from __future__ import annotations

from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from barnabas.clients.errors import RefusedError
from barnabas.console.cluster.access import ClusterAccess
from barnabas.console.cluster.snapshot import TopicFacts
from barnabas.console.cluster.topic_changes import add_partitions, create_topic, delete_records, delete_topic
from barnabas.console.formats import part
from barnabas.console.pages.topic.partitions import topic_of
from barnabas.console.web import access_of, checked_form, ensure_changes, field, render
from barnabas.protocol.topic_partition import TopicPartition

_DEFAULT: Final = -1
_INT16_MAX: Final = 2**15 - 1
_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1
_FIELDS: Final = ("name", "partitions", "replicas", "settings")
"""Those of the form for a new topic."""


async def _new(request: Request) -> Response:
    await access_of(request)
    ensure_changes(request)
    return render(request, "topic_new.html", given=dict.fromkeys(_FIELDS, ""), problem=None)


async def _create(request: Request) -> Response:
    form = await checked_form(request)
    access = await access_of(request)
    name = field(form, "name")
    try:
        settings = _settings_of(field(form, "settings"))
        partitions = _number(field(form, "partitions"), "partitions", _INT32_MAX, default=_DEFAULT)
        replicas = _number(field(form, "replicas"), "replicas", _INT16_MAX, default=_DEFAULT)
        await create_topic(access.kafka, name, partitions, replicas, settings)
    except (RefusedError, ValueError) as error:
        given = {each: field(form, each) for each in _FIELDS}
        return render(request, "topic_new.html", status=409, given=given, problem=str(error))
    await access.observer.refresh()
    return RedirectResponse(f"/topics/{part(name)}", 303)


async def _changes(request: Request) -> Response:
    access, topic = await topic_of(request)
    ensure_changes(request)
    return _changes_page(request, access, topic)


def _changes_page(
    request: Request, access: ClusterAccess, topic: TopicFacts, problem: str | None = None, done: str | None = None
) -> Response:
    status = 200 if problem is None else 409
    return render(request, "topic_changes.html", status=status, topic=topic, problem=problem, done=done, tab="changes")


async def _apply(request: Request) -> Response:
    form = await checked_form(request)
    access, topic = await topic_of(request)
    try:
        match field(form, "action"):
            case "partitions":
                total = _number(field(form, "total"), "partitions", _INT32_MAX)
                await add_partitions(access.kafka, topic.name, total)
                done = f"The topic has {total} partitions."
            case "records":
                partition = TopicPartition(topic.name, _number(field(form, "partition"), "partition", _INT32_MAX))
                offset = _number(field(form, "offset"), "offset", _INT64_MAX)
                _ensure_typed(form_text=field(form, "confirm"), expected=str(offset), what="the offset")
                start = await delete_records(access.kafka, partition, offset)
                done = f"Partition {partition.partition} now starts at offset {start}."
            case "delete":
                _ensure_typed(form_text=field(form, "confirm"), expected=topic.name, what="the topic's name")
                await delete_topic(access.kafka, topic.name)
                await access.observer.refresh()
                return RedirectResponse("/topics", 303)
            case other:
                raise HTTPException(400, f"unknown action {other!r}")
    except (RefusedError, ValueError) as error:
        return _changes_page(request, access, topic, problem=str(error))
    topics = (await access.observer.refresh()).topics
    return _changes_page(request, access, topics.get(topic.name, topic), done=done)


def _ensure_typed(*, form_text: str, expected: str, what: str) -> None:
    if form_text != expected:
        raise ValueError(f"type {what}, {expected}, a second time to confirm: {form_text!r} is not it")


def _number(text: str, what: str, largest: int, *, default: int | None = None) -> int:
    """Return a number from 0 to `largest`. Raises ValueError."""
    if not text and default is not None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 19 or int(text) > largest:
        raise ValueError(f"{what}: {text!r} is not a number from 0 to {largest:,}")
    return int(text)


def _settings_of(text: str) -> dict[str, str]:
    """Return the properties of lines `name=value`. Raises ValueError."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        name, separator, value = line.partition("=")
        if not separator:
            raise ValueError(f"settings: {line!r} is not of the form name=value")
        found[name.strip()] = value.strip()
    return found


ROUTES = (
    Route("/new-topic", _new),
    Route("/new-topic", _create, methods=["POST"]),
    Route("/topics/{topic}/changes", _changes),
    Route("/topics/{topic}/changes", _apply, methods=["POST"]),
)
