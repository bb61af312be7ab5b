"""Requests from plain dicts, and the parts of answers that depend on authorization."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import timedelta
from typing import Any, get_args, get_type_hints
from uuid import UUID

from tests.support.kafka.kafka_wire import message_type

_NAMES = ("name", "topic", "topic_name", "group_id", "transactional_id", "key", "resource_name", "user")
_NUMBERS = ("partition_index", "partition", "index")
_KEPT = ("error_code", "authorized_operations", "topic_config_error_code")


def request(api: str, version: int, values: Mapping[str, Any]) -> Any:
    """Return the entity of a request; milliseconds for times, dicts and lists for structures."""
    return _entity(message_type(api, version, "request"), values)


def _entity(kind: type[Any], values: Mapping[str, Any]) -> Any:
    hints = get_type_hints(kind)
    return kind(**{name: _value(hints[name], value) for name, value in values.items()})


def _value(hint: Any, value: Any) -> Any:
    inner = [each for each in _flat(hint) if isinstance(each, type)]
    if isinstance(value, list | tuple):
        structures = [each for each in inner if is_dataclass(each)]
        return tuple(_entity(structures[0], each) if isinstance(each, dict) else each for each in value)
    if isinstance(value, dict):
        return _entity(next(each for each in inner if is_dataclass(each)), value)
    is_time = any(issubclass(each, timedelta) for each in inner)
    return timedelta(milliseconds=value) if is_time and isinstance(value, int) else value


def _flat(hint: Any) -> list[Any]:
    return [hint, *(each for argument in get_args(hint) for each in _flat(argument))]


def outcome(answer: Any) -> list[str]:
    """Return what an answer lists, its codes and operations, each with its place: `topics[orders].error_code=29`.

    Lists are in order of their names, and times, ids and addresses are left out.
    """
    found: list[str] = []
    _walk(answer, "", found)
    return sorted(found)


def _walk(value: Any, path: str, found: list[str]) -> None:
    for field in fields(value):
        here = f"{path}.{field.name}" if path else field.name
        inner = getattr(value, field.name)
        if isinstance(inner, tuple) and inner and is_dataclass(inner[0]):
            for each in inner:
                label = f"{here}[{_label(each)}]"
                if field.name != "configs":  # Kafka has more of them
                    found.append(label)
                _walk(each, label, found)
        elif is_dataclass(inner) and not isinstance(inner, type):
            _walk(inner, here, found)
        elif field.name.endswith(_KEPT):
            found.append(f"{here}={int(inner)}")
        elif isinstance(inner, tuple) and not inner and field.name != "aborted_transactions":
            found.append(f"{here}=[]")


def _label(value: Any) -> str:
    for name in (*_NAMES, *_NUMBERS):
        label = getattr(value, name, None)
        if label is not None and not isinstance(label, UUID):
            return str(label)
    return ""
