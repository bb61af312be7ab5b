"""The sticky task assignor: a balanced assignment that keeps tasks where they are, or where their state is.

    active tasks    stay with their member up to its share; then go to a member that had them as standby tasks; the
                    rest goes, in ranges, to the least loaded process and its least loaded member
    standby tasks   of each stateful task as many as configured, on processes that have no other copy of it: first to
                    the member that had the active task, then to one that had a standby, then to the least loaded

Source: Kafka's StickyTaskAssignor, ProcessState. Among equally loaded processes and members Kafka follows the order of
its hash maps; here the lower id comes first.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from barnabas.broker.groups.streams.tasks import Task, TaskSet, pairs

logger = logging.getLogger(__name__)


class MemberSpec(NamedTuple):
    """A member: its process, and its present target."""

    process_id: str
    target: TaskSet


class SubtopologySpec(NamedTuple):
    """A subtopology: its number of tasks, and whether they have state."""

    tasks: int
    is_stateful: bool


def assign(
    members: Mapping[str, MemberSpec], subtopologies: Mapping[str, SubtopologySpec], standby_replicas: int
) -> dict[str, TaskSet]:
    """Return the new target of every member."""
    if not members:
        return {}
    assignment = _Assignment(members, subtopologies, standby_replicas)
    assignment.assign_active()
    if standby_replicas > 0:
        assignment.assign_standby()
    return {
        member_id: TaskSet(
            _by_subtopology(assignment.active[member_id]), _by_subtopology(assignment.standby[member_id])
        )
        for member_id in members
    }


class _Process:
    """A process: its members, with their numbers of tasks, and all its tasks."""

    def __init__(self) -> None:
        self.loads: dict[str, int] = {}
        self.tasks: set[Task] = set()
        self.count = 0

    @property
    def load(self) -> float:
        return self.count / len(self.loads)

    def least_loaded(self) -> str:
        return min(self.loads, key=self.loads.__getitem__)


class _Quota:
    """The share of a member, which shrinks as members reach it, so that the remainder is spread."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.share = -(-tasks // members)

    def reached(self, count: int) -> None:
        """Tell that a member now has `count` tasks."""
        if count == self.share:
            self._members -= 1
            self._tasks -= count
            self.share = -(-self._tasks // self._members) if self._members else 0


class _Assignment:
    def __init__(
        self, members: Mapping[str, MemberSpec], subtopologies: Mapping[str, SubtopologySpec], standby_replicas: int
    ) -> None:
        self._replicas = standby_replicas
        self._process_of = {member_id: members[member_id].process_id for member_id in sorted(members)}
        self._processes: dict[str, _Process] = {}
        self.active: dict[str, list[Task]] = {member_id: [] for member_id in members}
        self.standby: dict[str, list[Task]] = {member_id: [] for member_id in members}
        self._had_active: dict[Task, str] = {}
        self._had_standby: dict[Task, list[str]] = {}
        for member_id, process_id in self._process_of.items():
            self._processes.setdefault(process_id, _Process()).loads[member_id] = 0
            for task in pairs(members[member_id].target.active):
                self._had_active[task] = member_id
            for task in pairs(members[member_id].target.standby):
                self._had_standby.setdefault(task, []).append(member_id)
        self._tasks = [(each, number) for each, spec in subtopologies.items() for number in range(spec.tasks)]
        self._stateful = [task for task in self._tasks if subtopologies[task[0]].is_stateful]
        count = len(members)
        self._active_quota = _Quota(len(self._tasks), count)
        self._quota = _Quota(len(self._tasks) + len(self._stateful) * standby_replicas, count)

    def assign_active(self) -> None:
        """Assign all active tasks."""
        left = []
        for task in sorted(self._tasks, key=_by_partition):
            member_id = self._had_active.get(task)
            if member_id is None or not self._give_active_within_share(task, member_id):
                left.append(task)
        remaining = []
        for task in left:
            had = self._least_loaded_of(self._had_standby.get(task, ()), None)
            if had is None or not self._give_active_within_share(task, had):
                remaining.append(task)
        heap = self._heap()
        for task in sorted(remaining):
            _, process_id = heappop(heap)
            self._give_active(task, self._processes[process_id].least_loaded())
            self._push(heap, process_id)

    def assign_standby(self) -> None:
        """Assign the standby tasks."""
        left: list[tuple[Task, int]] = []
        for task in sorted(self._stateful, key=_by_partition, reverse=True):
            for given in range(self._replicas):
                if not self._give_standby_to_former(task):
                    left.append((task, self._replicas - given))
                    break
        heap = self._heap()
        for task, replicas in sorted(left, reverse=True):
            for given in range(replicas):
                if not self._give_standby_to_least_loaded(task, heap):
                    logger.warning(
                        "task %s_%d has %d standby tasks less than configured: there are too few processes",
                        *task,
                        replicas - given,
                    )
                    break

    def _give_standby_to_former(self, task: Task) -> bool:
        """Give a standby task to a member that had the task and has room; return whether there is one."""
        former = self._had_active.get(task)
        if former is not None and not self._has(former, task) and self._load(former) < self._quota.share:
            self._give_standby(task, former)
            return True
        former = self._least_loaded_of(self._had_standby.get(task, ()), task)
        if former is not None and self._load(former) < self._quota.share:
            self._give_standby(task, former)
            return True
        return False

    def _give_standby_to_least_loaded(self, task: Task, heap: list[tuple[float, str]]) -> bool:
        tried = []
        found = False
        while heap and not found:
            _, process_id = heappop(heap)
            tried.append(process_id)
            process = self._processes[process_id]
            if task not in process.tasks:
                self._give_standby(task, process.least_loaded())
                found = True
        for process_id in tried:
            self._push(heap, process_id)
        return found

    def _least_loaded_of(self, members: list[str] | tuple[()], task: Task | None) -> str | None:
        """Return a member of a lightly loaded process, which with `task` has no copy of it; None if there is none."""
        if not members:
            return None
        candidate = members[0]
        process_load, load = self._process(candidate).load, self._load(candidate)
        for member_id in members[1:]:
            process = self._process(member_id)
            if process.load < process_load and (task is None or task not in process.tasks):
                own = self._load(member_id)
                if own < load:
                    process_load, load, candidate = process.load, own, member_id
        return candidate if task is None or not self._has(members[0], task) else None

    def _give_active_within_share(self, task: Task, member_id: str) -> bool:
        if self._load(member_id) >= self._active_quota.share:
            return False
        self._give_active(task, member_id)
        return True

    def _give_active(self, task: Task, member_id: str) -> None:
        self.active[member_id].append(task)
        count = self._count(task, member_id)
        self._active_quota.reached(count)
        self._quota.reached(count)

    def _give_standby(self, task: Task, member_id: str) -> None:
        self.standby[member_id].append(task)
        self._quota.reached(self._count(task, member_id))

    def _count(self, task: Task, member_id: str) -> int:
        process = self._process(member_id)
        process.tasks.add(task)
        process.count += 1
        process.loads[member_id] += 1
        return process.loads[member_id]

    def _process(self, member_id: str) -> _Process:
        return self._processes[self._process_of[member_id]]

    def _has(self, member_id: str, task: Task) -> bool:
        return task in self._process(member_id).tasks

    def _load(self, member_id: str) -> int:
        return self._process(member_id).loads[member_id]

    def _heap(self) -> list[tuple[float, str]]:
        heap = [(process.load, process_id) for process_id, process in self._processes.items()]
        heapify(heap)
        return heap

    def _push(self, heap: list[tuple[float, str]], process_id: str) -> None:
        heappush(heap, (self._processes[process_id].load, process_id))


def _by_partition(task: Task) -> tuple[int, str]:
    return task[1], task[0]


def _by_subtopology(tasks: list[Task]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for each, number in tasks:
        found.setdefault(each, set()).add(number)
    return {each: frozenset(numbers) for each, numbers in found.items()}
