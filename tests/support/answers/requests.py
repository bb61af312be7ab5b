"""Requests from plain values for any version of an API, and answers as plain lines.

A script names the fields of all versions at once: those that a version lacks are left out, and those that the script
leaves out are empty. Milliseconds stand for times, dicts and lists for structures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import timedelta
from enum import Enum
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from kio.serial.errors import SerialError

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.apis import KAFKA_APIS, KafkaApi
from tests.support.kafka.kafka_wire import answer_of, message_type

APIS = {api.key.label: api for api in KAFKA_APIS}


def versions(api: str) -> range:
    """Return the served versions of an API."""
    row: KafkaApi = APIS[api]
    return range(row.lowest, row.highest + 1)


def build(api: str, version: int, values: Mapping[str, Any]) -> Any:
    """Return a request's entity. Raises ValueError for a field that no version has."""
    unknown = set(_names(values)) - _fields_of(api)
    if unknown:
        raise ValueError(f"{api} has no field {', '.join(sorted(unknown))}")
    return _entity(message_type(api, version, "request"), values)


def _names(values: Any) -> Iterator[str]:
    if isinstance(values, Mapping):
        yield from values
    for each in values.values() if isinstance(values, Mapping) else values if isinstance(values, list | tuple) else ():
        yield from _names(each)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _fields_of(api: str) -> frozenset[str]:
    return frozenset(name for version in versions(api) for name in _all(message_type(api, version, "request")))


def _all(kind: Any) -> Iterator[str]:
    hints = _hints(kind)
    for field in fields(kind):
        yield field.name
        for inner in _structures(hints[field.name]):
            yield from _all(inner)


def _structures(hint: Any) -> list[Any]:
    found = [hint] if isinstance(hint, type) and is_dataclass(hint) else []
    return [*found, *(each for argument in get_args(hint) for each in _structures(argument))]


def _entity(kind: Any, values: Mapping[str, Any]) -> Any:
    hints = _hints(kind)
    made = {
        field.name: _value(field, hints[field.name], values[field.name])
        if field.name in values
        else _empty(field, hints[field.name])
        for field in fields(kind)
        if field.name in values or field.default is MISSING
    }
    return kind(**made)


def _value(field: Field[Any], hint: Any, value: Any) -> Any:
    structures = _structures(hint)
    if isinstance(value, list | tuple):
        return tuple(_entity(structures[0], each) if isinstance(each, Mapping) else each for each in value)
    if isinstance(value, Mapping):
        return _entity(structures[0], value)
    if str(field.metadata.get("kafka_type", "")).startswith("timedelta") and isinstance(value, int):
        return timedelta(milliseconds=value)
    return value


def _empty(field: Field[Any], hint: Any) -> Any:
    kind = str(field.metadata.get("kafka_type", ""))
    if type(None) in get_args(hint):
        return None
    if get_origin(hint) is tuple:
        return ()
    if structures := _structures(hint):
        return _entity(structures[0], {})
    if kind.startswith("timedelta"):
        return timedelta()
    return {"string": "", "bytes": b"", "records": b"", "bool": False, "float64": 0.0}.get(kind, 0)


def answered(api: str, version: int, frame: bytes) -> Any:
    """Return the entity of an answer; None where kio does not read it, like a token's time of -1."""
    for read_as in (version, 0) if api == "api_versions" else (version,):  # an unknown version is answered in version 0
        try:
            return answer_of(api, read_as, frame)[1]
        except (AssertionError, ImportError, SerialError, ValueError):
            continue
    return None


def lines(value: Any, path: str = "") -> dict[str, str]:
    """Return each field of an answer with its place: `topics[0].error_code`."""
    if is_dataclass(value) and not isinstance(value, type):
        found: dict[str, str] = {}
        for field in fields(value):
            found |= lines(getattr(value, field.name), f"{path}.{field.name}" if path else field.name)
        return found
    if isinstance(value, tuple):
        found = {f"{path}.count": str(len(value))}
        for number, each in enumerate(value):
            found |= lines(each, f"{path}[{number}]")
        return found
    return {path: value.name if isinstance(value, Enum) else repr(value)}


def codes(value: Any) -> set[str]:
    """Return the names of the error codes in an answer."""
    if isinstance(value, Enum):
        return {value.name.upper()} if type(value).__name__ == "ErrorCode" else set()
    if is_dataclass(value) and not isinstance(value, type):
        found = {code for field in fields(value) for code in codes(getattr(value, field.name))}
        number = getattr(value, "acknowledge_error_code", 0)  # kio has it as a number
        return found | ({ErrorCode(number).name} if number else set())
    return {code for each in value for code in codes(each)} if isinstance(value, tuple) else set()
