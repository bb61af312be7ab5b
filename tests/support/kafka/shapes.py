"""Shapes of messages: a field table's, and those of kio's entity and of Kafka's definition, equal for equal bytes."""

from __future__ import annotations

import types
from collections.abc import Collection, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_origin

from barnabas.protocol.kafka.client.fields import ErrorField
from barnabas.protocol.kafka.schema import (
    Array,
    Computed,
    Constant,
    Fixed,
    Nullable,
    Records,
    Sized,
    Struct,
    Tagged,
    Uuid,
)
from tests.support.kafka.definitions import VERSIONS, definition, message_name
from tests.support.kafka.kafka_wire import message_type

JUDGES = ("kio", *VERSIONS)
"""Who says what Kafka's messages are: a library, and the definitions of versions of Kafka."""

Shape = Any
"""A type as kio names it, whether it is nullable, and of a structure its fields."""


def shape_of_table(kind: Any, version: int) -> Shape:
    """Return the shape of a type of a field table."""
    match kind:
        case Computed() | Constant():
            return shape_of_table(kind.type, version)
        case Tagged():
            return "tagged", kind.tag, shape_of_table(kind.type, version)
        case Fixed() | Uuid() | ErrorField():
            return kind.kind
        case Records():
            return kind.kind, kind.is_nullable
        case Sized():
            return kind.kind, version >= kind.nullable_from
        case Array():
            return "array", version >= kind.nullable_from, shape_of_table(kind.item, version)
        case Nullable():
            return "nullable", shape_of_table(kind.struct, version)
        case Struct():
            return [shape_of_table(each, version) for _, each in kind.present(version)]
    raise AssertionError(kind)


def shape_of_message(judge: str, api: str, version: int, kind: str, unwritten: Collection[str]) -> tuple[Shape, bool]:
    """Return the shape of a whole message, and whether it is flexible: kio's, or that of a version of Kafka."""
    if judge == "kio":
        entity_type = message_type(api, version, kind)
        return shape_of_entity(entity_type, unwritten), entity_type.__flexible__
    message = definition(judge, message_name(api, kind), version)
    return message.shape(unwritten), message.is_flexible


def shape_of_entity(entity_type: Any, unwritten: Collection[str]) -> Shape:
    """Return the shape of an entity without the tagged fields whose names are in `unwritten`."""
    return [
        shape if (tag := field.metadata.get("tag")) is None else ("tagged", tag, shape)
        for field in fields(entity_type)
        if not ("tag" in field.metadata and field.name in unwritten)
        for shape in shapes_of(field, unwritten)
    ]


def shapes_of(field: Any, unwritten: Collection[str]) -> Iterator[Shape]:
    """Iterate over the shapes of one field of an entity."""
    inner, is_optional = without_none(field.type)
    kind = {"error_code": "int16", "timedelta_i32": "int32", "timedelta_i64": "int64", "datetime_i64": "int64"}.get(
        field.metadata.get("kafka_type"), field.metadata.get("kafka_type")
    )
    is_array = get_origin(inner) is tuple
    item, item_is_optional = without_none(get_args(inner)[0]) if is_array else (inner, is_optional)
    if is_dataclass(item):
        shape: Shape = shape_of_entity(item, unwritten)
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
