"""Deadlines of a group: their order, and the cost of thousands that expire together."""

from __future__ import annotations

import math

from barnabas.broker.groups.timers import GroupTimers


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class CountedName(str):
    """A member id that counts how often it is hashed to look up a deadline."""

    __slots__ = ()
    lookups = 0

    def __hash__(self) -> int:
        CountedName.lookups += 1
        return str.__hash__(self)


def test_deadlines_are_due_in_order_and_no_sooner() -> None:
    clock = Clock()
    timers = GroupTimers(clock)
    for name, delay_ms in (("c", 3000), ("a", 1000), ("b", 2000)):
        timers.schedule(("session", name), delay_ms)
    assert timers.pop_due() is None
    clock.now = 2.0
    assert [timers.pop_due(), timers.pop_due(), timers.pop_due()] == [("session", "a"), ("session", "b"), None]
    assert timers.wake_at == 3.0
    clock.now = 3.0
    assert [timers.pop_due(), timers.pop_due()] == [("session", "c"), None]
    assert timers.wake_at == math.inf


def test_a_deadline_moved_or_cancelled_while_others_are_handled_is_not_due() -> None:
    clock = Clock()
    timers = GroupTimers(clock)
    for name in "abc":
        timers.schedule(("session", name), 1000)
    clock.now = 1.0
    assert timers.pop_due() == ("session", "a")
    timers.cancel(("session", "c"))
    timers.schedule(("session", "b"), 500)
    timers.schedule(("join", ""), 0)
    assert [timers.pop_due(), timers.pop_due()] == [("join", ""), None]
    assert timers.wake_at == 1.5


def test_each_of_thousands_of_simultaneous_deadlines_is_looked_up_a_few_times() -> None:
    clock = Clock()
    timers = GroupTimers(clock)
    members = 2000
    for number in range(members):
        timers.schedule(("session", CountedName(number)), 1000)
    clock.now = 1.0
    CountedName.lookups = 0
    while timers.pop_due() is not None:
        pass
    assert CountedName.lookups < 10 * members
