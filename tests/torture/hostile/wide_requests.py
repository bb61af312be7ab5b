"""For each list in the request of each API, one request that fills it up to what the broker decodes.

The other fields have plain values, so a request gets past the first checks of its handler where it can: the topic `t`
exists, groups and transactional ids need not. No two items of a list of names, ids or int32 numbers are equal. kio
encodes a request with one item, and what it encoded is repeated with other names and numbers.
"""

from __future__ import annotations

import dataclasses
import select
import struct
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints
from uuid import UUID

from barnabas.protocol.kafka.apis import KAFKA_APIS
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.varint import append_unsigned
from barnabas.protocol.wire.structures import MAX_ITEMS
from tests.support.daemon import start_daemon
from tests.support.kafka.kafka_wire import KafkaWire, framed, message_type, request_frame
from tests.torture.hostile.attacks import create_topics
from tests.torture.hostile.modest_client import modest_client

FRAME_BYTES = 2 * 1024 * 1024 - 1024
_NAME = "t"
_NAME_MARK = b"~~~~~~~"
_NUMBER_MARK = struct.pack(">i", 0x7A7B7C7D)
SHOWN = 12
"""Requests with the longest waits that `run` prints."""


class WideRequest(NamedTuple):
    """A request frame, and its API with the path of its long list."""

    api: str
    path: str
    items: int
    frame: bytes


def run(directory: Path) -> list[str]:
    """Send each request once, beside a modest client; print which made it wait longest. Returns what is wrong."""
    found = []
    with start_daemon(directory, "auto.create.topics.enable=false") as daemon, modest_client(daemon) as modest:
        with KafkaWire(daemon.host, daemon.port) as kafka:
            create_topics(kafka, 1)
        for request in wide_requests():
            with KafkaWire(daemon.host, daemon.port) as wide:
                wide.socket.sendall(request.frame)
                began, before = time.perf_counter(), len(modest.waits)
                modest.produce_while(lambda wide=wide: not select.select([wide.socket], [], [], 0)[0])  # type: ignore[misc]
                found.append((max(modest.waits[before:], default=0.0), time.perf_counter() - began, request))
        complaints = modest.complaints()
        complaints += [line for line in daemon.log.splitlines() if " ERROR " in line or line.startswith("Traceback")]
    print(f"{len(found)} requests with one long list each; those that delayed a modest client the most:")
    print("| API | list | items | modest client: longest wait, ms | answered after, ms |")
    print("| --- | --- | --- | --- | --- |")
    for wait, took, request in sorted(found, key=lambda each: -each[0])[:SHOWN]:
        print(f"| {request.api} | {request.path} | {request.items:,} | {1000 * wait:.0f} | {1000 * took:.0f} |")
    return complaints


def wide_requests() -> Iterator[WideRequest]:
    """Return the requests of all APIs in their latest versions."""
    for api in KAFKA_APIS:
        if api.key is not ApiKey.PRODUCE:  # its bytes are records
            label = api.key.name.lower()
            kind = message_type(label, api.highest, "request")
            for path in _lists(kind, ()):
                one, two = (request_frame(_entity(kind, path, count), 1) for count in (1, 2))
                yield _wide(label, path, one, two)


def _wide(label: str, path: tuple[str, ...], one: bytes, two: bytes) -> WideRequest:
    """Return the request that follows from those with one and with two items."""
    one, two = one[4:], two[4:]
    size = len(two) - len(one)
    place = next(index for index, (a, b) in enumerate(zip(one, two, strict=False)) if a != b)
    is_compact = one[place] == 2
    item = one[place + 1 : place + 1 + size]
    count = min((FRAME_BYTES - len(one)) // size, MAX_ITEMS - 100)
    items = b"".join(
        item.replace(_NAME_MARK, b"%07d" % number).replace(_NUMBER_MARK, struct.pack(">i", number))
        for number in range(count)
    )
    head = bytearray(one[:place] if is_compact else one[: place - 3])
    if is_compact:
        append_unsigned(head, count + 1)
    else:
        head += struct.pack(">i", count)
    return WideRequest(label, ".".join(path), count, framed(bytes(head) + items + one[place + 1 + size :]))


def _lists(kind: type[Any], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Return the paths of all lists of an entity."""
    for name, hint in get_type_hints(kind).items():
        if name.startswith("__"):
            continue
        item = _item(hint)
        if item is not None:
            yield (*path, name)
        for each in _members(hint if item is None else item):
            if isinstance(each, type) and dataclasses.is_dataclass(each):
                yield from _lists(each, (*path, name))


def _entity(kind: Any, path: tuple[str, ...], count: int, *, is_marked: bool = False) -> Any:
    """Return an entity in which the list at `path` has `count` marked items, and those on the way there have one."""
    values: dict[str, Any] = {}
    hints = get_type_hints(kind)
    for field in dataclasses.fields(kind):
        name, hint = field.name, hints[field.name]
        item = _item(hint)
        rest = path[1:] if path[:1] == (name,) else ()
        if item is None:
            values[name] = _value(name, hint, rest, count, is_marked=is_marked)
        elif path == (name,):
            values[name] = tuple(_value(name, item, (), 0, is_marked=True) for _ in range(count))
        elif rest:
            values[name] = (_value(name, item, rest, count, is_marked=False),)
        else:
            values[name] = ()
    return kind(**values)


def _value(name: str, hint: Any, path: tuple[str, ...], count: int, *, is_marked: bool) -> Any:
    """Return a value for a field, or an item of the list of that name."""
    kinds = _members(hint)
    for each in kinds:
        if dataclasses.is_dataclass(each):
            return _entity(each, path, count, is_marked=is_marked)
    if type(None) in kinds and not name.endswith(("name", "topic", "topics")):
        return None
    kind: Any = next(each for each in kinds if isinstance(each, type) and each is not type(None))
    if issubclass(kind, bool):
        return False
    if issubclass(kind, timedelta):
        return timedelta(milliseconds=100)
    if issubclass(kind, str):
        return _NAME + _NAME_MARK.decode() if is_marked else _NAME
    if issubclass(kind, UUID):
        return UUID(bytes=bytes(12) + _NUMBER_MARK) if is_marked else UUID(int=1)
    if issubclass(kind, bytes):
        return b""
    if is_marked and kind.__name__ == "i32":
        return struct.unpack(">i", _NUMBER_MARK)[0]
    return kind(0.0 if issubclass(kind, float) else 0)


def _item(hint: Any) -> Any:
    """Return the type of a list's items; None for what is no list."""
    for each in _members(hint):
        if getattr(each, "__origin__", None) is tuple:
            return get_args(each)[0]
    return None


def _members(hint: Any) -> list[Any]:
    """Return a type, or the members of a union."""
    arguments = get_args(hint)
    if getattr(hint, "__origin__", None) is tuple or not arguments:
        return [hint]
    return [member for argument in arguments for member in _members(argument)]
