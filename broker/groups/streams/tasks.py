"""Sets of tasks of the three kinds.

active     processes records
standby    keeps a copy of the state of an active task of another process
warmup     restores state before a task moves. No assignor creates any; Kafka's neither
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from barnabas.protocol.groups.streams_group_values import TaskEpochs
    from barnabas.protocol.messages.groups.streams_topology import Tasks


class TaskSet(NamedTuple):
    """Tasks without epochs: a target assignment, or the tasks that a member reports."""

    active: Tasks = {}  # noqa: RUF012 - never changed
    standby: Tasks = {}  # noqa: RUF012
    warmup: Tasks = {}  # noqa: RUF012

    @property
    def is_empty(self) -> bool:
        """Whether there is no task of any kind."""
        return not (any(self.active.values()) or any(self.standby.values()) or any(self.warmup.values()))

    def contains_any(self, held: HeldTasks) -> bool:
        """Return whether one of the tasks is in both sets, of the same kind."""
        return (
            _overlap(self.active, held.active)
            or _overlap(self.standby, held.standby)
            or _overlap(self.warmup, held.warmup)
        )


class HeldTasks(NamedTuple):
    """Tasks that a member has; active ones with the member epoch in which each was assigned."""

    active: TaskEpochs = {}  # noqa: RUF012
    standby: Tasks = {}  # noqa: RUF012
    warmup: Tasks = {}  # noqa: RUF012

    @property
    def is_empty(self) -> bool:
        """Whether there is no task of any kind."""
        return not (any(self.active.values()) or any(self.standby.values()) or any(self.warmup.values()))

    def merged(self, other: HeldTasks) -> HeldTasks:
        """Return the tasks of both."""
        active = {each: {**self.active.get(each, {}), **other.active.get(each, {})} for each in _ids(self, other, 0)}
        return HeldTasks(active, _union(self.standby, other.standby), _union(self.warmup, other.warmup))


NO_TASKS: Final = TaskSet()
HOLDS_NONE: Final = HeldTasks()

Task = tuple[str, int]
"""A subtopology id and a partition."""


def pairs(tasks: Mapping[str, Iterable[int]]) -> Iterator[Task]:
    """Return the tasks one by one."""
    return ((each, number) for each, numbers in tasks.items() for number in numbers)


def without_epochs(tasks: TaskEpochs) -> Tasks:
    """Return active tasks without their epochs."""
    return {each: frozenset(epochs) for each, epochs in tasks.items()}


def _ids(one: HeldTasks, other: HeldTasks, kind: int) -> list[str]:
    return list(dict.fromkeys((*one[kind], *other[kind])))


def _union(one: Tasks, other: Tasks) -> Tasks:
    return {each: one.get(each, frozenset()) | other.get(each, frozenset()) for each in dict.fromkeys((*one, *other))}


def _overlap(tasks: Tasks, held: Mapping[str, Iterable[int]]) -> bool:
    return any(not numbers.isdisjoint(held.get(each, ())) for each, numbers in tasks.items())
