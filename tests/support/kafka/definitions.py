"""Kafka's own definitions of its messages and records, and a codec that interprets them.

    message = definition("4.4.0", "FetchRequest", 18)
    assert message.decode(message.encode(value)) == value

`tools/kafka_definitions.py` takes the definitions from Kafka's jars. Values are plain: a structure is a dict by Kafka's
field names, an array a list, a uuid 16 bytes, null None. The codec follows Kafka's documented rules (the README of its
message definitions) and shares no code with the broker.
"""

from __future__ import annotations

import json
import lzma
import random
import struct
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parents[2] / "protocol" / "definitions"
VERSIONS = ("4.3.0", "4.4.0")
NEWEST = VERSIONS[-1]

_FIXED = {
    "bool": ">?",
    "int8": ">b",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
    "float64": ">d",
}
_NO_UUID = bytes(16)


@cache
def load(version: str) -> dict[str, Any]:
    """Return the definitions of a version of Kafka by name."""
    definitions: dict[str, Any] = json.loads(lzma.decompress((FOLDER / f"{version}.json.xz").read_bytes()))
    return definitions


@cache
def definition(kafka: str, name: str, version: int) -> Structure:
    """Return one version of a message or record."""
    message = load(kafka)[name]
    if version not in versions(message["validVersions"]):
        raise LookupError(f"{name} of Kafka {kafka} has versions {message['validVersions']}, not {version}")
    is_flexible = version in versions(message["flexibleVersions"])
    common = {each["name"]: each["fields"] for each in message.get("commonStructs", [])}
    return _structure(message["fields"], version, is_flexible, common)


def message_name(api: str, kind: str) -> str:
    """Return Kafka's name of a message; `kind` is "request" or "response"."""
    return "".join(word.capitalize() for word in (*api.split("_"), kind))


def versions(text: str) -> range:
    """Return the range of Kafka's notation: "3", "3-5", "3+" or "none"."""
    if text == "none":
        return range(0)
    low, is_range, high = text.partition("-")
    if low.endswith("+"):
        return range(int(low[:-1]), 1 << 15)
    return range(int(low), int(high if is_range else low) + 1)


def header(kafka: str, name: str, version: int) -> Structure:
    """Return the header of a request or response."""
    is_flexible = definition(kafka, name, version).is_flexible
    if name.endswith("Request"):
        return definition(kafka, "RequestHeader", 2 if is_flexible else 1)
    return definition(kafka, "ResponseHeader", 1 if is_flexible and name != "ApiVersionsResponse" else 0)


class Field(NamedTuple):
    """A field in one version. `structure` is None for a basic type, whose name is `kind`."""

    name: str
    kind: str
    is_array: bool
    is_nullable: bool
    is_flexible: bool
    tag: int | None
    default: Any
    structure: Structure | None

    def put(self, out: bytearray, value: Any) -> None:
        """Append a value."""
        if value is None and not self.is_nullable:
            raise ValueError(f"{self.name} is null")
        if self.is_array:
            self._put_size(out, ">i", None if value is None else len(value))
            for item in value or ():
                self._put_item(out, item)
        elif self.structure and self.is_nullable:
            null = b"\xff" if self.tag is None else b"\0"
            out += null if value is None else b"\x01"
            if value is not None:
                self._put_item(out, value)
        else:
            self._put_item(out, value)

    def take(self, data: Bytes) -> Any:
        """Read a value."""
        value: Any = None
        if self.is_array:
            size = self._take_size(data, ">i")
            value = None if size is None else [self._take_item(data) for _ in range(size)]
        elif not (self.structure and self.is_nullable) or data.fixed(">b") == 1:
            value = self._take_item(data)
        if value is None and not self.is_nullable:
            raise ValueError(f"{self.name} is null")
        return value

    def draw(self, rng: random.Random) -> Any:
        """Return a random value; numbers are not negative, codes of errors are known, and times are of this age."""
        if self.is_nullable and rng.random() < 0.3:
            return None
        if self.tag is not None and rng.random() < 0.3:
            return self.default
        return [self._draw_item(rng) for _ in range(rng.randrange(4))] if self.is_array else self._draw_item(rng)

    def shape(self) -> Any:
        """Return what `declared.shape_of_structure` says of an equal field."""
        item: Any = self.structure.shape() if self.structure else self.kind
        if self.is_array:
            # Items are never null.
            item = "array", self.is_nullable, (item, False) if self.kind in ("string", "bytes", "records") else item
        elif self.structure:
            item = ("nullable", item) if self.is_nullable else item
        elif self.kind in ("string", "bytes", "records"):
            item = item, self.is_nullable
        return item if self.tag is None else ("tagged", self.tag, item)

    def _put_item(self, out: bytearray, value: Any) -> None:
        if self.structure:
            self.structure.put(out, value)
        elif self.kind in _FIXED:
            out += struct.pack(_FIXED[self.kind], value)
        elif self.kind == "uuid":
            out += struct.pack("16s", value)
        else:
            data = value.encode() if isinstance(value, str) else value
            self._put_size(out, ">h" if self.kind == "string" else ">i", None if data is None else len(data))
            out += data or b""

    def _take_item(self, data: Bytes) -> Any:
        if self.structure:
            return self.structure.take(data)
        if self.kind in _FIXED:
            return data.fixed(_FIXED[self.kind])
        if self.kind == "uuid":
            return data.raw(16)
        size = self._take_size(data, ">h" if self.kind == "string" else ">i")
        if size is None:
            return None
        return data.raw(size).decode() if self.kind == "string" else data.raw(size)

    def _put_size(self, out: bytearray, classic: str, size: int | None) -> None:
        if self.is_flexible:
            out += _varint(0 if size is None else size + 1)
        else:
            out += struct.pack(classic, -1 if size is None else size)

    def _take_size(self, data: Bytes, classic: str) -> int | None:
        size: int = data.varint() - 1 if self.is_flexible else data.fixed(classic)
        return None if size == -1 else size

    def _draw_item(self, rng: random.Random) -> Any:
        if self.structure:
            return self.structure.draw(rng)
        match self.kind:
            case "bool":
                return rng.random() < 0.5
            case "float64":
                return rng.random()
            case "string":
                return "".join(rng.choices("aä-€.Z", k=rng.randrange(9)))
            case "uuid":
                return rng.randbytes(16)
            case "bytes" | "records":
                return rng.randbytes(rng.randrange(9))
        if self.name.endswith("ErrorCode"):
            return rng.randrange(100)
        bits = 8 * struct.calcsize(_FIXED[self.kind]) - 1
        return rng.getrandbits(min(bits, 40) if self.name.endswith("Ms") else bits)


class Structure(NamedTuple):
    """The fields of a structure in one version, as they stand in the definition."""

    fields: tuple[Field, ...]
    is_flexible: bool
    missing: Mapping[str, tuple[Any, bool]]
    """Fields that the version lacks: the default, and whether another value may be lost ("ignorable")."""

    def encode(self, value: Mapping[str, Any]) -> bytes:
        """Return the bytes of a value; fields that it lacks have their defaults. Raises ValueError, KeyError."""
        out = bytearray()
        self.put(out, value)
        return bytes(out)

    def decode(self, data: bytes) -> dict[str, Any]:
        """Return the value of bytes, which must be used up. Raises ValueError."""
        left = Bytes(data)
        value = self.take(left)
        if left.at != len(data):
            raise ValueError(f"{len(data) - left.at} bytes are left over")
        return value

    def defaults(self) -> dict[str, Any]:
        """Return the value without anything set."""
        return {field.name: field.default for field in self.fields}

    def draw(self, rng: random.Random) -> dict[str, Any]:
        """Return a random value."""
        return {field.name: field.draw(rng) for field in self.fields}

    def shape(self) -> Any:
        """Return what `declared.shape_of_structure` returns of an equal structure."""
        return [field.shape() for field in self.fields]

    def put(self, out: bytearray, value: Mapping[str, Any]) -> None:
        """Append a value."""
        for name in value.keys() - {each.name for each in self.fields}:
            default, is_ignorable = self.missing[name]
            if not is_ignorable and value[name] != default:
                raise ValueError(f"this version has no {name}")
        tagged = {}
        for field in self.fields:
            found = value.get(field.name, field.default)
            if field.tag is None:
                field.put(out, found)
            elif found != field.default:
                field.put(part := bytearray(), found)
                tagged[field.tag] = part
        if self.is_flexible:
            out += _varint(len(tagged))
            for tag in sorted(tagged):
                out += _varint(tag) + _varint(len(tagged[tag])) + tagged[tag]

    def take(self, data: Bytes) -> dict[str, Any]:
        """Read a value."""
        value = {field.name: field.default if field.tag is not None else field.take(data) for field in self.fields}
        tags = {field.tag: field for field in self.fields if field.tag is not None}
        before = -1
        for _ in range(data.varint() if self.is_flexible else 0):
            tag, size = data.varint(), data.varint()
            part = Bytes(data.raw(size))
            if tag <= before or tag not in tags:
                raise ValueError(f"tag {tag} after {before} is unknown or out of order")
            before = tag
            value[tags[tag].name] = tags[tag].take(part)
            if part.at != size:
                raise ValueError(f"{tags[tag].name} does not fill its tag")
        return value


class Bytes:
    """Bytes that are read from the front."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def raw(self, size: int) -> bytes:
        """Read `size` bytes."""
        if not 0 <= size <= len(self.data) - self.at:
            raise ValueError(f"{size} bytes at {self.at} of {len(self.data)}")
        self.at += size
        return self.data[self.at - size : self.at]

    def fixed(self, form: str) -> Any:
        """Read a number."""
        return struct.unpack(form, self.raw(struct.calcsize(form)))[0]

    def varint(self) -> int:
        """Read an unsigned varint."""
        value = shift = 0
        while (byte := self.raw(1)[0]) >= 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift


def _structure(fields: list[Any], version: int, is_flexible: bool, common: Mapping[str, Any]) -> Structure:
    every = {each["name"]: _field(each, version, is_flexible, common) for each in fields}
    here = [each["name"] for each in fields if version in versions(each.get("versions") or each["taggedVersions"])]
    missing = {
        each["name"]: (every[each["name"]].default, bool(each.get("ignorable")))
        for each in fields
        if each["name"] not in here
    }
    return Structure(tuple(every[name] for name in here), is_flexible, missing)


def _field(field: Mapping[str, Any], version: int, is_flexible: bool, common: Mapping[str, Any]) -> Field:
    kind = field["type"].removeprefix("[]")
    is_array = field["type"] != kind
    fields = field.get("fields") or common.get(kind)
    structure = _structure(fields, version, is_flexible, common) if fields else None
    if "flexibleVersions" in field:
        is_flexible = version in versions(field["flexibleVersions"])
    return Field(
        field["name"],
        kind,
        is_array,
        version in versions(field.get("nullableVersions", "none")),
        is_flexible,
        field["tag"] if version in versions(field.get("taggedVersions", "none")) else None,
        default_of(field.get("default"), kind, is_array, structure),
        structure,
    )


def default_of(text: Any, kind: str, is_array: bool, structure: Structure | None) -> Any:
    """Return the default of a field; `text`: what the definition says of it, None for nothing."""
    if text == "null":  # the string: JSON's null is no default, as for Kafka's generator
        return None
    if is_array:
        return []
    if structure:
        return structure.defaults()
    match kind:
        case "string":
            return text or ""
        case "bytes":
            return b""
        case "records":
            return None
        case "uuid":
            return _NO_UUID
        case "bool":
            return str(text).lower() == "true"
        case "float64":
            return float(text or 0)
    return int(str(text or 0), 0)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))
