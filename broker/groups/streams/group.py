"""A streams group (KIP-1071) as its records describe it. Only `replay` changes that, at a start and at run time alike.

    group epoch        grows with every change that needs a new assignment: of members, topology, topics or configs
    assignment epoch   the group epoch of the target assignment, which gives every member its tasks
    member epoch       how far a member has come: it enters the assignment epoch once it gave up what it has to

An active task belongs to at most one process: its next owner waits until the present one has given it up. In memory
only, as in Kafka: the deadlines, the topology with its partition counts (`configured`), a request to shut the
application down, and the epoch of the endpoints for interactive queries. Source: Kafka's StreamsGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from barnabas.broker.groups.group import SINCE_COMMIT, CommitCheck, GroupState, GroupType, OffsetExpiry
from barnabas.broker.groups.streams.member import MemberState, StreamsGroupMember
from barnabas.broker.groups.streams.records import group_tombstones
from barnabas.broker.groups.streams.tasks import HOLDS_NONE, Task, TaskSet, pairs
from barnabas.broker.groups.streams.topics.topology import StreamsTopology
from barnabas.broker.groups.timers import GroupTimers, session_of
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.keys import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTopologyKey,
)
from barnabas.protocol.groups.streams_group_values import (
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupValue,
)
from barnabas.protocol.messages.groups.join_group import NO_MEMBER_ID
from barnabas.protocol.messages.groups.offset_commit import NO_GENERATION
from barnabas.protocol.messages.groups.streams_topology import Topology, tasks_of

if TYPE_CHECKING:
    from barnabas.broker.groups.log.records import GroupRecord
    from barnabas.broker.groups.streams.topics.configured import ConfiguredTopology
    from barnabas.broker.groups.timers import GroupClock
    from barnabas.broker.metadata.image import MetadataImage

STREAMS: Final = "streams"
"""The protocol type of streams groups."""

GONE_EPOCH: Final = -1
FIRST_EPOCH: Final = 1

REBALANCE: Final = "rebalance"
"""The timer of a member that has tasks to give up."""
INITIAL_DELAY: Final = ("initial", "")
"""The timer of a new group that waits for more members before its first assignment."""


class StreamsGroup:
    """One group. `is_checked`: its epoch was computed for its topics as they are now; a change of a topic resets it."""

    __slots__ = (
        "_image",
        "assignment_configs",
        "assignment_epoch",
        "assignment_ms",
        "configured",
        "endpoint_epoch",
        "epoch",
        "group_id",
        "is_checked",
        "members",
        "metadata_hash",
        "processes",
        "shutdown_member",
        "standby_processes",
        "target",
        "timers",
        "topology",
        "validated_epoch",
        "warmup_processes",
    )

    group_type = GroupType.STREAMS
    protocol_type = STREAMS

    def __init__(self, group_id: str, clock: GroupClock, image: Callable[[], MetadataImage]) -> None:
        self.group_id = group_id
        self._image = image
        self.is_checked = False
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.validated_epoch = 0
        self.assignment_configs: Mapping[str, str] = {}
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_ms = 0
        self.topology: StreamsTopology | None = None
        self.members: dict[str, StreamsGroupMember] = {}
        self.target: dict[str, TaskSet] = {}
        self.processes: dict[Task, str] = {}
        """The process that has each active task."""
        self.standby_processes: dict[Task, set[str]] = {}
        self.warmup_processes: dict[Task, set[str]] = {}
        self.timers = GroupTimers(clock.now)
        self.configured: ConfiguredTopology | None = None
        self.shutdown_member: str | None = None
        self.endpoint_epoch = 0

    @property
    def state(self) -> GroupState:
        """Empty, NotReady, Assigning, Reconciling or Stable."""
        if not self.members:
            return GroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_epoch:
            return GroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    def member(self, member_id: str) -> StreamsGroupMember:
        """Return the member. Raises BrokerError UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise BrokerError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    # --- deadlines

    @property
    def wake_at(self) -> float:
        """No deadline is before this time."""
        return self.timers.wake_at

    def extend_session(self, member_id: str, timeout_ms: int) -> None:
        """Restart the member's session timeout."""
        self.timers.schedule(session_of(member_id), timeout_ms)

    def begin_session(self, member_id: str, timeout_ms: int) -> None:
        """Start the member's session timeout, unless it runs already."""
        if session_of(member_id) not in self.timers:
            self.extend_session(member_id, timeout_ms)

    @property
    def is_delayed(self) -> bool:
        """Whether the first assignment waits for more members."""
        return INITIAL_DELAY in self.timers

    # --- committed offsets and deletion (see Group)

    def validate_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, *, knows_member_epochs: bool
    ) -> CommitCheck | None:
        """Return what remains to be checked of each partition; None if nothing does. Raises BrokerError."""
        if generation < 0 and not self.members:
            return None
        member = self.member(member_id)
        if not knows_member_epochs:
            raise BrokerError(
                ErrorCode.UNSUPPORTED_VERSION, "members of the streams protocol commit with version 9 or later"
            )
        return self._commit_check(member, generation)

    def validate_transactional_commit(
        self, member_id: str, group_instance_id: str | None, generation: int
    ) -> CommitCheck | None:
        """As `validate_offset_commit`; a request that names no member may always commit."""
        if generation < 0 and not self.members:
            return None
        if generation == NO_GENERATION and member_id == NO_MEMBER_ID and group_instance_id is None:
            return None
        return self._commit_check(self.member(member_id), generation)

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise BrokerError for a wrong member epoch. A request without a member id may always fetch."""
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise _stale(f"epoch {member_epoch} is not {member.member_epoch}, that of member {member_id!r}")

    def validate_offset_delete(self) -> None:
        """Allow it: the topics of the application are known."""

    def validate_delete(self) -> None:
        """Raise BrokerError NON_EMPTY_GROUP for a group with members."""
        if self.members:
            raise BrokerError(
                ErrorCode.NON_EMPTY_GROUP, f"group {printable(self.group_id)} has {len(self.members)} members"
            )

    def is_subscribed(self, topic: str) -> bool:
        """Return whether the application reads the topic, and runs."""
        return bool(self.members) and self.topology is not None and topic in self.topology.subtopology_of_source

    def offset_expiry(self) -> OffsetExpiry:
        """Return that offsets age since their commit; those of source topics do not expire anyway."""
        return SINCE_COMMIT

    def tombstones(self) -> list[GroupRecord]:
        """Return the records that delete the group with its members. Kafka's replay needs this order."""
        return group_tombstones(self.group_id, dict.fromkeys((*self.members, *self.target)))

    def _commit_check(self, member: StreamsGroupMember, epoch: int) -> CommitCheck | None:
        """Return the check of each partition for a commit in an older epoch; None for the member's epoch.

        A commit is valid in the member's epoch, and in an older one for tasks that the member has had ever since: each
        active task carries the epoch of its assignment. Raises BrokerError STALE_MEMBER_EPOCH for a newer epoch.
        """
        member_id = member.member_id
        if epoch == member.member_epoch:
            return None
        if epoch > member.member_epoch:
            raise _stale(f"epoch {epoch} is newer than {member.member_epoch}, that of member {member_id!r}")
        topology = self.topology
        if topology is None:
            raise _stale("the group has no topology yet")
        names = self._image().names

        def check(topic_id: bytes, partition: int) -> None:
            topic = names.get(topic_id, topic_id.hex())
            subtopology_id = topology.subtopology_of_source.get(topic)
            if subtopology_id is None:
                raise _stale(f"topic {topic} is not in the topology")
            assigned_in = member.assignment_epoch(subtopology_id, partition)
            if assigned_in is None:
                raise _stale(f"member {member_id!r} does not have task {subtopology_id}_{partition}")
            if epoch < assigned_in:
                raise _stale(
                    f"member {member_id!r} has task {subtopology_id}_{partition} since epoch {assigned_in}, not {epoch}"
                )

        return check

    # --- records

    def replay(self, key: StreamsGroupKey, value: StreamsGroupValue | None) -> None:
        """Apply one record of the group; a tombstone undoes the record of its key."""
        match key, value:
            case StreamsGroupMetadataKey(), StreamsGroupMetadataValue():
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
                self.validated_epoch = value.validated_topology_epoch
                self.assignment_configs = {each.key: each.value for each in value.last_assignment_configs or ()}
            case StreamsGroupTopologyKey(), Topology():
                self.topology = StreamsTopology(value)
                self.is_checked = False
            case StreamsGroupTopologyKey(), None:
                self.topology = None
            case StreamsGroupMemberMetadataKey(), StreamsGroupMemberMetadataValue():
                old = self.members.get(key.member_id, StreamsGroupMember(key.member_id))
                self._put(old.with_metadata(value))
            case StreamsGroupMemberMetadataKey(), None:
                self._remove(key.member_id)
            case StreamsGroupTargetAssignmentMetadataKey(), StreamsGroupTargetAssignmentMetadataValue():
                self.assignment_epoch, self.assignment_ms = value.assignment_epoch, value.assignment_timestamp
            case StreamsGroupTargetAssignmentMetadataKey(), None:
                self.assignment_epoch, self.assignment_ms = -1, 0
            case StreamsGroupTargetAssignmentMemberKey(), StreamsGroupTargetAssignmentMemberValue():
                self.target[key.member_id] = TaskSet(
                    tasks_of(value.active_tasks), tasks_of(value.standby_tasks), tasks_of(value.warmup_tasks)
                )
            case StreamsGroupTargetAssignmentMemberKey(), None:
                self.target.pop(key.member_id, None)
            case StreamsGroupCurrentMemberAssignmentKey(), StreamsGroupCurrentMemberAssignmentValue():
                old = self.members.get(key.member_id, StreamsGroupMember(key.member_id))
                self._put(old.with_current(value))
                self._time_revocation(self.members[key.member_id])
            case StreamsGroupCurrentMemberAssignmentKey(), None:
                self._forget_tasks(key.member_id)

    def _put(self, member: StreamsGroupMember) -> None:
        old = self.members.get(member.member_id)
        if old is not None:
            self._release(old)
        self.members[member.member_id] = member
        process = member.process_id
        for held in (member.assigned, member.pending_revocation):
            for task in pairs(held.active):
                self.processes[task] = process
            for task in pairs(held.standby):
                self.standby_processes.setdefault(task, set()).add(process)
            for task in pairs(held.warmup):
                self.warmup_processes.setdefault(task, set()).add(process)

    def _release(self, member: StreamsGroupMember) -> None:
        process = member.process_id
        for held in (member.assigned, member.pending_revocation):
            for task in pairs(held.active):
                if self.processes.get(task) == process:
                    del self.processes[task]
            _discard(self.standby_processes, held.standby, process)
            _discard(self.warmup_processes, held.warmup, process)

    def _remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._release(member)
        for key in (session_of(member_id), (REBALANCE, member_id)):
            self.timers.cancel(key)
        if not self.members:
            self.shutdown_member = None

    def _forget_tasks(self, member_id: str) -> None:
        member = self.members.get(member_id)
        if member is not None:
            self._put(
                replace(
                    member,
                    member_epoch=GONE_EPOCH,
                    previous_member_epoch=GONE_EPOCH,
                    assigned=HOLDS_NONE,
                    pending_revocation=HOLDS_NONE,
                )
            )

    def _time_revocation(self, member: StreamsGroupMember) -> None:
        key = (REBALANCE, member.member_id)
        if member.state == MemberState.UNREVOKED_TASKS:
            self.timers.schedule(key, member.rebalance_timeout_ms)
        else:
            self.timers.cancel(key)


def _discard(processes: dict[Task, set[str]], tasks: Mapping[str, frozenset[int]], process: str) -> None:
    for task in pairs(tasks):
        found = processes.get(task)
        if found is not None:
            found.discard(process)
            if not found:
                del processes[task]


def _stale(message: str) -> BrokerError:
    return BrokerError(ErrorCode.STALE_MEMBER_EPOCH, message)
