"""One round of a soak: its topics, its history, and the signals by which its clients end."""

from __future__ import annotations

import asyncio
import random
import threading
from dataclasses import dataclass, field

from tests.torture.soak.history import History

PARTITIONS = 2
_SMALL = {"segment.bytes": "65536", "file.delete.delay.ms": "1000"}


@dataclass
class Stage:
    """What the clients of a round share. They write until `writers_end`, and read until `readers_end`.

    Those that process to the end of the input do so after `readers_end`, unless the round is `over`.
    """

    bootstrap: str
    torn_bootstrap: str
    """The same broker through a network that cuts connections now and then."""
    number: int
    seed: int
    history: History = field(default_factory=History)
    writers_end: threading.Event = field(default_factory=threading.Event)
    readers_end: threading.Event = field(default_factory=threading.Event)
    shared_done: threading.Event = field(default_factory=threading.Event)
    """Set by the first member of the share group that knows that all records are done."""
    over: threading.Event = field(default_factory=threading.Event)
    transactional_ids: set[str] = field(default_factory=set)
    pipes: dict[str, str] = field(default_factory=dict)
    """Output topics of consume-transform-produce, by transactional id."""
    groups: set[str] = field(default_factory=set)
    """Groups whose members commit, alone or in transactions."""
    commits: int = 0
    promoted: int = 0
    """Topics that the mirror has promoted."""

    def topic(self, kind: str) -> str:
        """Return the round's topic of a kind."""
        return f"{kind}-{self.seed}-{self.number}"

    @property
    def plain(self) -> str:
        """The topic of idempotent producers, input of consume-transform-produce."""
        return self.topic("plain")

    @property
    def ledger(self) -> str:
        """The topic of transactions."""
        return self.topic("ledger")

    @property
    def keyed(self) -> str:
        """The compacted topic."""
        return self.topic("keyed")

    @property
    def trimmed(self) -> str:
        """The topic with a small retention."""
        return self.topic("trimmed")

    @property
    def shared(self) -> str:
        """The topic that the share group reads."""
        return self.plain if self.number % 2 else self.ledger

    @property
    def share_group(self) -> str:
        """The share group of the round."""
        return f"share-{self.seed}-{self.number}"

    def topics(self) -> dict[str, dict[str, str]]:
        """Return all topics with their properties."""
        outputs = dict.fromkeys(self.pipes.values(), _SMALL)
        return {
            self.plain: _SMALL,
            self.ledger: _SMALL,
            self.keyed: {**_SMALL, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"},
            self.trimmed: {**_SMALL, "retention.bytes": "131072"},
            **outputs,
        }

    def chance(self, name: str) -> random.Random:
        """Return a client's own random numbers."""
        return random.Random(f"{self.seed}/{self.number}/{name}")

    def note_error(self, name: str, error: object) -> None:
        """Record an error after which a client goes on."""
        self.history.errors.append(f"{name}: {type(error).__name__}: {error}")

    def note_fatal(self, name: str, error: object) -> None:
        """Record that a producer was refused for good, which no fault of the soak is a reason for."""
        self.history.fatal.append(f"{name}: {error}")


async def pause(seconds: float) -> None:
    """Pace a client: an unpaced one would measure the machine."""
    await asyncio.sleep(seconds)
