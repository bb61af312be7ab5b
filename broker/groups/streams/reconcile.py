"""One step of a member from its current assignment to its target.

    give up    tasks that the target does not have are revoked; the member stays in its epoch until it no longer reports
               one of them
    take over  then it enters the target's epoch with the target's tasks, except those that are not free

An active task is free if no process has it, and the member's process has no copy of it; a standby task is free if the
member's process has no copy of the task. Source: Kafka's CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.broker.groups.streams.member import MemberState, StreamsGroupMember
from barnabas.broker.groups.streams.tasks import HOLDS_NONE, HeldTasks, Task, TaskSet
from barnabas.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.groups.streams.group import StreamsGroup

_IsTaken = Callable[[Task], bool]
_Split = tuple[dict[str, dict[int, int]], dict[str, dict[int, int]], dict[str, dict[int, int]], bool]


def reconcile(
    group: StreamsGroup, member: StreamsGroupMember, target_epoch: int, target: TaskSet, owned: TaskSet | None
) -> StreamsGroupMember:
    """Return the member after this heartbeat; the same object if nothing changes. `owned` None: it reports nothing.

    Raises BrokerError FENCED_MEMBER_EPOCH for a member in a state of a newer Kafka, unless it reports no tasks.
    """
    if member.is_reconciled_to(target_epoch):
        return member
    step = _Step(group, member, target_epoch, target, owned)
    if member.state == MemberState.UNREVOKED_TASKS:
        if owned is None or owned.contains_any(member.pending_revocation):
            return member
        return step.next(member.member_epoch + 1)
    if member.state == MemberState.UNKNOWN:
        if owned is None or not owned.is_empty:
            raise BrokerError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin.",
            )
        return step.next(target_epoch)
    return step.next(member.member_epoch)


class _Step:
    def __init__(
        self, group: StreamsGroup, member: StreamsGroupMember, epoch: int, target: TaskSet, owned: TaskSet | None
    ) -> None:
        self._group = group
        self._member = member
        self._epoch = epoch
        self._target = target
        self._owned = owned

    def next(self, member_epoch: int) -> StreamsGroupMember:
        """Return the member after the step, from the epoch `member_epoch`."""
        has, target = self._member.assigned, self._target
        kept, revoked, taken_over, waits = _split(has.active, target.active, self._active_is_taken, self._epoch)
        standby = _split(_epochs(has.standby), target.standby, self._copy_is_taken, 0)
        warmup = _split(_epochs(has.warmup), target.warmup, self._copy_is_taken, 0)
        waits = waits or standby[3] or warmup[3]
        assigned = HeldTasks(kept, _tasks(standby[0]), _tasks(warmup[0]))
        given_up = HeldTasks(revoked, _tasks(standby[1]), _tasks(warmup[1]))
        if not given_up.is_empty and (self._owned is None or self._owned.contains_any(given_up)):
            return self._in_epoch(member_epoch, MemberState.UNREVOKED_TASKS, assigned, given_up)
        assigned = assigned.merged(HeldTasks(taken_over, _tasks(standby[2]), _tasks(warmup[2])))
        state = MemberState.UNRELEASED_TASKS if waits else MemberState.STABLE
        return self._in_epoch(self._epoch, state, assigned, HOLDS_NONE)

    def _in_epoch(
        self, epoch: int, state: MemberState, assigned: HeldTasks, pending_revocation: HeldTasks
    ) -> StreamsGroupMember:
        return replace(
            self._member,
            member_epoch=epoch,
            previous_member_epoch=self._member.member_epoch,
            state=state,
            assigned=assigned,
            pending_revocation=pending_revocation,
        )

    def _active_is_taken(self, task: Task) -> bool:
        return task in self._group.processes or self._has_inactive_copy(task)

    def _copy_is_taken(self, task: Task) -> bool:
        return self._group.processes.get(task) == self._member.process_id or self._has_inactive_copy(task)

    def _has_inactive_copy(self, task: Task) -> bool:
        process, group = self._member.process_id, self._group
        return process in group.standby_processes.get(task, ()) or process in group.warmup_processes.get(task, ())


def _split(
    has: Mapping[str, Mapping[int, int]], target: Mapping[str, frozenset[int]], is_taken: _IsTaken, epoch: int
) -> _Split:
    """Return the tasks to keep, to give up and to take over, with epochs, and whether a target task is not free."""
    kept: dict[str, dict[int, int]] = {}
    revoked: dict[str, dict[int, int]] = {}
    taken_over: dict[str, dict[int, int]] = {}
    waits = False
    for each in sorted(has.keys() | target.keys()):
        held, wanted = has.get(each, {}), target.get(each, frozenset())
        stays = {number: since for number, since in held.items() if number in wanted}
        goes = {number: since for number, since in held.items() if number not in wanted}
        new = sorted(wanted - stays.keys())
        free = {number: epoch for number in new if not is_taken((each, number))}
        waits |= len(free) < len(new)
        for tasks, found in ((kept, stays), (revoked, goes), (taken_over, free)):
            if found:
                tasks[each] = found
    return kept, revoked, taken_over, waits


def _epochs(tasks: Mapping[str, frozenset[int]]) -> dict[str, dict[int, int]]:
    return {each: dict.fromkeys(numbers, 0) for each, numbers in tasks.items()}


def _tasks(tasks: Mapping[str, Mapping[int, int]]) -> dict[str, frozenset[int]]:
    return {each: frozenset(numbers) for each, numbers in tasks.items()}
