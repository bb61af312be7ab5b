"""What a script's drawer believes that the brokers hold: near enough that most of what is drawn is near an edge."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.interop.differential import configs
from tests.interop.differential.batches import Batch

MISSING = "missing"
"""A topic that is never created."""
MAX_INT32 = 2**31 - 1
Place = tuple[str, int]


@dataclass
class Model:
    """Topics, log ends and sequences of a script."""

    topics: dict[str, tuple[int, Mapping[str, str]]] = field(default_factory=dict)
    """Number of partitions and configs by name."""
    ends: dict[Place, int] = field(default_factory=dict)
    sequences: dict[tuple[str, int, object], int] = field(default_factory=dict)
    sent: dict[Place, list[Batch]] = field(default_factory=dict)
    """Batches that may be sent again."""
    is_restarted: bool = False
    has_codecs: bool = False
    """Topics recompress what they get, so that the size of what is stored is each broker's."""

    def own(self, name: str) -> Mapping[str, str]:
        """Return the configs of a topic."""
        return self.topics[name][1] if name in self.topics else {}

    def rolls(self, name: str) -> bool:
        """Return whether a topic has several segments, so that no batch may fail the check of producers."""
        return configs.rolls(self.own(name))

    def recompresses(self, name: str) -> bool:
        """Return whether a topic has, or has had, a codec of its own."""
        return "compression.type" in self.own(name)

    def forget(self, name: str) -> None:
        """Follow the deletion of a topic."""
        self.ends = {key: value for key, value in self.ends.items() if key[0] != name}
        self.sequences = {key: value for key, value in self.sequences.items() if key[0] != name}
        self.sent = {key: value for key, value in self.sent.items() if key[0] != name}

    def place(self, chance: random.Random) -> Place:
        """Draw a partition."""
        name = chance.choice(list(self.topics))
        return name, chance.randrange(self.topics[name][0])

    def places(self, chance: random.Random, *, twice: float) -> dict[str, list[int]]:
        """Draw topics with partitions, some of which do not exist; `twice` is the chance that one is named twice."""
        places: dict[str, list[int]] = {}
        for _ in range(chance.choice([1, 1, 1, 2, 3])):
            name, number = self.place(chance)
            if chance.random() < 0.03:
                number = chance.choice([-1, 5, MAX_INT32])
            if chance.random() < 0.02:
                name = MISSING
            numbers = places.setdefault(name, [])
            if number not in numbers or chance.random() < twice:
                numbers.append(number)
        return places
