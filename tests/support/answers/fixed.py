"""Fixes what differs between two runs of a broker: the wall clock, random bytes, and the disk's size.

`fix` runs in the broker's process before it starts. Random bytes depend on who asks, how often it has asked, and the
text in the file SEED of the working directory: a new text begins new streams, so that the answers recorded for one API
do not depend on those before it.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

NOW_MS: Final = 1_700_000_000_000
SEED: Final = "seed"
_DISK_BYTES: Final = 1 << 40
_FREE_BYTES: Final = 1 << 39
_OWN: Final = ("os", "random", "secrets", "uuid", __name__)


def fix() -> None:
    """Replace the sources of time, chance and disk size of this process."""
    from barnabas.broker import server
    from barnabas.broker.storage.services.clock import SystemClock

    class FixedClock(SystemClock):
        """Compiled code reads the machine's clock itself unless the clock is of another class."""

    streams = _Streams()
    time.time_ns = lambda: NOW_MS * 1_000_000
    time.time = lambda: NOW_MS / 1000
    setattr(server, "SystemClock", FixedClock)  # noqa: B010 - mypy
    os.urandom = streams.read
    random._urandom = streams.read  # type: ignore[attr-defined]
    random.seed(0)
    os_statvfs = os.statvfs

    def statvfs(path: Any) -> os.statvfs_result:
        fields = list(os_statvfs(path))
        fields[0] = fields[1] = 4096
        fields[2], fields[3], fields[4] = _DISK_BYTES // 4096, _FREE_BYTES // 4096, _FREE_BYTES // 4096
        return os.statvfs_result(fields)

    os.statvfs = statvfs


class _Streams:
    """Random bytes by caller."""

    def __init__(self) -> None:
        self._seed = ""
        self._counts: Counter[str] = Counter()

    def read(self, size: int) -> bytes:
        """Return the next bytes of the caller's stream."""
        file = Path(SEED)
        seed = file.read_text() if file.exists() else ""
        if seed != self._seed:
            self._seed = seed
            self._counts.clear()
        caller = _caller()
        self._counts[caller] += 1
        return hashlib.shake_256(f"{seed} {caller} {self._counts[caller]}".encode()).digest(size)


def _caller() -> str:
    frame = sys._getframe(2)
    while frame.f_globals.get("__name__") in _OWN and frame.f_back is not None:
        frame = frame.f_back
    return f"{frame.f_globals.get('__name__')}.{frame.f_code.co_name}"
