"""The declared messages of APIs, and their shapes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from barnabas.protocol.kafka.apis import KAFKA_APIS, KafkaApi
from barnabas.protocol.wire.fields import Array, fields_of, is_structure
from barnabas.protocol.wire.structures import Struct
from barnabas.protocol.wire.types import Fixed, Sized
from tests.support.kafka.definitions import default_of, versions

Shape = Any


def messages_of(api: KafkaApi) -> dict[str, type[Struct]]:
    """Return the classes of "request" and "response" of an API."""
    return {"request": api.request, "response": api.request.answer_type}


DECLARED = {api.key: messages_of(api) for api in KAFKA_APIS}


def shape_of_structure(structure: Any, version: int) -> Shape:
    """Return the shape of a structure; see tests/support/kafka/shapes.py."""
    found = []
    for field in fields_of(structure):
        if field.since <= version <= field.until:
            shape = _shape(field.kind, field.nullable_from, version)
            found.append(shape if field.tag is None else ("tagged", field.tag, shape))
    return found


def compare_fields(
    structure: Any,
    fields: list[Any],
    served: range,
    common: dict[str, Any],
    unread: Collection[str] = (),
    *,
    has_names: bool = False,
) -> None:
    """Assert that a structure's fields have the versions and defaults of Kafka's, without those named in `unread`.

    `has_names`: and Kafka's names in JSON.
    """
    read = sorted([each for each in fields if each["name"] not in unread], key=lambda each: each.get("tag", -1))
    theirs = [each for each in read if within(versions(each.get("versions") or each["taggedVersions"]), served)]
    ours = [each for each in fields_of(structure) if within(range(each.since, each.until + 1), served)]
    ours.sort(key=lambda field: -1 if field.tag is None else field.tag)
    for field, their in zip(ours, theirs, strict=True):
        place = f"{structure.__name__}.{field.name}, Kafka's {their['name']}"
        if has_names:
            assert field.kafka_name == their["name"][0].lower() + their["name"][1:], place
        here = within(versions(their.get("versions") or their["taggedVersions"]), served)
        assert within(range(field.since, field.until + 1), served) == here, place
        inner = their.get("fields") or common.get(their["type"].removeprefix("[]"))
        if here != served or field.tag is not None:
            is_array = their["type"].startswith("[]")
            default = default_of(their.get("default"), their["type"].removeprefix("[]"), is_array, None)
            if inner and not is_array and default is not None:
                default = field.default  # a structure: ours is absent, or its bytes tell
            assert field.default == (() if default == [] else default), place
        kind = field.kind.item if isinstance(field.kind, Array) else field.kind
        if inner:
            compare_fields(kind, inner, here, common, has_names=has_names)
        else:
            assert not is_structure(kind), place


def within(versions: range, served: range) -> range:
    """Return the versions that are served."""
    return range(max(versions.start, served.start), min(versions.stop, served.stop))


def tagged_last(shape: Shape) -> Shape:
    """Return a shape with tagged fields at the end of each structure, where they are on the wire."""
    if isinstance(shape, tuple):
        return tuple([tagged_last(each) for each in shape])
    if not isinstance(shape, list):
        return shape
    return sorted(map(tagged_last, shape), key=lambda each: each[1] if each[0] == "tagged" else -1)


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
