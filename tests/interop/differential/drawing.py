"""Draws the script of a seed.

The drawer keeps a rough model of what the brokers will hold (log ends, sequences), so that most of what it draws is
near an edge. No step depends on an answer, so a script stays a script when steps are left out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from barnabas.protocol.records import Codec
from tests.interop.differential import configs, steps
from tests.interop.differential.batches import BatchDrawer
from tests.interop.differential.fetching import FetchDrawer
from tests.interop.differential.model import Model
from tests.interop.differential.producing import ProduceDrawer
from tests.interop.differential.sessions import SessionDrawer
from tests.interop.differential.transactions import TransactionDrawer

LIST_VERSIONS = range(1, 12)
SESSIONS, CODECS, CLEANER, TRANSACTIONS, LAGS = "sessions", "codecs", "cleaner", "transactions", "lags"
EXTRAS = (SESSIONS, CODECS, CLEANER, TRANSACTIONS, LAGS)
"""What a script has only if it is asked for, so that the scripts of known seeds stay as they are."""


_OLD_MS = 40 * 86_400_000
_AGE_CHANGES = 0.05
"""How likely the records become old, or new again, with the next step."""
_JUMP_MS = 2 * 86_400_000
_JUMPS = 0.12
"""How likely the records are two days younger from the next step on, which rolls segments by time.

The markers of transactions have the brokers' times, which are never newer.
"""


class ScriptDrawer:
    """Draws one script. `now` is in ms; times in the script are about it.

    `extras` are of EXTRAS. With a cleaner there are transactions and compressed batches only if they are asked for:
    open ones bound a round, and the sizes of rewritten batches are each broker's.
    """

    def __init__(
        self, seed: int, now: int, *, count: int = 120, restarts: int = 0, extras: Collection[str] = ()
    ) -> None:
        self._seed = seed
        self._chance = random.Random(seed)
        self._now = now
        self._count = count
        self._restarts = restarts
        self._cleans = CLEANER in extras
        self._lags = LAGS in extras
        self._jumps = self._cleans and CODECS in extras
        if self._lags and CODECS in extras:
            raise ValueError("records that are old would not roll the segments of topics with codecs")
        compresses = not self._cleans or CODECS in extras
        has_transactions = (self._chance.random() < 0.35 and not self._cleans) or TRANSACTIONS in extras
        self._transactional = (
            TransactionDrawer(
                # Kafka rolls a segment that is due before it refuses a batch.
                self._chance,
                _codecs(compresses, extras),
                tombstones=self._cleans,
                errs=not self._jumps,
            )
            if has_transactions
            else None
        )
        self._has_own_clock = self._transactional is not None or (self._chance.random() < 0.15 and not self._cleans)
        """Whether topics may stamp their records themselves."""
        odd_times = restarts == 0 and not self._jumps
        self._batches = BatchDrawer(self._chance, now, odd_times=odd_times, compresses=compresses)
        self._model = Model(has_codecs=CODECS in extras)
        self._producing = ProduceDrawer(self._chance, self._model, self._batches)
        self._fetching = FetchDrawer(self._chance, self._model)
        self._sessions = SessionDrawer(self._chance, self._model, self._fetching) if SESSIONS in extras else None

    def script(self) -> steps.Script:
        """Draw it."""
        for name in ("a", "b", "c")[: self._chance.choice([1, 2, 2, 3])]:
            self._model.topics[name] = self._chance.choice([1, 1, 2]), self._draw_configs()
        topics = {**self._model.topics, steps.LOOSE_TOPIC: (1, {})}
        drawn: list[steps.Step] = []
        restarts = set(self._chance.sample(range(20, self._count), self._restarts))
        for number in range(self._count):
            if number in restarts:
                drawn.append(steps.Restart(kill=self._chance.random() < 0.5))
                self._model.is_restarted = True
            if self._lags and self._chance.random() < _AGE_CHANGES:
                self._batches.age_ms = _OLD_MS - self._batches.age_ms
            if self._jumps and self._chance.random() < _JUMPS:
                self._batches.age_ms -= _JUMP_MS
            drawn.append(self._step())
        drawn += [steps.DescribeProducers(name, tuple(range(count))) for name, (count, _) in self._model.topics.items()]
        if self._cleans:
            drawn += [steps.Clean(name) for name in self._model.topics]
        return steps.Script(
            self._seed, topics, self._with_connections(drawn), self._has_own_clock, self._model.has_codecs
        )

    def _with_connections(self, drawn: Sequence[steps.Step]) -> tuple[steps.Step, ...]:
        chance = random.Random(f"connections of {self._seed}")  # the other draws stay those of the seed
        return tuple(replace(step, connection=chance.randrange(steps.CONNECTIONS)) for step in drawn)

    def _draw_configs(self) -> dict[str, str]:
        return configs.draw(
            self._chance,
            has_own_clock=self._has_own_clock,
            restarts=bool(self._restarts),
            codecs=self._model.has_codecs,
            cleans=self._cleans,
            lags=self._lags,
        )

    def _step(self) -> steps.Step:
        draws: dict[Callable[[], steps.Step], float] = {
            self._producing.step: 45,
            self._fetching.step: 20,
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
        if self._model.is_restarted:
            del draws[self._epoch_ends]
        if self._transactional is not None:
            draws[self._transact] = 30
        if self._sessions is not None:
            draws[self._sessions.step] = 40
        if self._cleans:
            draws[self._clean] = 6
        return self._chance.choices(list(draws), list(draws.values()))[0]()

    def _list_offsets(self) -> steps.ListOffsets:
        chance = self._chance
        topics = tuple(
            (name, tuple((number, self._lookup(), self._fetching.epoch()) for number in numbers))
            for name, numbers in self._model.places(chance, twice=0.05).items()
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
            for name, numbers in self._model.places(chance, twice=0).items()
            if self._transactional is None or name not in self._with_transactions()
        )
        return steps.DeleteRecords(chance.choice(range(3)), topics)

    def _delete_offset(self, name: str, number: int) -> int:
        end = self._model.ends.get((name, number), 0)
        chance = self._chance
        return chance.choices([chance.randrange(end // 2 + 1), self._fetching.offset(name, number), -1], [8, 2, 0.3])[0]

    def _epoch_ends(self) -> steps.EpochEnds:
        chance = self._chance
        topics = tuple(
            (name, tuple((number, self._fetching.epoch(), chance.choice([0, 0, 1, -1, -2, 5])) for number in numbers))
            for name, numbers in self._model.places(chance, twice=0).items()
        )
        return steps.EpochEnds(chance.choice(range(2, 5)), topics)

    # --- producers and topics

    def _init_producer(self) -> steps.InitProducer:
        name = f"p{len(self._producing.producers)}"
        self._producing.producers.append(name)
        return steps.InitProducer(self._chance.choice(range(6)), name)

    def _describe_producers(self) -> steps.DescribeProducers:
        name, number = self._model.place(self._chance)
        return steps.DescribeProducers(name, (number,))

    def _transact(self) -> steps.Step:
        assert self._transactional is not None
        places = [(name, number) for name in self._with_transactions() for number in range(self._model.topics[name][0])]
        return self._transactional.step(places, self._now - self._batches.age_ms) if places else self._fetching.step()

    def _with_transactions(self) -> list[str]:
        """Return the topics that transactions may write to.

        They lose no records: after a deletion within an open transaction, Kafka's last stable offset is the start of
        the batch with the new log start, below it.
        """
        return [name for name, (_, own) in self._model.topics.items() if name != "b" and not configs.refuses(own)]

    def _set_config(self) -> steps.SetConfig:
        chance = self._chance
        name, _ = self._model.place(self._chance)
        count, own = self._model.topics[name]
        changed = configs.CHANGED
        if self._model.has_codecs and self._cleans:
            changed = configs.CHANGED_WITH_CLEANER_AND_CODECS
        elif self._model.has_codecs or self._cleans:
            changed = configs.CHANGED_WITH_CODECS if self._model.has_codecs else configs.CHANGED_WITH_CLEANER
        setting = chance.choice(list(changed))
        value = chance.choice(changed[setting])
        if setting in configs.REFUSING and self._transactional is not None:
            setting, value = "index.interval.bytes", "50"
        self._model.topics[name] = count, {**own, setting: value}
        return steps.SetConfig(name, setting, value)

    def _clean(self) -> steps.Clean:
        return steps.Clean(self._model.place(self._chance)[0])

    def _recreate(self) -> steps.Recreate:
        chance = self._chance
        name, _ = self._model.place(self._chance)
        self._model.topics[name] = chance.choice([1, 2]), self._draw_configs()
        if self._transactional is not None:
            self._transactional.forget(name)
        self._model.forget(name)
        return steps.Recreate(name, *self._model.topics[name])


def _codecs(compresses: bool, extras: Collection[str]) -> Sequence[Codec]:
    """Return the codecs of transactional batches."""
    if not compresses:
        return [Codec.NONE]
    return list(Codec) if CLEANER in extras else [Codec.NONE, Codec.NONE, Codec.GZIP]
