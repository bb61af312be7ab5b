"""The time of the consumer's last read, by which a member whose reader is stuck leaves its group."""

from __future__ import annotations

import asyncio

from barnabas.clients.consumer.record_queue import RecordQueue


class ReadActivity:
    """A read is a call of poll, or a step of the iteration. Steps within a batch do not call anything here.

    They are noticed by the progress of the queue's current batch instead, so that handing out a record stays cheap.
    """

    def __init__(self, queue: RecordQueue) -> None:
        self._queue = queue
        self._in_call = False
        self._last_read = 0.0
        self._last_progress: tuple[int, int] | None = None

    def begin(self) -> None:
        """A read was called."""
        self._in_call = True

    def end(self) -> None:
        """The read has returned."""
        self._in_call = False
        self.reset()

    def reset(self) -> None:
        """Count from now on."""
        self._last_read = asyncio.get_running_loop().time()

    def last_read(self) -> float:
        """The loop's time at which the consumer was last seen reading: now, while a call runs."""
        current = self._queue.current
        progress = None if current is None else (current.position, current.index)
        if self._in_call or progress not in (None, self._last_progress):
            self._last_read = asyncio.get_running_loop().time()
        self._last_progress = progress
        return self._last_read
