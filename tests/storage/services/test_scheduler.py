"""The background scheduler with real threads; tests wait on events, never on time."""

from __future__ import annotations

import threading

import pytest

from barnabas.broker.storage.services.clock import SystemClock
from barnabas.broker.storage.services.scheduler import BackgroundScheduler

_WAIT_S = 20.0


@pytest.fixture
def scheduler() -> object:
    created = BackgroundScheduler(SystemClock(), 3, "test-scheduler")
    yield created
    created.shutdown()


def test_a_task_runs_once_on_a_named_thread(scheduler: BackgroundScheduler) -> None:
    ran = threading.Event()
    names: list[str] = []

    def run() -> None:
        names.append(threading.current_thread().name)
        ran.set()

    scheduler.schedule("once", run)
    assert ran.wait(_WAIT_S)
    scheduler.shutdown()
    assert names == ["test-scheduler-0"]
    assert (scheduler.counters["once"].runs, scheduler.counters["once"].failures) == (1, 0)


def test_a_periodic_task_repeats_and_its_runs_never_overlap(scheduler: BackgroundScheduler) -> None:
    enough = threading.Event()
    running = threading.Lock()
    runs = 0

    def run() -> None:
        nonlocal runs
        assert running.acquire(blocking=False)
        runs += 1
        if runs == 5:
            enough.set()
        running.release()

    scheduler.schedule("again", run, period_ms=1)
    assert enough.wait(_WAIT_S)
    scheduler.shutdown()
    assert scheduler.counters["again"].failures == 0


def test_a_failing_task_is_counted_and_stays_scheduled(
    scheduler: BackgroundScheduler, caplog: pytest.LogCaptureFixture
) -> None:
    second = threading.Event()
    runs = 0

    def run() -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            raise ValueError("the first run fails")
        second.set()

    scheduler.schedule("log-retention", run, period_ms=1)
    assert second.wait(_WAIT_S)
    scheduler.shutdown()
    assert scheduler.counters["log-retention"].failures == 1
    assert "task=log-retention" in caplog.text


def test_a_long_task_does_not_delay_another(scheduler: BackgroundScheduler) -> None:
    release, other_ran = threading.Event(), threading.Event()
    scheduler.schedule("long", lambda: release.wait(_WAIT_S))
    scheduler.schedule("other", other_ran.set, delay_ms=5)
    assert other_ran.wait(_WAIT_S)
    release.set()


def test_no_more_threads_than_allowed(scheduler: BackgroundScheduler) -> None:
    release, full = threading.Event(), threading.Barrier(4)
    queued = threading.Event()

    def block() -> None:
        full.wait(_WAIT_S)
        release.wait(_WAIT_S)

    for _ in range(3):
        scheduler.schedule("block", block)
    full.wait(_WAIT_S)
    scheduler.schedule("queued", queued.set)
    assert not queued.is_set()
    release.set()
    assert queued.wait(_WAIT_S)


def test_the_earlier_task_runs_first_whenever_it_was_added(scheduler: BackgroundScheduler) -> None:
    order: list[str] = []
    done = threading.Event()

    def late() -> None:
        order.append("late")
        done.set()

    scheduler.schedule("late", late, delay_ms=60)
    scheduler.schedule("early", lambda: order.append("early"), delay_ms=1)
    assert done.wait(_WAIT_S)
    assert order == ["early", "late"]


def test_a_cancelled_task_does_not_run(scheduler: BackgroundScheduler) -> None:
    ran: list[str] = []
    done = threading.Event()
    scheduler.schedule("cancelled", lambda: ran.append("cancelled"), delay_ms=5).cancel()
    scheduler.schedule("done", done.set, delay_ms=10)
    assert done.wait(_WAIT_S)
    assert ran == []


def test_a_period_of_never_is_accepted(scheduler: BackgroundScheduler) -> None:
    ran = threading.Event()
    scheduler.schedule("log-flusher", ran.set, period_ms=2**63 - 1)
    assert ran.wait(_WAIT_S)
    assert scheduler.shutdown(_WAIT_S)


def test_after_shutdown_nothing_starts_and_delayed_tasks_are_dropped() -> None:
    scheduler = BackgroundScheduler(SystemClock(), 2)
    ran: list[str] = []
    scheduler.schedule("delayed", lambda: ran.append("delayed"), delay_ms=60_000)
    assert scheduler.shutdown(_WAIT_S)
    scheduler.schedule("after", lambda: ran.append("after"))
    assert ran == []


def test_a_queued_task_gets_a_thread_when_the_only_one_is_taken(scheduler: BackgroundScheduler) -> None:
    warm, other_ran = threading.Event(), threading.Event()
    waited: list[bool] = []
    done = threading.Event()

    def long() -> None:
        waited.append(other_ran.wait(_WAIT_S))
        done.set()

    scheduler.schedule("warm", warm.set)
    assert warm.wait(_WAIT_S)
    scheduler.schedule("long", long, delay_ms=20)
    scheduler.schedule("other", other_ran.set, delay_ms=40)
    assert done.wait(_WAIT_S)
    assert waited == [True]


def test_the_number_of_threads_can_be_changed(scheduler: BackgroundScheduler) -> None:
    def run_together(count: int) -> int:
        """Return how many of `count` tasks run in parallel."""
        started, go_on, done = threading.Semaphore(0), threading.Event(), threading.Semaphore(0)

        def run() -> None:
            started.release()
            go_on.wait(_WAIT_S)
            done.release()

        for _ in range(count):
            scheduler.schedule("together", run)
        allowed = scheduler._max_threads
        for _ in range(min(allowed, count)):
            assert started.acquire(timeout=_WAIT_S)
        at_once = min(allowed, count) + started.acquire(blocking=False)
        go_on.set()
        for _ in range(count):
            assert done.acquire(timeout=_WAIT_S)
        return at_once

    assert run_together(5) == 3
    scheduler.resize(1)
    assert run_together(3) == 1
    scheduler.resize(4)
    assert run_together(6) == 4


def test_the_end_of_the_last_run_and_the_next_due_time_are_kept_by_name(scheduler: BackgroundScheduler) -> None:
    clock, ran = SystemClock(), threading.Event()
    began = clock.monotonic()
    scheduler.schedule("task", lambda: None, delay_ms=60_000).cancel()
    scheduler.schedule("task", lambda: None, delay_ms=3_600_000)
    scheduler.schedule("task", ran.set, delay_ms=1)
    scheduler.schedule("other", lambda: None, delay_ms=1_800_000)
    assert ran.wait(_WAIT_S)
    task = scheduler.counters["task"]
    due = task.next_due()
    assert due is not None
    assert began + 3600 <= due <= clock.monotonic() + 3600
    other = scheduler.counters["other"].next_due()
    assert other is not None
    assert other < due
    scheduler.shutdown()
    assert task.last_end is not None
    assert began <= task.last_end <= clock.monotonic()
    assert task.next_due() is None
