"""Frames of the native dialect in every encoding that msgpack allows, and with values that it does not."""

from __future__ import annotations

import random
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgpack

from tests.support.kafka.produce_traffic import Sent

ANSWERED_SPOILS: Final = ("unknown key", "missing key", "other value", "long row", "extra records", "missing records")
"""Faults that are answered; the connection continues."""

_INTEGERS: Final = (
    (0xCC, "B"), (0xCD, "H"), (0xCE, "I"), (0xCF, "Q"), (0xD0, "b"), (0xD1, "h"), (0xD2, "i"), (0xD3, "q"),
)  # fmt: skip


class LooseEncoder:
    """A msgpack encoder that chooses among all encodings of a value."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def encode(self, value: object) -> bytes:
        """Return one of the encodings of a value."""
        if type(value) is dict:
            entries = list(value.items())
            self._chance.shuffle(entries)
            content = b"".join([self.encode(key) + self.encode(each) for key, each in entries])
            return self._head(0x80, 16, (0xDE, 0xDF), len(entries)) + content
        if type(value) is list:
            return self._head(0x90, 16, (0xDC, 0xDD), len(value)) + b"".join([self.encode(each) for each in value])
        if type(value) is str:
            data = value.encode()
            return self._head(0xA0, 32, (0xD9, 0xDA, 0xDB), len(data)) + data
        return self._integer(value) if type(value) is int else _shortest(value)

    def _head(self, fixed: int, fixed_below: int, kinds: tuple[int, ...], count: int) -> bytes:
        if count < fixed_below and self._chance.random() < 0.7:
            return bytes([fixed | count])
        sizes = (1, 2, 4)[-len(kinds) :]
        kind, size = self._chance.choice([pair for pair in zip(kinds, sizes, strict=True) if count < 256 ** pair[1]])
        return bytes([kind]) + count.to_bytes(size, "big")

    def _integer(self, value: int) -> bytes:
        if self._chance.random() < 0.5:
            return _shortest(value)
        fitting = []
        for kind, form in _INTEGERS:
            try:
                fitting.append(bytes([kind]) + struct.pack(">" + form, value))
            except struct.error:
                continue
        return self._chance.choice(fitting)


def _shortest(value: object) -> bytes:
    packed: bytes = msgpack.packb(value)
    return packed


def native_frame(header: bytes, records: bytes) -> bytes:
    """Return a frame, with its size field."""
    return struct.pack(">iI", 4 + len(header) + len(records), 0xB7 << 24 | len(header)) + header + records


def native_request(api: int, body: dict[str, Any], records: bytes = b"", correlation_id: int = 1) -> bytes:
    """Return a request in the shortest encoding, with its size field."""
    return native_frame(msgpack.packb([api, 0, correlation_id, "wire", body]), records)


def answer_fields(frame: bytes) -> list[Any]:
    """Return api, version, correlation id, error code and body of an answer, given without its size field."""
    fields: list[Any] = msgpack.unpackb(frame[4 : 4 + int.from_bytes(frame[1:4], "big")])
    return fields


def spoil_body(body: dict[str, Any], spoil: str, chance: random.Random) -> None:
    """Change a body so that it is refused, or has a key more; the faults of records are left to the caller."""
    if spoil == "unknown key":
        body[chance.choice(["?", "", "throttle_ms"])] = chance.choice([1, None, [1, {"a": b"b"}]])
    elif spoil == "missing key":
        del body[chance.choice(list(body))]
    elif spoil == "other value":
        body[chance.choice(list(body))] = chance.choice([None, True, 1.0, b"a", "a", 1 << 63, -(1 << 31) - 1, {}, [[]]])
    elif spoil == "long row" and body["topics"]:
        chance.choice([body["topics"][0], body["topics"][0][1]]).append(chance.choice([0, [0, 1, 2]]))


@dataclass
class NativeSent:
    """A Produce request of the native dialect with the contents of `sent`, in encodings that `seed` chooses."""

    sent: Sent
    seed: int
    spoil: str | None = None

    @property
    def client_id(self) -> str | None:
        """The request's client id."""
        return self.sent.client_id

    def frame(self, _: Mapping[str, bytes] | None = None) -> bytes:
        """Return the request with its size field."""
        chance = random.Random(self.seed)
        batches = [each for topic in self.sent.topics for each in topic.batches]
        body: dict[str, Any] = {
            "acks": self.sent.acks,
            "topics": [
                [topic.name, [[number, len(records or b"")] for number, records in topic.batches]]
                for topic in self.sent.topics
            ],
        }
        if chance.random() < 0.8:
            body["timeout_ms"] = chance.choice([0, 30_000, -1, 2**31 - 1])
        if self.sent.transactional_id is not None or chance.random() < 0.2:
            body["transactional_id"] = self.sent.transactional_id
        records = b"".join([records or b"" for _, records in batches])
        if self.spoil is not None:
            spoil_body(body, self.spoil, chance)
            if self.spoil == "extra records":
                records += b"?"
            elif self.spoil == "missing records":
                records = records[:-1]
        header = LooseEncoder(chance).encode([0, 0, self.sent.correlation_id, self.sent.client_id, body])
        return native_frame(header, records)


def fetch_frame(
    partitions: list[tuple[str, int, int, int]], correlation_id: int = 77, client_id: str | None = "wire", **body: int
) -> bytes:
    """Return a Fetch request in the shortest encoding; `partitions` are topic, number, offset and max_bytes."""
    return native_frame(msgpack.packb([1, 0, correlation_id, client_id, fetch_body(partitions, **body)]), b"")


def fetch_body(partitions: list[tuple[str, int, int, int]], **settings: int) -> dict[str, Any]:
    """Return the body of a Fetch request; consecutive partitions of a topic share its row."""
    topics: list[Any] = []
    for topic, number, offset, max_bytes in partitions:
        if not topics or topics[-1][0] != topic:
            topics.append([topic, []])
        topics[-1][1].append([number, offset, max_bytes])
    return {**settings, "topics": topics}


def mutated(frame: bytes, chance: random.Random) -> bytes:
    """Return the frame with changed bits, or shorter or longer, and its size field right."""
    data = bytearray(frame[4:])
    # The magic stays: other first bytes belong to other protocols.
    for _ in range(chance.choice([1, 1, 2])):
        data[chance.randrange(1, min(len(data), 120))] ^= 1 << chance.randrange(8)
    if chance.random() < 0.1:
        del data[chance.randrange(4, len(data)) :]
    elif chance.random() < 0.1:
        data += bytes(chance.randrange(256) for _ in range(chance.randrange(1, 9)))
    return len(data).to_bytes(4, "big") + data
