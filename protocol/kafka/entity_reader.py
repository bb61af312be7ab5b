"""Reads a request's body into kio's entity of its version, in plain Python, whatever the bytes are.

kio's own reader (0.6.5) believes an array's length: five hostile bytes make it ask for 32 GiB, which Rust answers by
aborting the process. Here every length is bounded by the bytes that are left, the items of a request by
MAX_ITEMS, and what is wrong is a DecodeError that names the field. The entities are the same, and so is the writer.

What a field is comes from kio's dataclass: the type in its metadata, optional and tuple in its annotation, its tag.

    classic     string, bytes: int16, int32 length (-1 null)      array: int32 count (-1 null)
    flexible    both, and arrays: unsigned varint length + 1 (0 null); tagged fields end every structure
    nullable structure: one byte, -1 for null

Bytes behind the last field are ignored, as Kafka does. Source: Kafka's message generator.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import timedelta
from functools import cache
from typing import Any, Final, TypeVar, get_args, get_origin
from uuid import UUID

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.primitives import Reader
from barnabas.protocol.uuids import ZERO_UUID

T = TypeVar("T")

MAX_ITEMS: Final = 50_000
"""Array items in one request, all arrays together: each holds the event loop for 10 to 20 us, until it is answered."""


class _Body(Reader):
    """A request's body: what classic messages need beyond flexible ones, and the count of items."""

    __slots__ = ("items_left",)

    def __init__(self, data: bytes | memoryview, items_left: int) -> None:
        super().__init__(data)
        self.items_left = items_left

    def sized(self, size_bytes: int) -> bytes | None:
        """So many bytes; a negative size is null."""
        return None if size_bytes < 0 else self.raw(size_bytes)

    def count(self, count: int) -> int:
        """A count of items that the bytes left can hold, and this request may have."""
        if count > self.remaining:
            raise DecodeError(f"an array of {count} items, but {self.remaining} bytes are left")
        self.items_left -= count
        if self.items_left < 0:
            raise DecodeError(f"more than {MAX_ITEMS} array items in one request")
        return count


_ReadValue = Callable[[_Body], Any]


def read_entity(entity_type: type[T], data: bytes | memoryview) -> T:
    """The entity at the front of `data`; nothing of `data` is kept. Raises DecodeError, naming the field."""
    entity: T = _structure_of(entity_type)(_Body(data, MAX_ITEMS))
    return entity


def _compiled(entity_type: Any) -> _ReadValue:
    """Reads one structure, a dataclass of kio's."""
    is_flexible: bool = entity_type.__flexible__
    plain: list[tuple[str, _ReadValue]] = []
    tagged: dict[int, tuple[str, _ReadValue]] = {}
    absent: dict[str, Any] = {}
    for field in fields(entity_type):
        entry = (field.name, _field_of(field, is_flexible))
        tag = field.metadata.get("tag")
        if tag is None:
            plain.append(entry)
        else:
            tagged[tag] = entry
            if field.default is MISSING:
                absent[field.name] = _implicit_default(field)

    def read(body: _Body) -> Any:
        values = dict(absent)
        name = ""
        try:
            for name, read_value in plain:
                values[name] = read_value(body)
            if is_flexible:
                name = "tagged fields"
                for tag, data in body.tagged_fields().items():
                    known = tagged.get(tag)
                    if known is not None:
                        name, read_value = known
                        part = _Body(data, body.items_left)
                        values[name] = read_value(part)
                        body.items_left = part.items_left
        except DecodeError as error:
            raise DecodeError(f"{name}: {error}") from None
        return entity_type(**values)

    return read


_structure_of: Callable[[Any], _ReadValue] = cache(_compiled)


def _field_of(field: Field[Any], is_flexible: bool) -> _ReadValue:
    annotation = field.type
    inner, is_optional = _without_none(annotation)
    if get_origin(inner) is tuple:
        item, items_are_optional = _without_none(get_args(inner)[0])
        read_item = (
            _structure_of(item)
            if is_dataclass(item)
            else _primitive_of(field.metadata["kafka_type"], is_flexible, items_are_optional)
        )
        return _array_of(read_item, is_flexible, is_optional)
    if is_dataclass(inner):
        return _nullable(_structure_of(inner)) if is_optional else _structure_of(inner)
    return _primitive_of(field.metadata["kafka_type"], is_flexible, is_optional)


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) is not types.UnionType:
        return annotation, False
    (inner,) = (each for each in get_args(annotation) if each is not types.NoneType)
    return inner, True


def _array_of(read_item: _ReadValue, is_flexible: bool, is_optional: bool) -> _ReadValue:
    def read(body: _Body) -> tuple[Any, ...] | None:
        count = body.unsigned_varint() - 1 if is_flexible else body.int32()
        if count < 0:
            _ensure_nullable("an array", is_optional)
            return None
        return tuple([read_item(body) for _ in range(body.count(count))])

    return read


def _nullable(read_structure: _ReadValue) -> _ReadValue:
    return lambda body: None if body.int8() < 0 else read_structure(body)


def _primitive_of(kind: str, is_flexible: bool, is_optional: bool) -> _ReadValue:
    if kind == "string":
        return _string_of(is_flexible, is_optional)
    if kind in ("bytes", "records"):
        return _bytes_of(is_flexible, is_optional)
    return _FIXED[kind]


def _string_of(is_flexible: bool, is_optional: bool) -> _ReadValue:
    def read(body: _Body) -> str | None:
        data = body.sized(body.unsigned_varint() - 1 if is_flexible else body.int16())
        if data is None:
            _ensure_nullable("a string", is_optional)
            return None
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise DecodeError(f"a string that is not UTF-8: {error}") from None

    return read


def _bytes_of(is_flexible: bool, is_optional: bool) -> _ReadValue:
    def read(body: _Body) -> bytes | None:
        data = body.sized(body.unsigned_varint() - 1 if is_flexible else body.int32())
        if data is None:
            _ensure_nullable("bytes", is_optional)
        return data

    return read


def _ensure_nullable(what: str, is_optional: bool) -> None:
    if not is_optional:
        raise DecodeError(f"{what} that is null where it must not be")


def _uuid(body: _Body) -> UUID | None:
    data = body.uuid()
    return None if data == ZERO_UUID else UUID(bytes=data)


def _milliseconds(value: int) -> timedelta:
    try:
        return timedelta(milliseconds=value)
    except OverflowError:
        raise DecodeError(f"{value} ms is no duration") from None


_FIXED: Final[dict[str, _ReadValue]] = {
    "bool": _Body.boolean,
    "int8": _Body.int8,
    "int16": _Body.int16,
    "int32": _Body.int32,
    "int64": _Body.int64,
    "uint16": _Body.uint16,
    "uint32": _Body.uint32,
    "float64": _Body.float64,
    "uuid": _uuid,
    "timedelta_i32": lambda body: _milliseconds(body.int32()),
    "timedelta_i64": lambda body: _milliseconds(body.int64()),
}


def _implicit_default(field: Field[Any]) -> Any:
    """What a tagged field without a default of its own is when it does not come: zeros, in a structure as well."""
    if is_dataclass(field.type):
        assert isinstance(field.type, type)
        return field.type(**{each.name: _default_of(each) for each in fields(field.type)})
    return _ZEROS[field.metadata["kafka_type"]]


def _default_of(field: Field[Any]) -> Any:
    return _implicit_default(field) if field.default is MISSING else field.default


_ZEROS: Final[dict[str, Any]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint16", "uint32"), 0),
    "bool": False,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "uuid": None,
    "timedelta_i32": timedelta(),
    "timedelta_i64": timedelta(),
}
