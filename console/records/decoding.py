"""Bytes of a key or value as text: JSON, MessagePack, Avro, Protobuf, text or hex, guessed or chosen.

The result has no control characters.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from typing import Any, Final, NamedTuple

import fastavro
import msgpack

from barnabas.console.records.protobuf import read_message, skip_indexes
from barnabas.console.records.protobuf_schemas import READ_ERRORS
from barnabas.console.records.schemas import AVRO, AVRO_ERRORS, PREFIX_BYTES, PROTOBUF, Schema

FORMATS: Final = ("guess", "json", "msgpack", "avro", "protobuf", "text", "hex")

_BYTES_PARSED_MAX: Final = 8
"""Bytes for each character of the limit: a larger value is not parsed, because most of it would not be shown."""

_DEPTH_MAX: Final = 50

_HEX_SHARE: Final = 3
"""Characters of hex for each byte, with its space."""


class Decoded(NamedTuple):
    """`format` is the one that was used, "null" for no value; `is_cut`: there is more than `text`."""

    text: str
    format: str
    is_cut: bool


def decode(
    data: bytes | None, wanted: str, limit: int, *, schema: Schema | None = None, indent: bool = False
) -> Decoded:
    """Decode at most about `limit` characters. A format that does not fit falls back to text, and text to hex.

    `schema`: what a registry has for the id in `data`.
    """
    if data is None:
        return Decoded("null", "null", False)
    if wanted == "hex":
        return _hex(data, limit)
    if len(data) <= _BYTES_PARSED_MAX * limit:
        for name in _candidates(data, wanted, schema):
            try:
                text = json.dumps(_PARSERS[name](data, schema), ensure_ascii=False, indent=2 if indent else None)
            except _Unfit:
                continue
            return _cut(text, name, limit)
    part = data[: 4 * limit]
    try:
        text = part.decode()
    except UnicodeDecodeError as error:
        is_at_the_cut = len(part) < len(data) and error.start > len(part) - 4
        if not is_at_the_cut and wanted != "text":
            return _hex(data, limit)
        text = part.decode(errors="replace")
    return _cut(text, "text", limit, more=len(part) < len(data))


class _Unfit(Exception):
    """The bytes are not of this format."""


def _candidates(data: bytes, wanted: str, schema: Schema | None) -> Sequence[str]:
    """The formats to try, in this order."""
    if wanted != "guess":
        return (wanted,) if wanted in _PARSERS else ()
    found = []
    if schema is not None and schema.type in _BY_SCHEMA:
        found.append(_BY_SCHEMA[schema.type])
    if data[:1] in (b"{", b"[", b'"'):
        found.append("json")
    if data[:1] >= b"\x80":  # no text begins so: a map or array of up to 15 items, or a larger one
        found.append("msgpack")
    return found


def _json(data: bytes, schema: Schema | None) -> Any:
    start = PREFIX_BYTES if schema is not None and schema.type == "JSON" else 0
    try:
        return json.loads(data[start:])
    except (ValueError, RecursionError) as error:
        raise _Unfit from error


def _msgpack(data: bytes, schema: Schema | None) -> Any:
    try:
        found = msgpack.unpackb(data, strict_map_key=False)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise _Unfit from error
    if not isinstance(found, dict | list):
        raise _Unfit
    return _plain(found)


def _avro(data: bytes, schema: Schema | None) -> Any:
    if schema is None or schema.type != AVRO:
        raise _Unfit
    try:
        return _plain(fastavro.schemaless_reader(BytesIO(data[PREFIX_BYTES:]), schema.avro, None))
    except AVRO_ERRORS as error:
        raise _Unfit from error


def _protobuf(data: bytes, schema: Schema | None) -> Any:
    try:
        if schema is None or schema.type != PROTOBUF:
            return read_message(data)
        if schema.protobuf is not None:
            return schema.protobuf.read(data[PREFIX_BYTES:])
        return read_message(data[skip_indexes(data, PREFIX_BYTES) :])
    except READ_ERRORS as error:
        raise _Unfit from error


def _plain(value: Any, depth: int = 0) -> Any:
    """Return what JSON can have: names are text, bytes are hex, other types as they name themselves."""
    if depth > _DEPTH_MAX:
        return "..."
    if isinstance(value, dict):
        return {
            name if isinstance(name, str) else str(_plain(name)): _plain(each, depth + 1)
            for name, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [_plain(each, depth + 1) for each in value]
    if isinstance(value, bytes):
        return "0x" + value.hex()
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


_PARSERS: Final[Mapping[str, Callable[[bytes, Schema | None], Any]]] = {
    "json": _json,
    "msgpack": _msgpack,
    "avro": _avro,
    "protobuf": _protobuf,
}
_BY_SCHEMA: Final = {AVRO: "avro", PROTOBUF: "protobuf", "JSON": "json"}


def _cut(text: str, name: str, limit: int, *, more: bool = False) -> Decoded:
    return Decoded(_visible(text[:limit]), name, more or len(text) > limit)


def _hex(data: bytes, limit: int) -> Decoded:
    shown = data[: max(1, limit // _HEX_SHARE)]
    return Decoded(shown.hex(" "), "hex", len(shown) < len(data))


def _visible(text: str) -> str:
    """Replace characters that move the cursor, change the direction of text, or are no characters."""
    return "".join(
        each if each in "\n\t" or unicodedata.category(each) not in ("Cc", "Cf", "Cs", "Co", "Cn") else _escape(each)
        for each in text
    )


def _escape(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
