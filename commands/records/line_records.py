r"""Conversion of input lines to records, for `barnabas produce`.

Two forms. Plain lines, as Kafka's console producer reads them:

    [headers TAB] [key SEPARATOR] value

where headers are `name:value,name:value`, and a part that equals the null marker is null (a null value is a
tombstone). The bytes of a line are taken as they are, also those of header names, and `\r` is not stripped. And JSON
lines (`--json`): one object per line in the form that `barnabas consume --json` writes.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from barnabas.commands.failures import CommandFailure

Headers = tuple[tuple[str, bytes | None], ...]

HEADERS_DELIMITER = b"\t"
HEADER_SEPARATOR = b","
HEADER_KEY_SEPARATOR = b":"

_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class InputRecord:
    """One record to send. `timestamp_ms` and `partition` None: the producer decides."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: int | None = None


class Block(NamedTuple):
    """Lines that have a value and perhaps a key, and nothing else. `keys` None: no line has a key."""

    keys: list[bytes | None] | None
    values: Sequence[bytes | None]


class LineFormat(Protocol):
    """Parser of input lines."""

    def parse(self, line: bytes, number: int) -> InputRecord:
        """Parse one line, without its newline. Raises CommandFailure, naming the line."""
        ...

    def block(self, lines: list[bytes]) -> Block | None:
        """Return the first of the lines, up to one that `parse` refuses; None: each line has to be parsed."""
        ...


@dataclass(frozen=True, slots=True)
class PlainLines:
    """Parser of plain lines. `key_separator` None: a line is a value, without a key."""

    key_separator: bytes | None = None
    null_marker: bytes | None = None
    parse_headers: bool = False

    def parse(self, line: bytes, number: int) -> InputRecord:
        """Parse one line, without its newline. Raises CommandFailure, naming the line."""
        headers: Headers = ()
        if self.parse_headers:
            text, delimiter, line = line.partition(HEADERS_DELIMITER)
            if not delimiter:
                raise CommandFailure(f"line {number}: no tab after the headers: {_shown(text)}")
            headers = self._headers(text, number)
        key: bytes | None = None
        value = line
        if self.key_separator is not None:
            raw_key, separator, value = line.partition(self.key_separator)
            if not separator:
                raise CommandFailure(
                    f"line {number}: no key separator {_shown(self.key_separator)} in {_shown(line)}",
                )
            key = self._or_null(raw_key)
        return InputRecord(key, self._or_null(value), headers)

    def block(self, lines: list[bytes]) -> Block | None:
        """Return the first of the lines, up to one without a key's separator; None: lines have headers."""
        if self.parse_headers:
            return None
        separator = self.key_separator
        if separator is None:
            return Block(None, lines if self.null_marker is None else [self._or_null(line) for line in lines])
        keys: list[bytes | None] = []
        values: list[bytes | None] = []
        for line in lines:
            key, found, value = line.partition(separator)
            if not found:
                break
            keys.append(key)
            values.append(value)
        if self.null_marker is not None:
            keys = [self._or_null(key) for key in keys]
            values = [self._or_null(value) for value in values]
        return Block(keys, values)

    def _headers(self, text: bytes, number: int) -> Headers:
        if self._or_null(text) is None or not text:
            return ()
        headers = []
        for part in text.split(HEADER_SEPARATOR):
            name, separator, value = part.partition(HEADER_KEY_SEPARATOR)
            if not separator:
                raise CommandFailure(f"line {number}: the header {_shown(part)} is not of the form name:value")
            headers.append((name.decode("utf-8", "surrogateescape"), self._or_null(value)))
        return tuple(headers)

    def _or_null(self, part: bytes | None) -> bytes | None:
        return None if part == self.null_marker else part


@dataclass(frozen=True, slots=True)
class JsonLines:
    """Parser of JSON lines. `all_base64`: as if each object listed all its fields in `base64`."""

    all_base64: bool = False
    keep_partition: bool = False

    def parse(self, line: bytes, number: int) -> InputRecord:
        """Parse one line. Raises CommandFailure, naming the line and the field."""
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise CommandFailure(f"line {number}: not JSON: {error}") from error
        if not isinstance(entry, dict):
            raise CommandFailure(f"line {number}: a JSON object is expected, not {_shown(line)}")
        encoded = self._encoded_fields(entry, number)
        return InputRecord(
            key=_field_bytes(entry.get("key"), "key", "key" in encoded, number),
            value=_field_bytes(entry.get("value"), "value", "value" in encoded, number),
            headers=_json_headers(entry.get("headers"), encoded, number),
            timestamp_ms=_field_int(entry, "timestamp", number),
            partition=_field_int(entry, "partition", number) if self.keep_partition else None,
        )

    def block(self, lines: list[bytes]) -> None:
        """Return None: each line has to be parsed."""

    def _encoded_fields(self, entry: dict[str, Any], number: int) -> frozenset[str]:
        names = entry.get("base64", [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise CommandFailure(f"line {number}: base64 must be a list of field names")
        return frozenset(names) | ({"key", "value", "headers"} if self.all_base64 else frozenset())


def _json_headers(value: Any, encoded: frozenset[str], number: int) -> Headers:
    if value is None:
        return ()
    pairs = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(pairs, list):
        raise CommandFailure(f"line {number}: headers must be a list of [name, value]")
    headers = []
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not isinstance(pair[0], str):
            raise CommandFailure(f"line {number}: headers must be a list of [name, value]")
        name = _field_bytes(pair[0], "a header name", "header_names" in encoded, number) or b""
        content = _field_bytes(pair[1], f"header {pair[0]}", "headers" in encoded, number)
        headers.append((name.decode("utf-8", "surrogateescape"), content))
    return tuple(headers)


def _field_bytes(value: Any, field: str, is_base64: bool, number: int) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise CommandFailure(f"line {number}: {field} must be a string or null, not {type(value).__name__}")
    try:
        if is_base64:
            return base64.b64decode(value, validate=True)
        return value.encode("utf-8")
    except (binascii.Error, ValueError) as error:
        form = "base64" if is_base64 else "UTF-8 text"
        raise CommandFailure(f"line {number}: {field} is not {form}: {error}") from error


def _field_int(entry: dict[str, Any], field: str, number: int) -> int | None:
    value = entry.get(field)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _INT64_MAX:
        raise CommandFailure(f"line {number}: {field} must be an integer from 0 to 2^63 - 1, not {value!r}")
    return value


def _shown(data: bytes) -> str:
    """A short, printable form for an error message."""
    text = data[:60].decode("utf-8", "backslashreplace")
    return repr(text + ("..." if len(data) > 60 else ""))
