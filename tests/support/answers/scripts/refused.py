"""What every API refuses: a version that is not served, a body that cannot be read, and a user without rights."""

from __future__ import annotations

import struct

from tests.support.answers.play import CORRELATION_ID, Play
from tests.support.answers.requests import APIS, versions
from tests.support.authorization.rows import ROWS, TOKEN_HMAC
from tests.support.kafka.kafka_wire import KafkaWire


def refuse_unread(play: Play, api: str) -> None:
    """Send versions that are not served, and a body that ends early; each on a connection of its own."""
    row, newest = APIS[api], versions(api)[-1]
    unserved = [newest + 1, *([row.lowest - 1] if row.lowest else [])]
    for version in unserved:
        frame = _header(int(row.key), version, is_flexible=version >= row.flexible_from)
        play.send(api, version, "a version that is not served", frame, on=play.connect())
    frame = _header(int(row.key), newest, is_flexible=newest >= row.flexible_from)
    play.send(api, newest, "a body that is missing", frame, on=play.connect())


def _header(key: int, version: int, *, is_flexible: bool) -> bytes:
    return struct.pack(">hhih4s", key, version, CORRELATION_ID, 4, b"wire") + (b"\0" if is_flexible else b"")


def refuse_unauthorized(play: Play, api: str, nobody: KafkaWire) -> None:
    """Send the requests of the authorization table for a user without rights."""
    for row in ROWS:
        if row.api == api:
            values = row.request
            if values.get("hmac") == TOKEN_HMAC:
                values = {**values, "hmac": b"no token"}
            play.ask(api, row.version, f"without rights, {row.name}", values, on=nobody)
