"""Checked access to the values of a msgpack body: type, range, and an error that names the field.

Bodies are untrusted. Every function here raises DecodeError and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from barnabas.protocol.errors import DecodeError

TopicT = TypeVar("TopicT")

INT16 = (-(1 << 15), (1 << 15) - 1)
INT32 = (-(1 << 31), (1 << 31) - 1)
INT64 = (-(1 << 63), (1 << 63) - 1)

MAX_NAME_CHARS = 32_767
"""Kafka's longest string, in characters and in bytes; handlers check names further."""

_SURELY_SHORT_CHARS = MAX_NAME_CHARS // 4
"""A string of at most this many characters fits, because a character has at most four bytes."""

_MISSING = object()


def integer(value: Any, name: str, bounds: tuple[int, int]) -> int:
    """Return `value` as an int within `bounds` (both included)."""
    if type(value) is not int:
        raise DecodeError(f"{name} is {_what(value)}, not an integer")
    if not bounds[0] <= value <= bounds[1]:
        raise DecodeError(f"{name}={value} is outside {bounds[0]}..{bounds[1]}")
    return value


def text(value: Any, name: str) -> str:
    """Return `value` as a str."""
    if type(value) is not str:
        raise DecodeError(f"{name} is {_what(value)}, not a string")
    if len(value) > MAX_NAME_CHARS:
        raise DecodeError(f"{name} has {len(value)} characters, more than {MAX_NAME_CHARS}")
    if len(value) > _SURELY_SHORT_CHARS and len(value.encode()) > MAX_NAME_CHARS:
        raise DecodeError(f"{name} has more than {MAX_NAME_CHARS} bytes as UTF-8")
    return value


def optional_text(value: Any, name: str) -> str | None:
    """Return `value` as a str or None."""
    return None if value is None else text(value, name)


def binary(value: Any, name: str) -> bytes:
    """Return `value` as bytes."""
    if type(value) is not bytes:
        raise DecodeError(f"{name} is {_what(value)}, not binary")
    return value


def boolean(value: Any, name: str) -> bool:
    """Return `value` as a bool."""
    if type(value) is not bool:
        raise DecodeError(f"{name} is {_what(value)}, not a boolean")
    return value


def array(value: Any, name: str) -> list[Any]:
    """Return `value` as an array of any length."""
    if type(value) is not list:
        raise DecodeError(f"{name} is {_what(value)}, not an array")
    return value


def row(value: Any, name: str, size: int) -> list[Any]:
    """Return `value` as an array of exactly `size` values."""
    if type(value) is not list or len(value) != size:
        raise DecodeError(f"{name} is {_what(value)}, not an array of {size} values")
    return value


def topics_of(value: Any, build: Callable[..., TopicT], read_partition: Callable[[Any], Any]) -> list[TopicT]:
    """Return `build(name=, partitions=)` for each row of an array of topics, [[name, [partition]]]."""
    topics = []
    for entry in array(value, "topics"):
        name, partitions = row(entry, "topics[]", 2)
        numbers = [read_partition(each) for each in array(partitions, "partitions")]
        topics.append(build(name=text(name, "name"), partitions=numbers))
    return topics


def body_of(value: Any, name: str) -> dict[str, Any]:
    """Return `value` as a map."""
    if type(value) is not dict:
        raise DecodeError(f"{name} is {_what(value)}, not a map")
    return value


def field(body: dict[str, Any], name: str, default: Any = _MISSING) -> Any:
    """Return the body's value of that name, or `default`; without a default it is required."""
    value = body.get(name, default)
    if value is _MISSING:
        raise DecodeError(f"{name} is missing")
    return value


def _what(value: Any) -> str:
    if value is None:
        return "nil"
    if isinstance(value, list):
        return f"an array of {len(value)} values"
    return f"of type {type(value).__name__}"
