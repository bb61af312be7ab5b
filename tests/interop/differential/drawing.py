"""Draws the script of a seed.

The drawer keeps a rough model of what the brokers will hold (log ends, sequences), so that most of what it draws is
near an edge. No step depends on an answer, so a script stays a script when steps are left out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from tests.interop.differential import configs, steps
from tests.interop.differential.batches import LOOSE, SEQUENCES, STRICT, Batch, BatchDrawer, renamed
from tests.interop.differential.transactions import TransactionDrawer

PRODUCE_VERSIONS = range(3, 14)
FETCH_VERSIONS = range(4, 19)
LIST_VERSIONS = range(1, 12)
MISSING = "missing"
"""A topic that is never created."""
_MAX_INT32 = 2**31 - 1
_RAW_PRODUCERS = (5_000_000, 5_000_007, 5_004_000, 2**40)
"""Producer ids that are used without having been given out; brokers do not ask."""


class ScriptDrawer:
    """Draws one script. `now` is in ms; times in the script are about it."""

    def __init__(self, seed: int, now: int, *, count: int = 120, restarts: int = 0) -> None:
        self._seed = seed
        self._chance = random.Random(seed)
        self._now = now
        self._count = count
        self._restarts = restarts
        self._transactional = TransactionDrawer(self._chance) if self._chance.random() < 0.35 else None
        self._has_own_clock = self._transactional is not None or self._chance.random() < 0.15
        """Whether topics may stamp their records themselves."""
        self._batches = BatchDrawer(self._chance, now, odd_times=restarts == 0)
        self._topics: dict[str, tuple[int, Mapping[str, str]]] = {}
        self._ends: dict[tuple[str, int], int] = {}
        self._sequences: dict[tuple[str, int, object], int] = {}
        self._sent: dict[tuple[str, int], list[Batch]] = {}
        self._producers: list[str] = []
        self._new_producers = 0
        self._is_restarted = False
        self._spoils = True

    def script(self) -> steps.Script:
        """Draw it."""
        for name in ("a", "b", "c")[: self._chance.choice([1, 2, 2, 3])]:
            self._topics[name] = self._chance.choice([1, 1, 2]), self._draw_configs()
        topics = {**self._topics, steps.LOOSE_TOPIC: (1, {})}
        drawn: list[steps.Step] = []
        restarts = set(self._chance.sample(range(20, self._count), self._restarts))
        for number in range(self._count):
            if number in restarts:
                drawn.append(steps.Restart(kill=self._chance.random() < 0.5))
                self._is_restarted = True
            drawn.append(self._step())
        drawn += [steps.DescribeProducers(name, tuple(range(count))) for name, (count, _) in self._topics.items()]
        return steps.Script(self._seed, topics, tuple(drawn), self._has_own_clock)

    def _draw_configs(self) -> dict[str, str]:
        return configs.draw(self._chance, has_own_clock=self._has_own_clock, restarts=bool(self._restarts))

    def _step(self) -> steps.Step:
        draws: dict[Callable[[], steps.Step], float] = {
            self._produce: 45,
            self._fetch: 20,
            self._list_offsets: 12,
            self._delete_records: 3,
            self._epoch_ends: 3,
            self._init_producer: 3,
            self._describe_producers: 3,
            self._recreate: 0.4,
            self._set_config: 1,
        }
        if self._restarts:
            # After a restart Kafka 4.3.0 gives a topic that was created again the configs of the deleted one, too.
            del draws[self._recreate]
        if self._is_restarted:
            del draws[self._epoch_ends]
        if self._transactional is not None:
            draws[self._transact] = 30
        return self._chance.choices(list(draws), list(draws.values()))[0]()

    def _place(self) -> tuple[str, int]:
        name = self._chance.choice(list(self._topics))
        return name, self._chance.randrange(self._topics[name][0])

    def _places(self, *, twice: float) -> dict[str, list[int]]:
        """Draw topics with partitions, some of which do not exist; `twice` is the chance that one is named twice."""
        chance = self._chance
        places: dict[str, list[int]] = {}
        for _ in range(chance.choice([1, 1, 1, 2, 3])):
            name, number = self._place()
            if chance.random() < 0.03:
                number = chance.choice([-1, 5, _MAX_INT32])
            if chance.random() < 0.02:
                name = MISSING
            numbers = places.setdefault(name, [])
            if number not in numbers or chance.random() < twice:
                numbers.append(number)
        return places

    # --- produce

    def _produce(self) -> steps.Produce:
        chance = self._chance
        if chance.random() < 0.12:
            data, note, _ = self._batches.sound(keyed=False)
            data, spoil = self._batches.spoil(data, LOOSE)
            batch = Batch(bytes(data), f"{note}, {spoil}")
            return steps.Produce(chance.choice(PRODUCE_VERSIONS), 1, ((steps.LOOSE_TOPIC, ((0, (batch,)),)),))
        # Not twice the same: of two batches for one partition Kafka drops the first, and Barnabas neither.
        places = self._places(twice=0)
        acks = chance.choices([1, -1, 0, chance.choice([2, -2, 100])], [12, 8, 2, 0.3])[0]
        self._spoils = acks in (0, 1, -1)  # which of two refusals is told may differ
        topics = tuple(
            (name, tuple((number, self._records(name, number)) for number in numbers))
            for name, numbers in places.items()
        )
        return steps.Produce(chance.choice(PRODUCE_VERSIONS), acks, topics, chance.choices([None, "t"], [60, 1])[0])

    def _records(self, name: str, number: int) -> tuple[Batch, ...]:
        chance = self._chance
        sent = self._sent.setdefault((name, number), [])
        if sent and not self._rolls(name) and chance.random() < 0.12:
            return (renamed(chance.choice(sent[-8:]), "again"),)
        batch = self._batch(name, number)
        if "producer" in batch.note or chance.random() < 0.1:
            sent.append(batch)
        return (batch,)

    def _rolls(self, name: str) -> bool:
        """Return whether a topic has several segments, so that no batch may fail the check of producers."""
        return configs.rolls(self._topics[name][1] if name in self._topics else {})

    def _batch(self, name: str, number: int) -> Batch:
        chance = self._chance
        own = self._topics[name][1] if name in self._topics else {}
        rolls = self._rolls(name)
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
            if "compression.type" in own:
                # Kafka gives all records the largest timestamp, or cannot build the batch.
                names = [each for each in names if each not in ("log append time", "producer epoch", "producer id")]
            data, spoil = self._batches.spoil(data, names)
            note += f", {spoil}"
        else:
            self._ends[name, number] = self._ends.get((name, number), 0) + count
            if key is not None:
                self._sequences[key] = (header["base_sequence"] + count) % (_MAX_INT32 + 1)
        return Batch(bytes(data), note, producer, 0)

    def _new_producer(self) -> dict[str, int]:
        """Return the header of a producer's first batch, which may have any sequence."""
        if self._chance.random() < 0.5:
            return {}
        self._new_producers += 1
        return {
            "producer_id": 6_000_000 + self._new_producers,
            "producer_epoch": self._chance.choice([0, 3]),
            "base_sequence": self._chance.choice([0, 7, _MAX_INT32]),
        }

    def _producer_fields(
        self, name: str, number: int
    ) -> tuple[dict[str, int], str, str | None, tuple[str, int, object] | None]:
        chance = self._chance
        if chance.random() < 0.5:
            return {}, "", None, None
        choices: list[str | int] = [*_RAW_PRODUCERS, *self._producers]
        producer = choices[0] if chance.random() < 0.5 else chance.choice(choices)
        key = name, number, producer
        first = chance.choices([0, _MAX_INT32 - 20, 5], [8, 1, 1])[0]
        sequence = self._sequences.get(key, first)
        epoch = 0
        if chance.random() < 0.15:
            sequence += chance.choice([1, -1, 10, -7])
        if isinstance(producer, int) and chance.random() < 0.12:
            recompresses = name in self._topics and "compression.type" in self._topics[name][1]
            # Kafka cannot build a batch with the epoch -1.
            epoch = chance.choice([1, 2, 2**15 - 1] if recompresses else [1, 2, -1, 2**15 - 1])
        sequence = max(-1, min(sequence, _MAX_INT32))
        header = {
            "producer_id": producer if isinstance(producer, int) else 0,
            "producer_epoch": epoch,
            "base_sequence": sequence,
        }
        note = f", producer {producer} epoch {epoch} sequence {sequence}"
        return header, note, producer if isinstance(producer, str) else None, key

    # --- lookups

    def _offset(self, name: str, number: int) -> int:
        chance = self._chance
        end = self._ends.get((name, number), 0)
        near = chance.choice([0, 1, end - 1, end, end + 1, chance.randrange(end + 1)])
        return chance.choices([max(near, 0), -1, end + 1000, 2**63 - 1, -5], [40, 1, 1, 0.5, 0.5])[0]

    def _bytes(self) -> int:
        chance = self._chance
        # Not negative: Kafka answers UNKNOWN_SERVER_ERROR for such a partition.
        return chance.choices([1 << 20, chance.randrange(3000), 0, 1, _MAX_INT32], [10, 10, 1, 1, 1])[0]

    def _epoch(self) -> int:
        drawn = self._chance.choices([-1, 0, 1, -2, 5], [20, 6, 0.5, 0.3, 0.5])[0]
        return -1 if self._is_restarted else drawn  # the epochs after a start differ

    def _fetch(self) -> steps.Fetch:
        chance = self._chance
        version = chance.choice(FETCH_VERSIONS)
        topics = tuple(
            (
                name,
                tuple(
                    steps.FetchPart(
                        number,
                        self._offset(name, number),
                        self._bytes(),
                        self._epoch(),
                        chance.choices([-1, 0, 3], [20, 2, 0.5])[0] if version >= 12 and not self._is_restarted else -1,
                    )
                    for number in numbers
                ),
            )
            for name, numbers in self._places(twice=0).items()
        )
        waits = chance.random() < 0.05
        return steps.Fetch(
            version,
            topics,
            self._bytes(),
            chance.choice([0, 1, 1, 100, 10_000]) if waits else chance.choice([0, 1, 5000]),
            15 if waits else 0,
            chance.choice([0, 0, 0, 1, 1]),
        )

    def _list_offsets(self) -> steps.ListOffsets:
        chance = self._chance
        topics = tuple(
            (name, tuple((number, self._lookup(), self._epoch()) for number in numbers))
            for name, numbers in self._places(twice=0.05).items()
        )
        return steps.ListOffsets(chance.choice(LIST_VERSIONS), topics, chance.choice([0, 0, 1]))

    def _lookup(self) -> int:
        chance = self._chance
        near = self._now + chance.randrange(-330_000, 330_000)
        odd = chance.choice([0, 1, -7, -100, 2**62, 2**63 - 1, self._now + 7_200_000, self._now - 40 * 86_400_000])
        if self._has_own_clock:  # which record has the largest time, or one of the present, is a matter of the clock
            return chance.choice([-1, -2, -4, -5, -6, odd])
        exact = chance.choice(self._batches.times[-40:] or [0]) + chance.choice([0, 0, 1])
        return chance.choices([near, exact, chance.randrange(-6, 0), odd], [3, 6, 5, 1])[0]

    def _delete_records(self) -> steps.DeleteRecords:
        chance = self._chance
        topics = tuple(
            (name, tuple((number, self._delete_offset(name, number)) for number in numbers))
            for name, numbers in self._places(twice=0).items()
            if self._transactional is None or name not in self._with_transactions()
        )
        return steps.DeleteRecords(chance.choice(range(3)), topics)

    def _delete_offset(self, name: str, number: int) -> int:
        end = self._ends.get((name, number), 0)
        chance = self._chance
        return chance.choices([chance.randrange(end // 2 + 1), self._offset(name, number), -1], [8, 2, 0.3])[0]

    def _epoch_ends(self) -> steps.EpochEnds:
        chance = self._chance
        topics = tuple(
            (name, tuple((number, self._epoch(), chance.choice([0, 0, 1, -1, -2, 5])) for number in numbers))
            for name, numbers in self._places(twice=0).items()
        )
        return steps.EpochEnds(chance.choice(range(2, 5)), topics)

    # --- producers and topics

    def _init_producer(self) -> steps.InitProducer:
        name = f"p{len(self._producers)}"
        self._producers.append(name)
        return steps.InitProducer(self._chance.choice(range(6)), name)

    def _describe_producers(self) -> steps.DescribeProducers:
        name, number = self._place()
        return steps.DescribeProducers(name, (number,))

    def _transact(self) -> steps.Step:
        assert self._transactional is not None
        places = [(name, number) for name in self._with_transactions() for number in range(self._topics[name][0])]
        return self._transactional.step(places, self._now) if places else self._fetch()

    def _with_transactions(self) -> list[str]:
        """Return the topics that transactions may write to.

        They lose no records: after a deletion within an open transaction, Kafka's last stable offset is the start of
        the batch with the new log start, below it.
        """
        return [
            name for name, (_, own) in self._topics.items() if name != "b" and own.keys().isdisjoint(configs.REFUSING)
        ]

    def _set_config(self) -> steps.SetConfig:
        chance = self._chance
        name, _ = self._place()
        count, own = self._topics[name]
        setting = chance.choice(list(configs.CHANGED))
        value = chance.choice(configs.CHANGED[setting])
        if setting in configs.REFUSING and self._transactional is not None:
            setting, value = "index.interval.bytes", "50"
        self._topics[name] = count, {**own, setting: value}
        return steps.SetConfig(name, setting, value)

    def _recreate(self) -> steps.Recreate:
        chance = self._chance
        name, _ = self._place()
        self._topics[name] = chance.choice([1, 2]), self._draw_configs()
        if self._transactional is not None:
            self._transactional.forget(name)
        self._ends = {key: value for key, value in self._ends.items() if key[0] != name}
        self._sequences = {key: value for key, value in self._sequences.items() if key[0] != name}
        self._sent = {key: value for key, value in self._sent.items() if key[0] != name}
        return steps.Recreate(name, *self._topics[name])
