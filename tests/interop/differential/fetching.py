"""Draws Fetch requests."""

from __future__ import annotations

import random

from tests.interop.differential import steps
from tests.interop.differential.model import MAX_INT32, Model

FETCH_VERSIONS = range(4, 19)


class FetchDrawer:
    """Draws Fetch requests."""

    def __init__(self, chance: random.Random, model: Model) -> None:
        self._chance = chance
        self._model = model

    def offset(self, name: str, number: int) -> int:
        """Draw an offset of a partition."""
        chance = self._chance
        end = self._model.ends.get((name, number), 0)
        near = chance.choice([0, 1, end - 1, end, end + 1, chance.randrange(end + 1)])
        return chance.choices([max(near, 0), -1, end + 1000, 2**63 - 1, -5], [40, 1, 1, 0.5, 0.5])[0]

    def size(self) -> int:
        """Draw a limit of bytes."""
        chance = self._chance
        if self._model.has_codecs:  # where a limit cuts is a matter of the broker's codecs
            return chance.choices([1 << 26, 0, 1], [20, 1, 1])[0]
        # Not negative: Kafka answers UNKNOWN_SERVER_ERROR for such a partition.
        return chance.choices([1 << 20, chance.randrange(3000), 0, 1, MAX_INT32], [10, 10, 1, 1, 1])[0]

    def epoch(self) -> int:
        """Draw a leader epoch."""
        drawn = self._chance.choices([-1, 0, 1, -2, 5], [20, 6, 0.5, 0.3, 0.5])[0]
        return -1 if self._model.is_restarted else drawn  # the epochs after a start differ

    def part(self, version: int, number: int, offset: int) -> steps.FetchPart:
        """Draw the rest of what a request says of a partition."""
        limit, epoch = self.size(), self.epoch()
        has_last = version >= 12 and not self._model.is_restarted
        last_epoch = self._chance.choices([-1, 0, 3], [20, 2, 0.5])[0] if has_last else -1
        return steps.FetchPart(number, offset, limit, epoch, last_epoch)

    def step(self) -> steps.Fetch:
        """Draw a request without a session."""
        chance = self._chance
        version = chance.choice(FETCH_VERSIONS)
        topics = tuple(
            (name, tuple(self.part(version, number, self.offset(name, number)) for number in numbers))
            for name, numbers in self._model.places(chance, twice=0).items()
        )
        return self.whole(version, topics)

    def whole(self, version: int, topics: tuple[tuple[str, tuple[steps.FetchPart, ...]], ...]) -> steps.Fetch:
        """Draw the rest of a request."""
        chance = self._chance
        waits = chance.random() < 0.05
        return steps.Fetch(
            version,
            topics,
            self.size(),
            chance.choice([0, 1, 1, 100, 10_000]) if waits else chance.choice([0, 1, 5000]),
            15 if waits else 0,
            chance.choice([0, 0, 0, 1, 1]),
        )
