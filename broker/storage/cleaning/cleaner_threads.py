"""The threads log-cleaner-thread-0, -1, ...: pass after pass, and a sleep of log.cleaner.backoff.ms when idle.

A change of a property wakes the sleepers; a round that goes on keeps the buffers it began with, and the next one has
the new ones. (Kafka stops all rounds and starts them anew.) A thread that is to go stops its round first, at the next
`check_done`. Source: Kafka LogCleaner.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from barnabas.broker.storage.cleaning.errors import CleaningAborted

logger = logging.getLogger(__name__)

THREAD_NAME = "log-cleaner-thread"

_MAX_WAIT_SECONDS = 3600.0
"""A back-off is cut at this: a lock cannot wait for ever, and looking once an hour costs nothing."""


class StopSign:
    """Tells one thread that it is to end."""

    __slots__ = ("is_set",)

    def __init__(self) -> None:
        self.is_set = False

    def check(self) -> None:
        """Raises CleaningAborted once the thread is to end."""
        if self.is_set:
            raise CleaningAborted("its thread is to end")


class CleanerThreads:
    """A pool whose size may change. `resize` and `stop` are called by one thread at a time."""

    def __init__(
        self,
        run_pass: Callable[[StopSign], bool],
        backoff_seconds: Callable[[], float],
        wake_sleepers: Callable[[], None],
    ) -> None:
        """`run_pass` says whether there may be more to do at once; `wake_sleepers` ends a sleep of the throttler."""
        self.failed_passes = 0
        """Passes that ended with an error that is no log's: each is a bug, and in the log."""
        self._run_pass = run_pass
        self._backoff_seconds = backoff_seconds
        self._wake_sleepers = wake_sleepers
        self._threads: dict[int, tuple[threading.Thread, StopSign]] = {}
        self._condition = threading.Condition()
        self._wakes = 0

    @property
    def alive(self) -> int:
        """Threads that work or wait for work."""
        return sum(thread.is_alive() for thread, _ in self._threads.copy().values())

    @property
    def dead(self) -> int:
        """Threads that ended though nobody asked them to."""
        return sum(not thread.is_alive() and not sign.is_set for thread, sign in self._threads.copy().values())

    def resize(self, count: int) -> None:
        """Have `count` threads, in place of dead ones, too, and wake all. Waits for those that are to end."""
        surplus = [number for number in self._threads if number >= count]
        self._end(surplus)
        for number in range(count):
            existing = self._threads.get(number)
            if existing is None or not existing[0].is_alive():
                sign = StopSign()
                thread = threading.Thread(target=self._work, args=(sign,), name=f"{THREAD_NAME}-{number}", daemon=True)
                self._threads[number] = thread, sign
                thread.start()
        self.wake()

    def wake(self) -> None:
        """Look for work now, and not at the end of the back-off."""
        with self._condition:
            self._wakes += 1
            self._condition.notify_all()

    def stop(self) -> None:
        """End all threads. Returns when none is left."""
        self._end(list(self._threads))

    def _end(self, numbers: list[int]) -> None:
        ending = [self._threads[number] for number in numbers]
        for _, sign in ending:
            sign.is_set = True
        if ending:
            self.wake()
        for thread, _ in ending:
            while thread.is_alive():
                self._wake_sleepers()  # again and again: it may just be on its way into the throttler
                thread.join(0.1)
        for number in numbers:
            del self._threads[number]

    def _work(self, sign: StopSign) -> None:
        while not sign.is_set:
            wakes_before = self._wakes
            try:
                has_more = self._run_pass(sign)
            except Exception:
                # No log is to blame. The next pass may work, and an end of the thread would be the end of compaction.
                self.failed_passes += 1
                logger.exception("a pass of the cleaner failed and is tried again after log.cleaner.backoff.ms")
                has_more = False
            if not has_more:
                self._sleep(sign, wakes_before)

    def _sleep(self, sign: StopSign, wakes_before: int) -> None:
        """Until the back-off is over or somebody has woken the threads since `wakes_before`."""
        with self._condition:
            self._condition.wait_for(
                lambda: sign.is_set or self._wakes != wakes_before, min(self._backoff_seconds(), _MAX_WAIT_SECONDS)
            )
