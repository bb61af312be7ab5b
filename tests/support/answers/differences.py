"""What differs between a recorded exchange and the one that was played, and what has been accepted."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from kio.serial import entity_reader
from kio.serial.errors import SerialError

from tests.support.answers.play import CLOSED, Exchange
from tests.support.answers.requests import answered, lines
from tests.support.kafka.kafka_wire import message_type, read

_LINE: Final = re.compile(r"- (?P<name>\S+ v\d+ .+) (?P<digest>[0-9a-f]{8}): (?P<reason>.*\S.*)")


def digest(exchange: Exchange) -> str:
    """Return what stands for an exchange's bytes in accepted.md."""
    return hashlib.sha256(f"{exchange.request} {exchange.answer}".encode()).hexdigest()[:8]


def accepted(text: str) -> dict[str, str]:
    """Return the digests of the accepted exchanges by their names. Raises ValueError for a line without a reason."""
    found = {}
    for line in text.splitlines():
        if line.startswith("- "):
            match = _LINE.fullmatch(line)
            if match is None:
                raise ValueError(f"not `- api vN case digest: reason`: {line}")
            found[match["name"]] = match["digest"]
    return found


def describe(old: Exchange | None, new: Exchange) -> str:
    """Return a text that names the case, what differs, and the line that accepts it."""
    if old is None:
        return f"{new.name}: not recorded yet; ANSWERS=write records it"
    said = [f"{new.name}:"]
    if old.request != new.request:
        said += [f"  request {line}" for line in _fields("request", old, new, old.request, new.request)]
    if old.answer != new.answer:
        said += [f"  answer {line}" for line in _fields("response", old, new, old.answer, new.answer)]
    return "\n".join([*said, f"  accept in accepted.md: - {new.name} {digest(new)}: <reason>"])


def _fields(kind: str, old: Exchange, new: Exchange, before: str, after: str) -> list[str]:
    then, now = _decoded(kind, old, before), _decoded(kind, new, after)
    names = dict.fromkeys([*then, *now])
    changed = [
        f"{name}: {then.get(name, 'absent')} -> {now.get(name, 'absent')}"
        for name in names
        if then.get(name) != now.get(name)
    ]
    return changed or [f"bytes: {before} -> {after}"]


def _decoded(kind: str, exchange: Exchange, data: str) -> dict[str, str]:
    if data == CLOSED:
        return {"connection": "closed"}
    frame = bytes.fromhex(data)
    if kind == "response":
        return lines(answered(exchange.api, exchange.version, frame) or f"unread {data}")
    try:
        request = message_type(exchange.api, exchange.version, "request")
        header = request.__header_schema__
        _, size = entity_reader(header)(frame, 0)
        return lines(read(request, frame[size:]))
    except (AssertionError, ImportError, SerialError, ValueError):  # not a whole request
        return {"bytes": data}
