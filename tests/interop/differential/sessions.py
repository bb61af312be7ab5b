"""Draws Fetch requests of fetch sessions (KIP-227), of which a script has a few beside each other."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from tests.interop.differential import steps
from tests.interop.differential.fetching import FetchDrawer
from tests.interop.differential.model import Model

_VERSIONS = range(7, 19)
_MAX_SESSIONS = 4
_ODD_EPOCHS = (-2, -(2**31), 2**31 - 1)
_Topics = tuple[tuple[str, tuple[steps.FetchPart, ...]], ...]


@dataclass
class _Session:
    name: str
    version: int
    isolation: int
    is_open: bool = False


class SessionDrawer:
    """Draws requests that open, continue and close sessions, some with a wrong id, epoch or version."""

    def __init__(self, chance: random.Random, model: Model, fetches: FetchDrawer) -> None:
        self._chance = chance
        self._model = model
        self._fetches = fetches
        self._sessions: list[_Session] = []

    def step(self) -> steps.Fetch:
        """Draw the next request of a session."""
        chance = self._chance
        if not self._sessions or (len(self._sessions) < _MAX_SESSIONS and chance.random() < 0.1):
            return self._open(self._new())
        session = chance.choice(self._sessions)
        if not session.is_open and chance.random() < 0.8:
            return self._open(session)
        draw = chance.choices([self._continue, self._open, self._close, self._wrong], [30, 1.5, 1, 2.5])[0]
        return draw(session)

    def _new(self) -> _Session:
        chance = self._chance
        made = _Session(f"s{len(self._sessions)}", chance.choice(_VERSIONS), chance.choice([0, 0, 1]))
        self._sessions.append(made)
        return made

    def _open(self, session: _Session) -> steps.Fetch:
        session.version = self._chance.choice(_VERSIONS)
        session.is_open = True
        return self._fetch(session, self._topics(session.version, often=True), steps.InSession(session.name, epoch=0))

    def _close(self, session: _Session) -> steps.Fetch:
        session.is_open = False
        topics = self._topics(session.version, often=False)
        return self._fetch(session, topics, steps.InSession(session.name, epoch=-1))

    def _continue(self, session: _Session) -> steps.Fetch:
        topics = self._topics(session.version, often=False)
        return self._fetch(session, topics, steps.InSession(session.name, forgotten=self._forgotten()))

    def _wrong(self, session: _Session) -> steps.Fetch:
        chance = self._chance
        used = chance.choice(
            [
                steps.InSession(session.name, epoch_shift=chance.choice([-1, 1, 5])),
                steps.InSession(session.name, id_shift=chance.choice([1, -1, 1000])),
                steps.InSession(session.name, epoch=0, id_shift=1),
                steps.InSession(session.name, epoch=-1, id_shift=1),
                steps.InSession(session.name, epoch=chance.choice(_ODD_EPOCHS)),
            ]
        )
        topics = self._topics(session.version, often=False)
        step = self._fetch(session, topics, replace(used, forgotten=self._forgotten()))
        return replace(step, version=chance.choice(_VERSIONS)) if chance.random() < 0.3 else step

    def _fetch(self, session: _Session, topics: _Topics, used: steps.InSession) -> steps.Fetch:
        chance = self._chance
        if chance.random() < 0.05:
            session.isolation = 1 - session.isolation
        drawn = self._fetches.whole(session.version, topics)
        limit = drawn.max_bytes if chance.random() < 0.3 else 1 << 26
        return replace(drawn, isolation=session.isolation, max_bytes=limit, session=used)

    def _topics(self, version: int, *, often: bool) -> _Topics:
        """Draw the partitions that a request adds or changes; `often`: hardly ever none."""
        chance = self._chance
        if chance.random() < (0.03 if often else 0.5):
            return ()
        places = self._model.places(chance, twice=0)
        if often:
            for _ in range(chance.randrange(4)):
                for name, numbers in self._model.places(chance, twice=0).items():
                    known = places.setdefault(name, [])
                    known += [number for number in numbers if number not in known]
        return tuple(
            (name, tuple(self._fetches.part(version, number, self._offset(name, number)) for number in numbers))
            for name, numbers in places.items()
        )

    def _offset(self, name: str, number: int) -> int:
        """Draw an offset, mostly the end: a session is about what is new."""
        if self._chance.random() < 0.7:
            return self._model.ends.get((name, number), 0)
        return self._fetches.offset(name, number)

    def _forgotten(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        chance = self._chance
        if chance.random() < 0.8:
            return ()
        places = self._model.places(chance, twice=0.1)
        return tuple((name, tuple(numbers)) for name, numbers in places.items())
