"""Reading of the JSON objects in which mirrors are stored: every field is checked, and unknown ones are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

DEFINITION_PREFIX: Final = "barnabas.mirror.definition."
"""Of the config's name; the mirror's name follows."""
TOPIC_PREFIX: Final = "barnabas.mirror.topic."
"""Of the config's name; the topic's name follows."""

MAX_TEXT_BYTES = 2**15 - 1
"""Of a stored value in UTF-8. Kafka does not start on a log with a longer string."""


class MirrorFormatError(ValueError):
    """A definition or a topic's record is not valid; the message is a clause that names the field."""


def parse_object(text: str, known: Sequence[str]) -> dict[str, Any]:
    """Parse a JSON object with fields of `known` only. Raises MirrorFormatError."""
    import json  # here: most brokers have no mirrors

    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MirrorFormatError(f"not JSON: {error}") from error
    if not isinstance(found, dict):
        raise MirrorFormatError("not a JSON object")
    ensure_known(found, known)
    return found


def ensure_known(fields: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise MirrorFormatError for a field that is not in `known`."""
    unknown = sorted(set(fields) - set(known))
    if unknown:
        raise MirrorFormatError(f"unknown field {', '.join(unknown)}; known are {', '.join(known)}")


def object_text(fields: Mapping[str, Any], *, limited: bool = True) -> str:
    """Return the stored form of an object: sorted keys, no spaces. Raises MirrorFormatError: too long, no UTF-8."""
    import json

    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise MirrorFormatError("not UTF-8: it has a lone surrogate") from error
    if limited and size > MAX_TEXT_BYTES:
        raise MirrorFormatError(f"longer than {MAX_TEXT_BYTES} bytes")
    return text


def text_field(fields: Mapping[str, Any], name: str) -> str:
    """Return a required text. Raises MirrorFormatError."""
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise MirrorFormatError(f"{name} is not a text")
    return value


def optional_text_field(fields: Mapping[str, Any], name: str) -> str | None:
    """Return a text, or None for null and for a missing field. Raises MirrorFormatError."""
    return None if fields.get(name) is None else text_field(fields, name)


def texts_field(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return a list of texts, empty for a missing field. Raises MirrorFormatError."""
    values = fields.get(name, ())
    if not isinstance(values, list | tuple) or not all(isinstance(each, str) and each for each in values):
        raise MirrorFormatError(f"{name} is not a list of texts")
    return tuple(values)


def boolean_field(fields: Mapping[str, Any], name: str, default: bool) -> bool:
    """Return a boolean. Raises MirrorFormatError."""
    value = fields.get(name, default)
    if not isinstance(value, bool):
        raise MirrorFormatError(f"{name} is neither true nor false")
    return value
