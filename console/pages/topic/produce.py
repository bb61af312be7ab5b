"""The form that writes one record. Only with `--allow-changes`."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from barnabas.clients.errors import RefusedError
from barnabas.console.formats import part
from barnabas.console.pages.topic.partitions import topic_of
from barnabas.console.pages.topic.records import number_of, partition_of
from barnabas.console.records.writing import NewRecord, produce
from barnabas.console.web import checked_form, ensure_changes, field, render

_FIELDS: Final = ("key", "value", "headers", "partition", "encoding", "no_key", "no_value")


async def _form(request: Request) -> Response:
    _, topic = await topic_of(request)
    ensure_changes(request)
    return render(request, "produce.html", topic=topic, given=dict.fromkeys(_FIELDS, ""), problem=None, tab="records")


async def _produce(request: Request) -> Response:
    form = await checked_form(request)
    access, topic = await topic_of(request)
    try:
        record = _record_of(form)
        if record.partition is not None:
            partition_of(topic, str(record.partition))
        written, offset = await produce(access.kafka, topic.name, len(topic.partitions), record)
    except (RefusedError, ValueError) as error:
        given = {name: _text(form, name) for name in _FIELDS}
        return render(request, "produce.html", status=409, topic=topic, given=given, problem=str(error), tab="records")
    await access.observer.refresh()
    return RedirectResponse(f"/topics/{part(topic.name)}/records/{written.partition}/{offset}", 303)


def _record_of(form: FormData) -> NewRecord:
    """Raises ValueError, HTTPException."""
    is_hex = field(form, "encoding") == "hex"
    number = field(form, "partition")
    return NewRecord(
        None if field(form, "no_key") else _bytes(_text(form, "key"), "key", is_hex=is_hex),
        None if field(form, "no_value") else _bytes(_text(form, "value"), "value", is_hex=is_hex),
        [_header(line) for line in _text(form, "headers").splitlines() if line.strip()],
        number_of(number, "partition") if number else None,
    )


def _text(form: FormData, name: str) -> str:
    """Return a field as it was typed; browsers send line ends as CR LF."""
    value = form.get(name, "")
    return value.replace("\r\n", "\n") if isinstance(value, str) else ""


def _bytes(text: str, what: str, *, is_hex: bool) -> bytes:
    if not is_hex:
        return text.encode()
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise ValueError(f"the {what} is not hex: {error}") from error


def _header(line: str) -> tuple[str, bytes]:
    name, separator, value = line.partition("=")
    if not separator:
        raise ValueError(f"headers: {line!r} is not of the form name=value")
    return name.strip(), value.encode()


ROUTES = (
    Route("/topics/{topic}/produce", _form),
    Route("/topics/{topic}/produce", _produce, methods=["POST"]),
)
