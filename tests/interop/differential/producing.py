"""Draws Produce requests."""

from __future__ import annotations

import random

from tests.interop.differential import steps
from tests.interop.differential.batches import LOOSE, SEQUENCES, STRICT, Batch, BatchDrawer, renamed
from tests.interop.differential.model import MAX_INT32, Model

PRODUCE_VERSIONS = range(3, 14)
_RAW_PRODUCERS = (5_000_000, 5_000_007, 5_004_000, 2**40)
"""Producer ids that are used without having been given out; brokers do not ask."""


class ProduceDrawer:
    """Draws Produce requests of all but transactional producers."""

    def __init__(self, chance: random.Random, model: Model, batches: BatchDrawer) -> None:
        self._chance = chance
        self._model = model
        self._batches = batches
        self.producers: list[str] = []
        """The script's names of producers that got their ids from a broker."""
        self._new_producers = 0
        self._spoils = True

    def step(self) -> steps.Produce:
        chance = self._chance
        if chance.random() < 0.12:
            data, note, _ = self._batches.sound(keyed=False)
            data, spoil = self._batches.spoil(data, LOOSE)
            batch = Batch(bytes(data), f"{note}, {spoil}")
            return steps.Produce(chance.choice(PRODUCE_VERSIONS), 1, ((steps.LOOSE_TOPIC, ((0, (batch,)),)),))
        # Not twice the same: of two batches for one partition Kafka drops the first, and Barnabas neither.
        places = self._model.places(chance, twice=0)
        acks = chance.choices([1, -1, 0, chance.choice([2, -2, 100])], [12, 8, 2, 0.3])[0]
        self._spoils = acks in (0, 1, -1)  # which of two refusals is told may differ
        topics = tuple(
            (name, tuple((number, self._records(name, number)) for number in numbers))
            for name, numbers in places.items()
        )
        return steps.Produce(chance.choice(PRODUCE_VERSIONS), acks, topics, chance.choices([None, "t"], [60, 1])[0])

    def _records(self, name: str, number: int) -> tuple[Batch, ...]:
        chance = self._chance
        sent = self._model.sent.setdefault((name, number), [])
        if sent and not self._model.rolls(name) and chance.random() < 0.12 and self._spoils:
            return (renamed(chance.choice(sent[-8:]), "again"),)
        batch = self._batch(name, number)
        if "producer" in batch.note or chance.random() < 0.1:
            sent.append(batch)
        return (batch,)

    def _batch(self, name: str, number: int) -> Batch:
        chance = self._chance
        own = self._model.own(name)
        rolls = self._model.rolls(name)
        is_spoiled = self._spoils and chance.random() < 0.2
        if rolls:
            header, note, producer, key = {} if is_spoiled else self._new_producer(), "", None, None
        else:
            header, note, producer, key = self._producer_fields(name, number)
        data, what, count = self._batches.sound(keyed="compact" in own.get("cleanup.policy", ""), **header)
        if rolls and header:
            note = f", new producer {header['producer_id']} sequence {header['base_sequence']}"
        note = f"{what}{note}"
        if is_spoiled:
            names = [each for each in STRICT if not (rolls and each in SEQUENCES)]
            if self._model.recompresses(name):
                # Kafka gives all records the largest timestamp, or cannot build the batch.
                names = [each for each in names if each not in ("log append time", "producer epoch", "producer id")]
            data, spoil = self._batches.spoil(data, names)
            note += f", {spoil}"
        else:
            self._model.ends[name, number] = self._model.ends.get((name, number), 0) + count
            if key is not None:
                self._model.sequences[key] = (header["base_sequence"] + count) % (MAX_INT32 + 1)
        return Batch(bytes(data), note, producer, 0)

    def _new_producer(self) -> dict[str, int]:
        """Return the header of a producer's first batch, which may have any sequence."""
        if self._chance.random() < 0.5:
            return {}
        self._new_producers += 1
        return {
            "producer_id": 6_000_000 + self._new_producers,
            "producer_epoch": self._chance.choice([0, 3]),
            "base_sequence": self._chance.choice([0, 7, MAX_INT32]),
        }

    def _producer_fields(
        self, name: str, number: int
    ) -> tuple[dict[str, int], str, str | None, tuple[str, int, object] | None]:
        chance = self._chance
        if chance.random() < 0.5:
            return {}, "", None, None
        choices: list[str | int] = [*_RAW_PRODUCERS, *self.producers]
        producer = choices[0] if chance.random() < 0.5 else chance.choice(choices)
        key = name, number, producer
        first = chance.choices([0, MAX_INT32 - 20, 5], [8, 1, 1])[0]
        sequence = self._model.sequences.get(key, first)
        epoch = 0
        if chance.random() < 0.15:
            sequence += chance.choice([1, -1, 10, -7])
        if isinstance(producer, int) and chance.random() < 0.12:
            recompresses = self._model.recompresses(name)
            # Kafka cannot build a batch with the epoch -1.
            epoch = chance.choice([1, 2, 2**15 - 1] if recompresses else [1, 2, -1, 2**15 - 1])
        sequence = max(-1, min(sequence, MAX_INT32))
        header = {
            "producer_id": producer if isinstance(producer, int) else 0,
            "producer_epoch": epoch,
            "base_sequence": sequence,
        }
        note = f", producer {producer} epoch {epoch} sequence {sequence}"
        return header, note, producer if isinstance(producer, str) else None, key
