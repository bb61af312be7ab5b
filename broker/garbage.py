"""Garbage collection of the daemon: young objects as Python does it, the others only when memory has doubled.

A collection holds the interpreter lock, so all clients wait for it: 0.2 to 0.5 s for a million objects that are in no
processor cache. Python would begin a full one whenever a quarter of the objects is new, that is several times within a
request that names tens of thousands of partitions, whose objects are in no cycle and go when it is answered. Here, only
collections of young objects begin by themselves; each looks at about 21,000 objects, and more only after a single call
of compiled code that has allocated more.

Connections and requests leave nothing in cycles, so full collections have little to do: they wait until the memory has
doubled, or an hour has passed, and the event loop is idle.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from typing import Final

YOUNG_OBJECTS: Final = 7_000
"""Objects that are new since the last collection, when the next one begins."""

MIDDLE_COLLECTIONS: Final = 1
"""Collections of new objects before one that also looks at what they have left."""

NEVER: Final = 1_000_000_000

INTERVAL_SECONDS: Final = 5.0

IDLE_SHARE: Final = 0.05
"""Share of a processor below which the event loop's thread counts as idle."""

IDLE_GROWTH_BLOCKS: Final = 500_000
"""Growth since the last full collection, in blocks of Python's allocator (an object has one or two), when the next one
is due while the loop is idle: this many, and as much as there was before."""

BUSY_GROWTH_BLOCKS: Final = 2_000_000
"""Growth when a full collection is due even if the loop is busy: this many, and as much as there was before."""

IDLE_SECONDS: Final = 3600.0
"""Time after which one is due while the loop is idle, whatever the growth: buffers are no blocks of the allocator."""

_IS_INCREMENTAL: Final = (3, 14) <= sys.version_info < (3, 14, 5)
"""Whether Python collects the old objects piece by piece, by thresholds of another meaning."""


class GarbageCollection:
    """The process's garbage collection from the loading of the logs until `stop`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thresholds = gc.get_threshold()
        self._blocks = 0
        self._collected = 0.0
        self._cpu = 0.0
        self._handle: asyncio.TimerHandle | None = None

    def suspend(self) -> None:
        """Collect nothing until `resume`: loading allocates many objects, none of which can be collected."""
        gc.disable()

    def resume(self) -> None:
        """Collect again, but none of the present objects.

        They are frozen without a last collection, which would take 15 ms and free 700 small objects.
        """
        gc.freeze()  # before enable(), or the next allocation would begin a collection of everything
        if not _IS_INCREMENTAL:
            gc.set_threshold(YOUNG_OBJECTS, MIDDLE_COLLECTIONS, NEVER)
        gc.enable()

    def start(self) -> None:
        """Begin to look for the moments of full collections. In the event loop's thread, as `stop`."""
        self._note_collection()
        self._set()

    def stop(self) -> None:
        """Leave the collections to Python again. May be called without `start`."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        gc.set_threshold(*self._thresholds)

    def _set(self) -> None:
        self._cpu = time.thread_time()
        self._handle = self._loop.call_later(INTERVAL_SECONDS, self._beat)

    def _beat(self) -> None:
        is_idle = time.thread_time() - self._cpu < IDLE_SHARE * INTERVAL_SECONDS
        blocks = sys.getallocatedblocks()
        self._blocks = min(self._blocks, blocks)
        growth = blocks - self._blocks
        if is_idle:
            is_due = growth > IDLE_GROWTH_BLOCKS + self._blocks or self._loop.time() >= self._collected + IDLE_SECONDS
        else:
            is_due = growth > BUSY_GROWTH_BLOCKS + self._blocks
        if is_due:
            gc.collect()
            self._note_collection()
        self._set()

    def _note_collection(self) -> None:
        self._blocks = sys.getallocatedblocks()
        self._collected = self._loop.time()
