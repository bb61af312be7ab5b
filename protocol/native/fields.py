"""Checked access to the values of a msgpack body: each one's type and range, and a sentence that names what is wrong.

The bodies come from strangers. Every function here raises DecodeError and nothing else.
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.errors import DecodeError, ErrorCode

INT8 = (-(1 << 7), (1 << 7) - 1)
INT16 = (-(1 << 15), (1 << 15) - 1)
INT32 = (-(1 << 31), (1 << 31) - 1)
INT64 = (-(1 << 63), (1 << 63) - 1)

MAX_NAME_CHARS = 32_767
"""Kafka's longest string, in characters and in bytes; what a topic's name may be is for its handler to say."""

_SURELY_SHORT_CHARS = MAX_NAME_CHARS // 4
"""A character has four bytes at most."""

_MISSING = object()


def integer(value: Any, name: str, bounds: tuple[int, int]) -> int:
    """`value` as an int within `bounds` (both included)."""
    if type(value) is not int:
        raise DecodeError(f"{name} is {_what(value)}, not an integer")
    if not bounds[0] <= value <= bounds[1]:
        raise DecodeError(f"{name}={value} is outside {bounds[0]}..{bounds[1]}")
    return value


def text(value: Any, name: str) -> str:
    """`value` as a str."""
    if type(value) is not str:
        raise DecodeError(f"{name} is {_what(value)}, not a string")
    if len(value) > MAX_NAME_CHARS:
        raise DecodeError(f"{name} has {len(value)} characters, more than {MAX_NAME_CHARS}")
    if len(value) > _SURELY_SHORT_CHARS and len(value.encode()) > MAX_NAME_CHARS:
        raise DecodeError(f"{name} has more than {MAX_NAME_CHARS} bytes as UTF-8")
    return value


def optional_text(value: Any, name: str) -> str | None:
    """`value` as a str or None."""
    return None if value is None else text(value, name)


def long_text(value: Any, name: str) -> str | None:
    """`value` as a str of any length (a message, a documentation, a config value) or None."""
    if value is not None and type(value) is not str:
        raise DecodeError(f"{name} is {_what(value)}, not a string")
    result: str | None = value
    return result


def binary(value: Any, name: str) -> bytes:
    """`value` as bytes."""
    if type(value) is not bytes:
        raise DecodeError(f"{name} is {_what(value)}, not binary")
    return value


def boolean(value: Any, name: str) -> bool:
    """`value` as a bool."""
    if type(value) is not bool:
        raise DecodeError(f"{name} is {_what(value)}, not a boolean")
    return value


def number(value: Any, name: str) -> float:
    """`value` as a float; whole numbers may come as integers."""
    if type(value) is not float and type(value) is not int:
        raise DecodeError(f"{name} is {_what(value)}, not a number")
    try:
        return float(value)
    except OverflowError as error:
        raise DecodeError(f"{name} is larger than any float") from error


def error_code(value: Any, name: str) -> ErrorCode:
    """`value` as one of Kafka's codes; a code that we do not know is UNKNOWN_SERVER_ERROR, as in Kafka's clients."""
    code = integer(value, name, INT16)
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def array(value: Any, name: str) -> list[Any]:
    """`value` as an array of any length."""
    if type(value) is not list:
        raise DecodeError(f"{name} is {_what(value)}, not an array")
    return value


def row(value: Any, name: str, size: int) -> list[Any]:
    """`value` as an array of exactly `size` values."""
    if type(value) is not list or len(value) != size:
        raise DecodeError(f"{name} is {_what(value)}, not an array of {size} values")
    return value


def body_of(value: Any, name: str) -> dict[str, Any]:
    """`value` as a map."""
    if type(value) is not dict:
        raise DecodeError(f"{name} is {_what(value)}, not a map")
    return value


def field(body: dict[str, Any], name: str, default: Any = _MISSING) -> Any:
    """The body's value of that name, or `default`; without a default it must be there."""
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
