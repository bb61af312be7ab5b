"""History: the latest hour of a few numbers, at fixed steps, in bounded memory."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

STEP_S: Final = 15
"""Distance of two samples."""

SAMPLES_MAX: Final = 240
"""An hour."""

SERIES_MAX: Final = 20_000
"""Names that are followed; those that come later have no history."""

_UNKNOWN: Final = float("nan")


class Series(NamedTuple):
    """Samples of one name: wall-clock seconds, and values, None where nothing is known."""

    times_s: Sequence[int]
    values: Sequence[float | None]


class History:
    """A ring of samples for each name. All names share the times."""

    def __init__(self) -> None:
        self._times: deque[int] = deque(maxlen=SAMPLES_MAX)
        self._values: dict[str, array[float]] = {}
        self._count = 0

    def add(self, time_s: int, values: dict[str, float]) -> None:
        """Add one sample of each name, unless the last is younger than a step."""
        if self._times and time_s - self._times[-1] < STEP_S:
            return
        slot = self._count % SAMPLES_MAX
        self._times.append(time_s)
        self._count += 1
        for name in [name for name in self._values if name not in values]:
            self._values[name][slot] = _UNKNOWN
            if not any(value == value for value in self._values[name]):
                del self._values[name]
        for name, value in values.items():
            ring = self._values.get(name)
            if ring is None:
                if len(self._values) >= SERIES_MAX:
                    continue
                ring = self._values[name] = array("f", [_UNKNOWN]) * SAMPLES_MAX
            ring[slot] = value

    def series(self, name: str) -> Series:
        """Samples of a name, the oldest first; empty for an unknown one."""
        ring = self._values.get(name)
        if ring is None:
            return Series((), ())
        first = self._count - len(self._times)
        values = [ring[index % SAMPLES_MAX] for index in range(first, self._count)]
        return Series(tuple(self._times), [None if value != value else value for value in values])
