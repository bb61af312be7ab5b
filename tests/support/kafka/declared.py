"""The declared messages of APIs, and their shapes."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.kafka.apis import KAFKA_APIS, KafkaApi
from barnabas.protocol.wire.fields import Array, fields_of, is_structure
from barnabas.protocol.wire.structures import Struct
from barnabas.protocol.wire.types import Fixed, Sized

Shape = Any


def messages_of(api: KafkaApi) -> dict[str, type[Struct]]:
    """Return the classes of "request" and "response" of an API; none if its codec is written by hand."""
    return {} if api.codec else {"request": api.request, "response": api.request.answer_type}


DECLARED = {api.key: messages for api in KAFKA_APIS if (messages := messages_of(api))}


def shape_of_structure(structure: Any, version: int) -> Shape:
    """Return the shape of a structure; see tests/support/kafka/shapes.py."""
    found = []
    for field in fields_of(structure):
        if field.since <= version <= field.until:
            shape = _shape(field.kind, field.nullable_from, version)
            found.append(shape if field.tag is None else ("tagged", field.tag, shape))
    return found


def _shape(kind: Any, nullable_from: int, version: int) -> Shape:
    if isinstance(kind, Fixed):
        return kind.name
    if isinstance(kind, Sized):
        return kind.name, version >= nullable_from
    if isinstance(kind, Array):
        return "array", version >= nullable_from, _shape(kind.item, kind.item_nullable_from, version)
    assert is_structure(kind)
    inner = shape_of_structure(kind, version)
    return ("nullable", inner) if version >= nullable_from else inner
