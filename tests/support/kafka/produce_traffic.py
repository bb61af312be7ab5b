"""Random Produce requests of Kafka's protocol: plain ones, nearly plain ones, and broken ones."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.protocol.primitives import Writer
from barnabas.protocol.records import Codec, RecordBatchBuilder
from tests.support.storage.records import TIMESTAMP, reseal

FLEXIBLE_FROM = 9
TOPIC_IDS_FROM = 13
SPOILS = ("tags", "long size", "trailing byte", "cut", "header tags", "flipped bit", "null topics", "no topics")
_ATTRIBUTES = 22


@dataclass
class SentTopic:
    """One topic of a request; `batches` by partition, in the order of the request."""

    name: str
    batches: list[tuple[int, bytes | None]]


@dataclass
class Sent:
    """A request before encoding: brokers have different ids for one topic."""

    version: int
    correlation_id: int
    client_id: str | None
    topics: list[SentTopic]
    acks: int = 1
    transactional_id: str | None = None
    spoil: str | None = None

    def frame(self, ids: Mapping[str, bytes]) -> bytes:
        """Return the request with its size field."""
        content = bytearray(self._content(ids))
        if self.spoil == "trailing byte":
            content += b"?"
        elif self.spoil == "cut":
            del content[-2:]
        elif self.spoil == "flipped bit":
            # An id with another bit would be echoed, and the brokers' ids differ.
            end = 10 if self.version >= TOPIC_IDS_FROM else min(len(content), 80)
            place = random.Random(self.correlation_id).randrange(4, end)
            content[place] ^= 1 << (self.correlation_id % 8)
        return struct.pack(">i", len(content)) + content

    def _content(self, ids: Mapping[str, bytes]) -> bytes:
        flexible = self.version >= FLEXIBLE_FROM
        out = Writer().int16(0).int16(self.version).int32(self.correlation_id)
        out.raw(_string(self.client_id, flexible=False))
        if flexible:
            out.raw(b"\x01\x05\x01?" if self.spoil == "header tags" else b"\0")
        out.raw(_string(self.transactional_id, flexible=flexible)).int16(self.acks).int32(30_000)
        if self.spoil in ("null topics", "no topics"):
            return out.raw(_count(-1 if self.spoil == "null topics" else 0, flexible=flexible) + b"\0").to_bytes()
        out.raw(_count(len(self.topics), flexible=flexible))
        for topic in self.topics:
            if self.version >= TOPIC_IDS_FROM:
                out.raw(ids.get(topic.name, bytes(15) + b"?"))
            else:
                out.raw(_string(topic.name, flexible=flexible))
            out.raw(_count(len(topic.batches), flexible=flexible))
            for partition, records in topic.batches:
                out.int32(partition).raw(self._records(records, flexible=flexible))
                out.raw(self._tags(flexible=flexible))
            out.raw(b"\0" if flexible else b"")
        return out.raw(self._tags(flexible=flexible)).to_bytes()

    def _tags(self, *, flexible: bool) -> bytes:
        if not flexible:
            return b""
        return b"\x01\x07\x01?" if self.spoil == "tags" else b"\0"

    def _records(self, records: bytes | None, *, flexible: bool) -> bytes:
        if not flexible:
            return struct.pack(">i", -1) if records is None else struct.pack(">i", len(records)) + records
        size = Writer().unsigned_varint(0 if records is None else len(records) + 1).to_bytes()
        if self.spoil == "long size":
            size = size[:-1] + bytes([size[-1] | 0x80, 0])
        return size + (records or b"")


def _string(value: str | None, *, flexible: bool) -> bytes:
    if flexible:
        return Writer().compact_nullable_string(value).to_bytes()
    data = (value or "").encode()
    return struct.pack(">h", -1 if value is None else len(data)) + data


def _count(count: int, *, flexible: bool) -> bytes:
    return Writer().unsigned_varint(count + 1).to_bytes() if flexible else struct.pack(">i", count)


class ProduceTraffic:
    """Requests of a seed, each similar to the previous one: state of the producers included."""

    def __init__(self, seed: int, topics: Sequence[str], partitions: int) -> None:
        """`topics` have partitions from 0 to `partitions` - 1; the requests also name the one after them."""
        self._chance = random.Random(seed)
        self._topics = topics
        self._partitions = partitions
        self._sequences: dict[tuple[str, int, int], int] = {}
        self._version = 9
        self._client_id: str | None = "one"

    def requests(self, count: int) -> Iterator[Sent]:
        """Return `count` requests."""
        chance = self._chance
        for _ in range(count):
            if chance.random() < 0.2:
                self._version = chance.choice([3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 13, 9, 2, 14])
            if chance.random() < 0.1:
                self._client_id = chance.choice(["one", "zwei \N{SNOWMAN}", "__admin_client", "", None])
            topics = [self._topic() for _ in range(chance.choice([1, 1, 1, 1, 2, 3]))]
            yield Sent(
                self._version,
                chance.randrange(-(2**31), 2**31 - 2),
                self._client_id,
                topics,
                acks=chance.choice([1] * 12 + [-1] * 6 + [0, 2]),
                transactional_id="t" if chance.random() < 0.02 else None,
                spoil=chance.choice(SPOILS) if chance.random() < 0.1 else None,
            )

    def _topic(self) -> SentTopic:
        chance = self._chance
        name = chance.choice([self._topics[0], self._topics[0], *self._topics])
        numbers = [chance.randrange(self._partitions) for _ in range(chance.choice([1, 1, 1, 2, 4]))]
        if chance.random() < 0.03:
            numbers[-1] = chance.choice([self._partitions, -1, 2**31 - 1])
        if chance.random() < 0.01:
            numbers = []
        return SentTopic(name, [(number, self._records(name, number)) for number in numbers])

    def _records(self, topic: str, number: int) -> bytes | None:
        chance = self._chance
        if chance.random() < 0.01:
            return chance.choice([None, b"", b"x", bytes(40)])
        producer: dict[str, Any] = {}
        if chance.random() < 0.4:
            producer_id = chance.randrange(4)
            key = (topic, number, producer_id)
            sequence = self._sequences.get(key, 0)
            if chance.random() < 0.2:
                sequence = max(0, sequence + chance.choice([-1, -2, 1]))
            producer = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
        count = chance.choice([1, 1, 1, 2, 5])
        codec = chance.choice([Codec.NONE] * 8 + [Codec.GZIP, Codec.ZSTD, Codec.LZ4])
        builder = RecordBatchBuilder(codec, max_bytes=1 << 20, **producer)
        for _ in range(count):
            key_bytes = chance.choice([b"k", b"k", b"key", None])
            value = chance.randbytes(chance.choice([0, 5, 60, 200, 400]))
            assert builder.append(TIMESTAMP + chance.randrange(-5, 5), key_bytes, value, ())
        batch = bytearray(builder.build())
        if producer:
            self._sequences[topic, number, producer["producer_id"]] = producer["base_sequence"] + count
        spoil = chance.random()
        if spoil < 0.03:
            batch[chance.randrange(len(batch))] ^= 1 << chance.randrange(8)
        elif spoil < 0.05:
            del batch[chance.randrange(len(batch)) :]
        elif spoil < 0.08:
            batch[_ATTRIBUTES] |= chance.choice([0x10, 0x10, 0x10, 0x20, 0x08, 0x40])
            reseal(batch)
        elif spoil < 0.09:
            batch = batch + batch
        return bytes(batch)
