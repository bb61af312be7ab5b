"""Draws the steps of transactional producers, which are mostly right: what they may do next is modelled."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from barnabas.protocol.records import Codec
from barnabas.protocol.records.record import Record
from tests.interop.differential import steps
from tests.interop.differential.batches import Batch
from tests.support.storage.records import build

Place = tuple[str, int]
_ZSTD_FROM = 7
"""Versions before are refused batches with zstd."""


@dataclass
class _Producer:
    """One transactional id. `is_new`: it adds partitions by producing, and each transaction has an epoch (KIP-890)."""

    name: str
    is_new: bool
    is_ready: bool = False
    added: set[Place] = field(default_factory=set)
    sequences: dict[Place, int] = field(default_factory=dict)


class TransactionDrawer:
    """Draws steps of a few transactional producers."""

    def __init__(
        self, chance: random.Random, codecs: Sequence[Codec], *, tombstones: bool = False, errs: bool = True
    ) -> None:
        """`codecs`: one of them compresses each batch. `tombstones`: some records have no value.

        `errs`: some requests are refused, for their epoch, their sequence or their partition.
        """
        self._chance = chance
        self._codecs = codecs
        self._tombstones = tombstones
        self._errs = errs
        self._producers = [_Producer(f"t{number}", chance.random() < 0.6) for number in range(chance.choice([1, 2, 3]))]

    def step(self, places: Sequence[Place], now: int) -> steps.Step:
        """Draw the next step of one of them; `places` are partitions that accept all records that are drawn here."""
        chance = self._chance
        producer = chance.choice(self._producers)
        if not producer.is_ready or chance.random() < 0.04:
            return self._init(producer)
        if producer.added and chance.random() < 0.25:
            return self._end(producer)
        if not producer.is_new and chance.random() < 0.3:
            return self._add(producer, chance.sample(places, chance.randrange(1, len(places) + 1)))
        return self._write(producer, places, now)

    def forget(self, topic: str) -> None:
        """Follow the deletion of a topic."""
        for producer in self._producers:
            producer.sequences = {place: each for place, each in producer.sequences.items() if place[0] != topic}
            producer.added = {place for place in producer.added if place[0] != topic}

    def _init(self, producer: _Producer) -> steps.InitProducer:
        producer.is_ready = True
        producer.added.clear()
        producer.sequences.clear()
        version = self._chance.choice(range(6))
        return steps.InitProducer(version, producer.name, producer.name)

    def _add(self, producer: _Producer, places: Sequence[Place]) -> steps.AddPartitions:
        producer.added.update(places)
        topics = tuple(
            (name, tuple(number for each, number in places if each == name))
            for name in dict.fromkeys(each for each, _ in places)
        )
        return steps.AddPartitions(self._chance.choice(range(4)), producer.name, producer.name, topics, self._shift())

    def _write(self, producer: _Producer, places: Sequence[Place], now: int) -> steps.Step:
        chance = self._chance
        known = sorted(producer.added) if producer.added and chance.random() < 0.95 else list(places)
        if not self._errs:
            known = sorted(producer.added)
            if not producer.is_new and not known:
                return self._add(producer, places)
        if producer.is_new or not known:
            known = list(places)
        chosen = chance.sample(known, min(len(known), chance.choice([1, 1, 2])))
        topics: dict[str, list[tuple[int, tuple[Batch, ...] | None]]] = {}
        for place in chosen:
            count = chance.randrange(1, 4)
            records = [
                Record(n, now + chance.randrange(-9000, 9000), b"key-%d" % n, self._value(), ()) for n in range(count)
            ]
            sequence = producer.sequences.get(place, 0)
            header = {"producer_id": 0, "producer_epoch": 0, "base_sequence": sequence, "is_transactional": True}
            codec = chance.choice(self._codecs)
            note = f"{count} records {codec.name}, transactional producer {producer.name} sequence {sequence}"
            batch = Batch(bytes(build(records, codec, **header)), note, producer.name)
            topics.setdefault(place[0], []).append((place[1], (batch,)))
            if producer.is_new or place in producer.added:
                producer.sequences[place] = sequence + count
                producer.added.add(place)
        version = chance.choice([12, 13] if producer.is_new else range(3 if self._errs else _ZSTD_FROM, 12))
        drawn = tuple((name, tuple(entries)) for name, entries in topics.items())
        return steps.Produce(version, -1, drawn, producer.name)

    def _end(self, producer: _Producer) -> steps.EndTransaction:
        chance = self._chance
        shift = self._shift()
        if shift == 0:
            producer.added.clear()
            if producer.is_new:
                producer.sequences.clear()
        version = 5 if producer.is_new else chance.choice(range(5))
        return steps.EndTransaction(version, producer.name, producer.name, chance.random() < 0.6, shift)

    def _value(self) -> bytes | None:
        value = self._chance.randbytes(9)
        return None if self._tombstones and self._chance.random() < 0.2 else value

    def _shift(self) -> int:
        """Draw a wrong epoch now and then."""
        shift = self._chance.choices([0, -1, 1], [30, 1, 1])[0]
        return shift if self._errs else 0
