"""The threads log-cleaner-thread-0, -1, ...: pass after pass, with a sleep of log.cleaner.backoff.ms when idle.

A changed property wakes sleeping threads. A running round keeps its buffers, and the next one uses the new sizes (Kafka
stops and restarts all rounds). A thread that is to end aborts its round at the next `check_done`.
Source: Kafka LogCleaner.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from barnabas.broker.storage.cleaning.errors import CleaningAborted

logger = logging.getLogger(__name__)

THREAD_NAME = "log-cleaner-thread"

_MAX_WAIT_SECONDS = 3600.0
"""Longest back-off: a lock cannot wait for ever, and a look once an hour costs nothing."""


class StopSign:
    """Request to one thread to end."""

    __slots__ = ("is_set",)

    def __init__(self) -> None:
        self.is_set = False

    def check(self) -> None:
        """Raise CleaningAborted if the thread is to end."""
        if self.is_set:
            raise CleaningAborted("its thread is ending")


class CleanerThreads:
    """A pool whose size may change. `resize` and `stop` are called by one thread at a time."""

    def __init__(
        self,
        run_pass: Callable[[StopSign], bool],
        backoff_seconds: Callable[[], float],
        wake_sleepers: Callable[[], None],
    ) -> None:
        """`run_pass` returns whether there may be more to do; `wake_sleepers` ends a sleep in the throttler."""
        self.failed_passes = 0
        """Passes that failed with an error unrelated to a log: each is a bug, and logged."""
        self._run_pass = run_pass
        self._backoff_seconds = backoff_seconds
        self._wake_sleepers = wake_sleepers
        self._threads: dict[int, tuple[threading.Thread, StopSign]] = {}
        self._condition = threading.Condition()
        self._wakes = 0

    @property
    def alive(self) -> int:
        """Number of threads that are cleaning or idle."""
        return sum(thread.is_alive() for thread, _ in self._threads.copy().values())

    @property
    def dead(self) -> int:
        """Number of threads that ended without being stopped."""
        return sum(not thread.is_alive() and not sign.is_set for thread, sign in self._threads.copy().values())

    def resize(self, count: int) -> None:
        """Change the number of threads, replace dead ones and wake all. Waits for surplus threads to end."""
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
        """End the back-off of idle threads."""
        with self._condition:
            self._wakes += 1
            self._condition.notify_all()

    def stop(self) -> None:
        """End all threads and wait for them."""
        self._end(list(self._threads))

    def _end(self, numbers: list[int]) -> None:
        ending = [self._threads[number] for number in numbers]
        for _, sign in ending:
            sign.is_set = True
        if ending:
            self.wake()
        for thread, _ in ending:
            while thread.is_alive():
                self._wake_sleepers()  # repeatedly: the thread may be just about to sleep in the throttler
                thread.join(0.1)
        for number in numbers:
            del self._threads[number]

    def _work(self, sign: StopSign) -> None:
        while not sign.is_set:
            wakes_before = self._wakes
            try:
                has_more = self._run_pass(sign)
            except Exception:
                # Not the fault of a log. The next pass may work; if the thread ended, compaction would end.
                self.failed_passes += 1
                logger.exception("a pass of the cleaner failed and is retried after log.cleaner.backoff.ms")
                has_more = False
            if not has_more:
                self._sleep(sign, wakes_before)

    def _sleep(self, sign: StopSign, wakes_before: int) -> None:
        """Sleep until the back-off is over or the threads were woken since `wakes_before`."""
        with self._condition:
            self._condition.wait_for(
                lambda: sign.is_set or self._wakes != wakes_before, min(self._backoff_seconds(), _MAX_WAIT_SECONDS)
            )
