"""Message sets of format versions 0 and 1, written by Kafka's Java classes, and the records that Java reads from them.

`data/legacy_messages.txt` is the output of tests/interop/java/LegacyMessages.java; the interop tests run it again.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import NamedTuple

from barnabas.protocol.records.record import Record

GOLDEN = Path(__file__).parents[1] / "data" / "legacy_messages.txt"


class MessageSet(NamedTuple):
    """Three messages: their bytes, their records, and `NoTimestampType`, `CreateTime` or `LogAppendTime`."""

    name: str
    data: bytes
    records: tuple[Record, ...]
    timestamp_type: str


def message_sets() -> dict[str, MessageSet]:
    """Return all sets in the file by name, with offsets ascending from 0 across sets."""
    sets: dict[str, MessageSet] = {}
    for line in GOLDEN.read_text().splitlines():
        fields = line.split("\t")
        if len(fields) == 2:
            name = fields[0]
            sets[name] = MessageSet(name, bytes.fromhex(fields[1]), (), "")
        else:
            record = Record(int(fields[0]), int(fields[1]), unhex(fields[3]), unhex(fields[4]))
            sets[name] = sets[name]._replace(records=(*sets[name].records, record), timestamp_type=fields[2])
    return sets


def unhex(text: str) -> bytes | None:
    """Return bytes from the Java programs' output."""
    return None if text == "-" else bytes.fromhex(text)


def message(
    offset: int,
    value: bytes | None,
    *,
    key: bytes | None = None,
    magic: int = 1,
    attributes: int = 0,
    timestamp: int = 0,
) -> bytes:
    """Return one message with a correct CRC, for messages that Java does not write."""

    def sized(data: bytes | None) -> bytes:
        return b"\xff\xff\xff\xff" if data is None else len(data).to_bytes(4, "big") + data

    time = timestamp.to_bytes(8, "big", signed=True) if magic else b""
    body = bytes((magic, attributes)) + time + sized(key) + sized(value)
    content = zlib.crc32(body).to_bytes(4, "big") + body
    return offset.to_bytes(8, "big") + len(content).to_bytes(4, "big") + content
