"""Shapes of messages: those of kio's entity and of Kafka's definition, equal for equal bytes."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_origin

from tests.support.kafka.definitions import VERSIONS, definition, message_name
from tests.support.kafka.kafka_wire import message_type

JUDGES = ("kio", *VERSIONS)
"""Who says what Kafka's messages are: a library, and the definitions of versions of Kafka."""

Shape = Any
"""A type as kio names it, whether it is nullable, and of a structure its fields."""


def shape_of_message(judge: str, api: str, version: int, kind: str) -> tuple[Shape, bool]:
    """Return the shape of a whole message, and whether it is flexible: kio's, or that of a version of Kafka."""
    if judge == "kio":
        entity_type = message_type(api, version, kind)
        return shape_of_entity(entity_type), entity_type.__flexible__
    message = definition(judge, message_name(api, kind), version)
    return message.shape(), message.is_flexible


def shape_of_entity(entity_type: Any) -> Shape:
    """Return the shape of an entity."""
    return [
        shape if (tag := field.metadata.get("tag")) is None else ("tagged", tag, shape)
        for field in fields(entity_type)
        for shape in shapes_of(field)
    ]


def shapes_of(field: Any) -> Iterator[Shape]:
    """Iterate over the shapes of one field of an entity."""
    inner, is_optional = without_none(field.type)
    kind = {"error_code": "int16", "timedelta_i32": "int32", "timedelta_i64": "int64", "datetime_i64": "int64"}.get(
        field.metadata.get("kafka_type"), field.metadata.get("kafka_type")
    )
    is_array = get_origin(inner) is tuple
    item, item_is_optional = without_none(get_args(inner)[0]) if is_array else (inner, is_optional)
    if is_dataclass(item):
        shape: Shape = shape_of_entity(item)
        if item_is_optional and not is_array:
            shape = "nullable", shape
    elif kind in ("string", "bytes", "records"):
        shape = kind, item_is_optional
    else:
        shape = kind
    yield ("array", is_optional, shape) if is_array else shape


def without_none(annotation: Any) -> tuple[Any, bool]:
    """Return an annotation without None, and whether it had that."""
    if get_origin(annotation) is not types.UnionType:
        return annotation, False
    (inner,) = (each for each in get_args(annotation) if each is not types.NoneType)
    return inner, True
