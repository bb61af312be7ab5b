"""Drawn contents of a partition's records in a Produce request: sound batches, odd ones, and broken ones."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from barnabas.protocol.crc32c import crc32c
from barnabas.protocol.records import Codec
from barnabas.protocol.records.layout import CRC_POSITION, HEADER_SIZE, LOG_OVERHEAD
from barnabas.protocol.records.record import Record
from tests.support.storage.legacy import message
from tests.support.storage.records import build

LENGTH, EPOCH, MAGIC, ATTRIBUTES, LAST_DELTA = 8, 12, 16, 21, 23
BASE_TIMESTAMP, MAX_TIMESTAMP, PRODUCER_ID, PRODUCER_EPOCH, BASE_SEQUENCE, COUNT = 27, 35, 43, 51, 53, 57
TRANSACTIONAL, CONTROL, LOG_APPEND_TIME = 0x10, 0x20, 0x08
_SEALED = struct.Struct(">qh")
_PRODUCER_SLICE = slice(PRODUCER_ID, PRODUCER_ID + _SEALED.size)

Ids = Mapping[str, tuple[int, int]]
"""Producer ids and epochs that a broker has given out, by the script's names for them."""


def missing_producer(name: str) -> tuple[int, int]:
    """Return id and epoch for a producer of whose script the initialization was left out."""
    return 8_000_000 + int(name.lstrip("pt")), 0


@dataclass(frozen=True)
class Batch:
    """One batch of a request: bytes, except that a producer's id and epoch may be those of a broker."""

    data: bytes
    note: str
    """What it is, for people."""
    producer: str | None = None
    """The script's name of the producer whose id and epoch are written into the batch; None: they are as they are."""
    epoch_shift: int = 0

    def __repr__(self) -> str:
        return f"<{len(self.data)} bytes: {self.note}>"

    def bytes_for(self, ids: Ids) -> bytes:
        """Return the bytes for a broker that has given out these ids; the CRC stays right if it was."""
        if self.producer is None or len(self.data) < HEADER_SIZE:
            return self.data
        is_sealed = is_crc_right(self.data)
        data = bytearray(self.data)
        producer_id, epoch = ids.get(self.producer) or missing_producer(self.producer)
        data[_PRODUCER_SLICE] = _SEALED.pack(producer_id, max(-1, epoch + self.epoch_shift))
        if is_sealed:
            end = LOG_OVERHEAD + field(data, LENGTH, ">i")
            struct.pack_into(">I", data, CRC_POSITION, crc32c(bytes(data[ATTRIBUTES:end])))
        return bytes(data)


def is_crc_right(data: bytes | bytearray) -> bool:
    """Return whether the CRC of a batch is right, of which `data` may hold several."""
    end = LOG_OVERHEAD + int.from_bytes(data[LENGTH:EPOCH], "big", signed=True)
    return int.from_bytes(data[CRC_POSITION:ATTRIBUTES], "big") == crc32c(bytes(data[ATTRIBUTES:end]))


def seal(data: bytearray) -> bytearray:
    """Set length and CRC of a changed batch."""
    struct.pack_into(">i", data, LENGTH, len(data) - LOG_OVERHEAD)
    struct.pack_into(">I", data, CRC_POSITION, crc32c(bytes(data[ATTRIBUTES:])))
    return data


def put(data: bytearray, at: int, form: str, value: int) -> bytearray:
    """Write a field of a batch, and make length and CRC right again."""
    struct.pack_into(form, data, at, value)
    return seal(data)


def field(data: bytes | bytearray, at: int, form: str) -> int:
    """Read a field of a batch."""
    (value,) = struct.unpack_from(form, data, at)
    return int(value)


class BatchDrawer:
    """Draws batches; `now` is the time of the run in ms, about which timestamps are drawn.

    `odd_times`: some are far away. With a restart they would be those of producers that have expired, which Kafka
    forgets and Barnabas does not while they write. `compresses`: some batches are compressed.
    """

    def __init__(self, chance: random.Random, now: int, *, odd_times: bool, compresses: bool) -> None:
        self._chance = chance
        self._now = now
        self._odd_times = odd_times
        self._codec_weights = [10, 1, 1, 1, 1] if compresses else [1, 0, 0, 0, 0]
        self.age_ms = 0
        """How much older than the run most records are."""
        self.times: list[int] = []
        """Timestamps that were drawn, for lookups."""

    def records(self, *, keyed: bool) -> list[Record]:
        """Draw the records of one batch."""
        chance = self._chance
        count = chance.choices([1, chance.randrange(2, 8), chance.randrange(8, 60)], [5, 5, 1])[0]
        first = self._timestamp()
        self.times.append(first)
        return [
            Record(
                offset,
                max(-1, first + chance.choice([0, 0, 1, -3, chance.randrange(-20_000, 20_000)])) if first >= 0 else -1,
                self._key(keyed=keyed),
                self._value(),
                self._headers(),
            )
            for offset in range(count)
        ]

    def sound(self, *, keyed: bool, **header: int) -> tuple[bytearray, str, int]:
        """Draw a batch that follows the format; return it with its description and its number of records."""
        chance = self._chance
        records = self.records(keyed=keyed)
        codec = chance.choices(list(Codec), self._codec_weights)[0]
        note = f"{len(records)} records {codec.name}"
        return build(records, codec, **header), note, len(records)

    def spoil(self, data: bytearray, names: Sequence[str]) -> tuple[bytearray, str]:
        """Change a batch so that it is odd or broken, in one of these ways; return it with what was done."""
        name = self._chance.choice(names)
        return SPOILS[name](data, self._chance), name

    def _timestamp(self) -> int:
        chance = self._chance
        near = self._now - self.age_ms + chance.randrange(-300_000, 300_000)
        odd = chance.choice([-1, 0, 1, self._now + 7_200_000, self._now - 40 * 86_400_000, 2**62, self._now * 1000])
        return chance.choices([near, odd], [12, self._odd_times])[0]

    def _key(self, *, keyed: bool) -> bytes | None:
        chance = self._chance
        return chance.choices([b"key-%d" % chance.randrange(9), b"", None], [8, 1, 0.05 if keyed else 2])[0]

    def _value(self) -> bytes | None:
        chance = self._chance
        return chance.choices(
            [chance.randbytes(chance.randrange(1, 80)), b"v" * chance.randrange(100, 600), b"", None], [8, 4, 1, 1]
        )[0]

    def _headers(self) -> tuple[tuple[str, bytes | None], ...]:
        chance = self._chance
        if chance.random() < 0.85:
            return ()
        drawn = [("h", b"1"), ("", b""), ("none", None), ("ä", b"\xff")]
        return tuple(chance.choice(drawn) for _ in range(chance.randrange(1, 4)))


Spoil = Callable[[bytearray, random.Random], bytearray]


def _setting(at: int, form: str, *values: int) -> Spoil:
    return lambda data, chance: put(data, at, form, chance.choice(values))


def _adding(at: int, form: str, *values: int) -> Spoil:
    return lambda data, chance: put(data, at, form, field(data, at, form) + chance.choice(values))


def _or_attributes(*bits: int) -> Spoil:
    def change(data: bytearray, chance: random.Random) -> bytearray:
        value = field(data, ATTRIBUTES, ">H") | chance.choice(bits)
        return put(data, ATTRIBUTES, ">H", value)

    return change


def _unsealed(at: int, form: str, *values: int) -> Spoil:
    def change(data: bytearray, chance: random.Random) -> bytearray:
        struct.pack_into(form, data, at, chance.choice(values))
        return data

    return change


def _shifted_length(data: bytearray, chance: random.Random) -> bytearray:
    length = field(data, LENGTH, ">i") + chance.choice([1, 500])
    struct.pack_into(">i", data, LENGTH, length)
    return data


def _flipped(data: bytearray, chance: random.Random) -> bytearray:
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return data


def _cut(data: bytearray, chance: random.Random) -> bytearray:
    del data[chance.randrange(len(data)) :]
    return data


def _sealed_change(data: bytearray, chance: random.Random) -> bytearray:
    """Change a byte of the records, with a right CRC: sizes, varints and compressed data that do not fit."""
    if len(data) > HEADER_SIZE:
        data[chance.randrange(HEADER_SIZE, len(data))] ^= 1 << chance.randrange(8)
    return seal(data)


def _sealed_first_record(data: bytearray, chance: random.Random) -> bytearray:
    """Change one of the first bytes of the records, which are sizes, deltas and counts."""
    at = HEADER_SIZE + chance.randrange(8)
    if at < len(data):
        data[at] = chance.choice([0, 1, 2, 3, 0x7F, 0x80, 0xFF])
    return seal(data)


def _sealed_cut(data: bytearray, chance: random.Random) -> bytearray:
    del data[chance.randrange(HEADER_SIZE, len(data) + 1) :]
    return seal(data)


def _sealed_tail(data: bytearray, chance: random.Random) -> bytearray:
    data += chance.randbytes(chance.randrange(1, 20))
    return seal(data)


def _garbage_payload(data: bytearray, chance: random.Random) -> bytearray:
    data[HEADER_SIZE:] = chance.randbytes(len(data) - HEADER_SIZE)
    value = field(data, ATTRIBUTES, ">H") & ~7 | chance.randrange(5)
    return put(data, ATTRIBUTES, ">H", value)


def _no_records(data: bytearray, chance: random.Random) -> bytearray:
    del data[HEADER_SIZE:]
    put(data, LAST_DELTA, ">i", chance.choice([-1, 0, field(data, LAST_DELTA, ">i")]))
    return put(data, COUNT, ">i", 0)


def _legacy(data: bytearray, chance: random.Random) -> bytearray:
    magic = chance.randrange(2)
    return bytearray(b"".join(message(n, b"old", magic=magic, timestamp=n) for n in range(chance.randrange(1, 3))))


def _later(data: bytearray, chance: random.Random) -> bytearray:
    """Move all timestamps, but not to a time before 1970, which Kafka refuses in some cases and not in others."""
    before = field(data, BASE_TIMESTAMP, ">q")
    return put(data, BASE_TIMESTAMP, ">q", before + chance.choice([1, 5000])) if before >= 1 << 40 else data


SPOILS: Mapping[str, Spoil] = {
    "flipped bit": _flipped,
    "cut": _cut,
    "wrong crc": lambda data, chance: _unsealed(CRC_POSITION, ">I", chance.getrandbits(32))(data, chance),
    "wrong length": _shifted_length,
    "odd length": _unsealed(LENGTH, ">i", 0, -1, -(2**31), 2**31 - 1, 13),
    "magic": _unsealed(MAGIC, ">b", 0, 1, 3, -1, 127),
    "count": _adding(COUNT, ">i", 1, -1, 2),
    "odd count": _setting(COUNT, ">i", 0, -1, 2**31 - 1, 1000),
    "last delta": _adding(LAST_DELTA, ">i", 1, -1, 5),
    "odd last delta": _setting(LAST_DELTA, ">i", -1, -(2**31), 2**31 - 1, 1000, 0),
    "count and last delta": lambda data, _: put(put(data, COUNT, ">i", 9), LAST_DELTA, ">i", 8),
    "max timestamp": _adding(MAX_TIMESTAMP, ">q", 1, -1, 100_000, -100_000, -1_000_000),
    "odd max timestamp": _setting(MAX_TIMESTAMP, ">q", -1, 0, -(2**63), 2**63 - 1),
    "base timestamp": _later,
    "odd base timestamp": _setting(BASE_TIMESTAMP, ">q", -1, 0, -2, -(2**63), 2**63 - 1),
    "codec": _setting(ATTRIBUTES, ">h", 0, 1, 2, 3, 4),
    "unknown codec": _or_attributes(5, 6, 7),
    "control": _or_attributes(CONTROL),
    "transactional": _or_attributes(TRANSACTIONAL),
    "log append time": _or_attributes(LOG_APPEND_TIME),
    "unused attributes": _or_attributes(0x80, 0x100, 0x8000),
    "producer id": _setting(PRODUCER_ID, ">q", 5_000_000, -2, 7_000_000, 2**63 - 1, -(2**63)),
    "producer epoch": _setting(PRODUCER_EPOCH, ">h", -1, -2, 3, 2**15 - 1),
    "base sequence": _setting(BASE_SEQUENCE, ">i", -1, -2, 0, 2**31 - 1, -(2**31)),
    "base offset": _unsealed(0, ">q", 1, 5, -1, 2**63 - 1),
    "leader epoch": _unsealed(EPOCH, ">i", 0, 7, -2, 2**31 - 1),
    "changed records": _sealed_change,
    "changed first record": _sealed_first_record,
    "cut records": _sealed_cut,
    "tail": _sealed_tail,
    "garbage": _garbage_payload,
    "no records": _no_records,
    "old format": _legacy,
    "twice": lambda data, _: data + data,
    "nothing": lambda _, __: bytearray(),
    "noise": lambda _, chance: bytearray(chance.randbytes(chance.randrange(1, 200))),
}
"""Changes of a sound batch. Some leave it legal: Kafka decides.

Left out is what Barnabas refuses on purpose and Kafka stores: a delete horizon, by which a producer could erase
tombstones, and bytes after the batch that are no whole batch, which Kafka drops.
"""
LOOSE = (
    "changed records",
    "changed first record",
    "cut records",
    "tail",
    "garbage",
    "codec",
    "unknown codec",
    "odd base timestamp",
    "flipped bit",
    "wrong length",
    "odd length",
    "magic",
    "transactional",
    "unused attributes",
    "noise",
)
"""Changes after which Kafka is less strict, or refuses all of a request: for requests with one batch, to a topic of
which nothing else is compared. Kafka does not look at the offsets of uncompressed records, and ignores what follows
compressed ones; it refuses all batches of a request if one has no header that it can read.
"""
SEQUENCES = ("producer id", "producer epoch", "base sequence")
"""Changes that the check of producers finds, before which Kafka, unlike Barnabas, has rolled a segment that is due."""
STRICT = tuple(name for name in SPOILS if name not in LOOSE)


def renamed(batch: Batch, what: str) -> Batch:
    """Return a batch with an addition to its description."""
    return replace(batch, note=f"{batch.note}, {what}")
