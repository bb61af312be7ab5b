"""Message bodies by the `kio` package, whose typed entities are generated from Kafka's own message definitions.

Requests are read by entity_reader.py, answers are written by kio's own writer.

A version's module is imported at the first use of that version: kio itself costs 30 ms and 1 MiB, all the versions that
are served 0.7 s and 20 MiB, and a broker that no Kafka client asks pays nothing. An entity has the fields that its
version has: what reads one asks `getattr` for those that came later, what makes one calls `make`, which leaves out
those that the version does not have.
"""

from __future__ import annotations

import io
import sys
from datetime import timedelta
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, cast
from uuid import UUID

from barnabas.protocol.kafka.entity_reader import read_entity
from barnabas.protocol.uuids import ZERO_UUID

NO_THROTTLE = timedelta(0)
"""Nobody is throttled here."""

MAX_MESSAGE_CHARACTERS = 8000
"""In UTF-8 at most 32,000 bytes: a classic string's length is an int16."""


def read_request(api: str, version: int, body: memoryview) -> Any:
    """The request entity of `body`; nothing of `body` is kept. Raises DecodeError, naming the field."""
    return read_entity(_request_type(api, version), body)


def response_schema(api: str, version: int) -> ModuleType:
    """The module with the classes of an answer."""
    return _schema(api, version, "response")


def make(kind: Any, **fields: Any) -> Any:
    """An entity of `kind`, without the fields that its version does not have."""
    known = _field_names(kind)
    return kind(**{name: value for name, value in fields.items() if name in known})


def write(entity: Any) -> bytes:
    """The bytes of an answer's body."""
    buffer = io.BytesIO()
    kind: Any = type(entity)
    _writer(kind)(buffer, entity)
    return buffer.getvalue()


def sentence(message: str | None) -> str | None:
    """An error's message, cut to what a string of a classic version holds: it may quote a very long name."""
    return None if message is None else message[:MAX_MESSAGE_CHARACTERS]


def uuid_of(value: bytes) -> UUID | None:
    """An id for an entity; kio's zero id is None."""
    return None if value == ZERO_UUID else UUID(bytes=value)


def id_bytes(value: UUID | None) -> bytes:
    """The 16 bytes of an entity's id."""
    return ZERO_UUID if value is None else value.bytes


def milliseconds(value: timedelta) -> int:
    """An entity's duration."""
    return round(value.total_seconds() * 1000)


def duration(milliseconds: int) -> timedelta:
    """A duration for an entity."""
    return timedelta(milliseconds=milliseconds)


@cache
def _schema(api: str, version: int, kind: str) -> ModuleType:
    _load_kio()
    return import_module(f"kio.schema.{api}.v{version}.{kind}")


@cache
def _load_kio() -> None:
    """kio, without what it does for hypothesis where that is installed: 0.1 s and 10 MiB, and nothing is drawn here."""
    hidden = "hypothesis" not in sys.modules
    if hidden:
        sys.modules["hypothesis"] = cast(ModuleType, None)  # an import of it fails, as if it were not there
    try:
        import_module("kio.static._phantom")
    finally:
        if hidden:
            del sys.modules["hypothesis"]


@cache
def _request_type(api: str, version: int) -> Any:
    class_name = "".join(word.capitalize() for word in api.split("_")) + "Request"
    return getattr(_schema(api, version, "request"), class_name)


@cache
def _writer(kind: Any) -> Any:
    from kio.serial import entity_writer

    return entity_writer(kind)


@cache
def _field_names(kind: Any) -> frozenset[str]:
    return frozenset(kind.__dataclass_fields__)
