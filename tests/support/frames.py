"""Requests of real clients, recorded by tests/interop/clients/recording, and mutations of them."""

from __future__ import annotations

import io
import random
import struct
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from datetime import timedelta
from functools import cache
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NamedTuple, get_args, get_origin
from uuid import UUID

from kio.serial import entity_writer

from barnabas.protocol.kafka.apis import Route
from barnabas.protocol.messages.api_key import OWN_KEYS
from tests.support.kafka.routes import ROUTES
from tests.support.storage.records import plain

DIRECTORY = Path(__file__).parents[1] / "protocol" / "frames"
_HEADER = struct.Struct(">hhih")
_EXTREMES = (0, 1, -1, 2**31 - 1, -(2**31), 2**24, 0x7FFF, 0x8000)
_MAX_EDITS = 4
_CLIENT_ID = b"made"
_SAMPLES: dict[str, Any] = {
    "bool": True,
    "int8": 0,
    "int16": 1,
    "int32": 0,
    "int64": 0,
    "uint16": 9092,
    "float64": 1.5,
    "string": "before",
    "bytes": b"before",
    "records": bytes(plain(2)),
    "timedelta_i32": timedelta(milliseconds=100),
    "timedelta_i64": timedelta(milliseconds=100),
    "uuid": UUID(int=1),
}


class Frame(NamedTuple):
    """A request without its size field, and the client that sent it."""

    client: str
    data: bytes

    @property
    def key(self) -> int:
        """The API key."""
        return int.from_bytes(self.data[:2], "big", signed=True)

    @property
    def version(self) -> int:
        """The API version."""
        return int.from_bytes(self.data[2:4], "big", signed=True)

    def body(self, *, is_flexible: bool) -> bytes:
        """Return the bytes after the request header (v2 for flexible versions, otherwise v1)."""
        client_id_bytes = max(0, _HEADER.unpack_from(self.data)[3])
        # the clients send no tagged fields in headers: the section is one zero byte
        tag_section = 1 if is_flexible else 0
        return self.data[_HEADER.size + client_id_bytes + tag_section :]


@cache
def recorded() -> list[Frame]:
    """Return all recorded requests."""
    return [
        Frame(path.stem, bytes.fromhex(line))
        for path in sorted(DIRECTORY.glob("*.hex"))
        for line in path.read_text().splitlines()
    ]


def by_api() -> dict[int, list[Frame]]:
    """Return the recorded and generated requests of each API key."""
    found: dict[int, list[Frame]] = defaultdict(list)
    for frame in (*recorded(), *made()):
        found[frame.key].append(frame)
    return dict(sorted(found.items()))


def made() -> list[Frame]:
    """Build a request for each served version without a recording, with every field set and an item in every array."""
    sent = {(frame.key, frame.version) for frame in recorded()}
    return [
        Frame("made", _header(route) + _write(_sample(_request_type(route.api.key.label, route.version))))
        for (key, version), route in sorted(ROUTES.items())
        if (key, version) not in sent
        and key not in OWN_KEYS  # whose bytes tests/protocol/kafka/test_own_apis.py breaks
    ]


def _header(route: Route) -> bytes:
    tags = b"\0" if route.is_flexible else b""
    return _HEADER.pack(route.api.key, route.version, 7, len(_CLIENT_ID)) + _CLIENT_ID + tags


def _request_type(api: str, version: int) -> Any:
    module = import_module(f"kio.schema.{api}.v{version}.request")
    return getattr(module, "".join(word.capitalize() for word in api.split("_")) + "Request")


def _sample(kind: Any) -> Any:
    return kind(**{field.name: _sample_of(field.type, field.metadata.get("kafka_type")) for field in fields(kind)})


def _sample_of(kind: Any, kafka_type: str | None) -> Any:
    if get_origin(kind) is UnionType:
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    if get_origin(kind) is tuple:
        return (_sample_of(get_args(kind)[0], kafka_type),)
    return _sample(kind) if is_dataclass(kind) else _SAMPLES[kafka_type or ""]


def _write(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


class Mutator:
    """Mutates bytes deterministically by seed."""

    def __init__(self, seed: int, others: Sequence[bytes]) -> None:
        self._random = random.Random(seed)
        self._others = others

    def mutate(self, data: bytes, *, first: int = 0) -> bytes:
        """Return a mutated copy in which the bytes before `first` are unchanged."""
        mutant = bytearray(data)
        for _ in range(self._random.randint(1, _MAX_EDITS)):
            edit: Callable[[bytearray, int], None] = self._random.choice(
                (
                    self._flip,
                    self._flip,
                    self._extreme,
                    self._extreme,
                    self._cut,
                    self._insert,
                    self._drop,
                    self._splice,
                )
            )
            if len(mutant) <= first:
                break
            edit(mutant, first)
        return bytes(mutant)

    def _position(self, mutant: bytearray, first: int) -> int:
        return self._random.randrange(first, len(mutant))

    def _flip(self, mutant: bytearray, first: int) -> None:
        mutant[self._position(mutant, first)] ^= 1 << self._random.randrange(8)

    def _extreme(self, mutant: bytearray, first: int) -> None:
        """Write a length, a count or a number at the limit of its type."""
        position = self._position(mutant, first)
        width = self._random.choice((1, 2, 4, 8))
        value = self._random.choice(_EXTREMES) & (256**width - 1)
        mutant[position : position + width] = value.to_bytes(width, "big")

    def _cut(self, mutant: bytearray, first: int) -> None:
        del mutant[self._position(mutant, first) :]

    def _insert(self, mutant: bytearray, first: int) -> None:
        position = self._position(mutant, first)
        mutant[position:position] = self._random.randbytes(self._random.choice((1, 2, 4, 100)))

    def _drop(self, mutant: bytearray, first: int) -> None:
        position = self._position(mutant, first)
        del mutant[position : position + self._random.choice((1, 2, 4, 16))]

    def _splice(self, mutant: bytearray, first: int) -> None:
        """Continue with the end of another frame."""
        other = self._random.choice(self._others)
        position = self._position(mutant, first)
        mutant[position:] = other[min(position, len(other)) :]
