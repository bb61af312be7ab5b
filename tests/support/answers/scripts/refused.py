"""What every API refuses: a version that is not served, a body that cannot be read, and a user without the rights."""

from __future__ import annotations

import struct
from typing import Any, Final

from tests.support.answers.play import CORRELATION_ID, Play
from tests.support.answers.requests import APIS, versions
from tests.support.answers.scripts.made import rights
from tests.support.authorization.rows import ROWS, TOKEN_HMAC, Row
from tests.support.kafka.kafka_wire import KafkaWire

_SINCE: Final = {"create-token": 3, "init-two-phase": 6, "metadata-all": 1}
"""Rows that say something else, or nothing, in a version before: for another user, or of all topics."""


def refuse_unread(play: Play, api: str) -> None:
    """Send versions that are not served, and bodies that end early; each on a connection of its own."""
    row, newest = APIS[api], versions(api)[-1]
    unserved = [newest + 1, *([row.lowest - 1] if row.lowest else [])]
    for version in unserved:
        refuse_version(play, api, version)
    for version in versions(api):
        frame = _header(int(row.key), version, is_flexible=version >= row.flexible_from)
        play.send(api, version, "a body that is missing", frame, on=play.connect())


def refuse_version(play: Play, api: str, version: int) -> None:
    """Send a version that is not served, on a connection of its own."""
    row = APIS[api]
    frame = _header(int(row.key), version, is_flexible=version >= row.flexible_from)
    play.send(api, version, "a version that is not served", frame, on=play.connect())


def _header(key: int, version: int, *, is_flexible: bool) -> bytes:
    return struct.pack(">hhih4s", key, version, CORRELATION_ID, 4, b"wire") + (b"\0" if is_flexible else b"")


def refuse_unauthorized(play: Play, api: str, nobody: KafkaWire) -> None:
    """Send the requests of the authorization table for a user without rights."""
    for row in ROWS:
        if row.api == api:
            since = _SINCE.get(row.name, 0)
            play.each(api, f"without rights, {row.name}", _request(row), since=since, on=nobody)


def refuse_in_part(play: Play, api: str, nobody: KafkaWire) -> None:
    """Send the requests of the authorization table for a user with rights to a part of them."""
    for row in ROWS:
        for number, grants in enumerate(row.stages if row.api == api else (), 1):
            case, since = f"with rights to a part, {row.name} {number}", _SINCE.get(row.name, 0)
            with rights(play, *grants):
                play.each(api, case, _request(row), since=since, on=nobody)


def _request(row: Row) -> dict[str, Any]:
    values = row.request
    if values.get("hmac") == TOKEN_HMAC:
        return {**values, "hmac": b"no token"}
    if row.api == "delete_topics":
        return {**values, "topic_names": [each["name"] for each in values["topics"]]}
    return values
