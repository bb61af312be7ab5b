"""Named background tasks, run once after a delay or periodically.

At most `background.threads` threads, started on demand, take tasks from one queue ordered by due time. Runs of a task
never overlap, and missed periods are not made up for. An exception of a task is logged and counted, and the task stays
scheduled: a failed retention run must not be the last one. After `shutdown` nothing new starts, and delayed tasks that
are not due are dropped, as in Kafka (files that wait for their removal survive a clean stop).
Source: Kafka KafkaScheduler.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Callable
from typing import Protocol

from barnabas.broker.storage.services.clock import Clock

logger = logging.getLogger(__name__)

_MAX_WAIT_SECONDS = 3600.0
"""Longest single wait: a period of "never" (2**63 - 1 ms) is more than a lock can wait."""


class TaskCounters:
    """Counters over all runs of the tasks of one name, for the metrics and for operators.

    `last_end` is when the last run ended, by the scheduler's clock; `queued` a heap of what waits.
    """

    __slots__ = ("failures", "last_duration_seconds", "last_end", "queued", "runs")

    def __init__(self, runs: int = 0, failures: int = 0, last_duration_seconds: float = 0.0) -> None:
        self.runs = runs
        self.failures = failures
        self.last_duration_seconds = last_duration_seconds
        self.last_end: float | None = None
        self.queued: list[tuple[float, int, ScheduledTask]] = []

    def next_due(self) -> float | None:
        """When the next run is due, by the scheduler's clock; None if none is queued. For any thread."""
        return min((due for due, _, task in self.queued.copy() if not task.is_cancelled), default=None)


class ScheduledTask:
    """A task that is queued or running."""

    __slots__ = ("action", "is_cancelled", "name", "period_seconds")

    def __init__(self, name: str, action: Callable[[], object], period_seconds: float | None) -> None:
        self.name = name
        self.action = action
        self.period_seconds = period_seconds
        self.is_cancelled = False

    def cancel(self) -> None:
        """Prevent further runs; a run in progress ends normally."""
        self.is_cancelled = True


class Scheduler(Protocol):
    """Runner of background tasks. Tests inject one that they step by hand."""

    counters: dict[str, TaskCounters]

    def schedule(
        self, name: str, action: Callable[[], object], *, delay_ms: int = 0, period_ms: int | None = None
    ) -> ScheduledTask:
        """Run `action` after `delay_ms`, then every `period_ms` if that is given."""
        ...


class BackgroundScheduler:
    """Scheduler of a running broker, on threads of its own."""

    def __init__(self, clock: Clock, max_threads: int, thread_name: str = "barnabas-scheduler") -> None:
        self.counters: dict[str, TaskCounters] = {}
        self._clock = clock
        self._max_threads = max_threads
        self._thread_name = thread_name
        self._queue: list[tuple[float, int, ScheduledTask]] = []
        self._sequence = itertools.count()
        self._condition = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._thread_numbers = itertools.count()
        self._idle = 0
        self._stopping = False

    def schedule(
        self, name: str, action: Callable[[], object], *, delay_ms: int = 0, period_ms: int | None = None
    ) -> ScheduledTask:
        """Run `action` after `delay_ms`, then every `period_ms` if that is given. Ignored after `shutdown`."""
        task = ScheduledTask(name, action, None if period_ms is None else period_ms / 1000)
        with self._condition:
            self.counters.setdefault(name, TaskCounters())
            if not self._stopping:
                self._push(self._clock.monotonic() + delay_ms / 1000, task)
        return task

    def resize(self, max_threads: int) -> None:
        """Change the maximum number of threads; surplus threads end after their current task."""
        with self._condition:
            self._max_threads = max_threads
            if self._queue:
                self._maybe_add_thread()
            self._condition.notify_all()

    def shutdown(self, timeout_seconds: float | None = None) -> bool:
        """Start no more tasks and wait for those in progress; return whether all ended in time."""
        with self._condition:
            self._stopping = True
            self._queue.clear()
            for counters in self.counters.values():
                counters.queued.clear()
            self._condition.notify_all()
            threads = list(self._threads)
        for thread in threads:
            thread.join(timeout_seconds)
        return not any(thread.is_alive() for thread in threads)

    def _push(self, due: float, task: ScheduledTask) -> None:
        """Queue a task and make sure that a thread will take it. The condition's lock is held."""
        entry = (due, next(self._sequence), task)
        heapq.heappush(self._queue, entry)
        heapq.heappush(self.counters[task.name].queued, entry)
        if self._idle:
            self._condition.notify()
        else:
            self._maybe_add_thread()

    def _maybe_add_thread(self) -> None:
        if len(self._threads) < self._max_threads:
            name = f"{self._thread_name}-{next(self._thread_numbers)}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        while True:
            taken = self._take()
            if taken is None:
                return
            due, task = taken
            self._run(task)
            if task.period_seconds is not None and not task.is_cancelled:
                with self._condition:
                    if not self._stopping:
                        self._push(max(due + task.period_seconds, self._clock.monotonic()), task)

    def _take(self) -> tuple[float, ScheduledTask] | None:
        """Wait for a task that is due; None once the scheduler stops."""
        with self._condition:
            while not self._stopping:
                if len(self._threads) > self._max_threads:
                    self._threads.remove(threading.current_thread())
                    self._condition.notify()  # this thread may have consumed the wake-up of a queued task
                    return None
                wait: float | None = None
                if self._queue:
                    wait = min(self._queue[0][0] - self._clock.monotonic(), _MAX_WAIT_SECONDS)
                    if wait <= 0:
                        due, _, task = heapq.heappop(self._queue)
                        heapq.heappop(self.counters[task.name].queued)  # the same one: both have the same order
                        if task.is_cancelled:
                            continue
                        if self._queue and not self._idle:
                            self._maybe_add_thread()  # another thread must watch the queue while this one works
                        return due, task
                self._idle += 1
                try:
                    self._condition.wait(wait)
                finally:
                    self._idle -= 1
            return None

    def _run(self, task: ScheduledTask) -> None:
        started = self._clock.monotonic()
        failed = False
        try:
            task.action()
        except Exception:
            failed = True
            logger.exception("background task failed and stays scheduled: task=%s", task.name)
        ended = self._clock.monotonic()
        with self._condition:
            counters = self.counters[task.name]
            counters.runs += 1
            counters.failures += failed
            counters.last_duration_seconds = ended - started
            counters.last_end = ended
