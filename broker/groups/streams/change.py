"""One change of a streams group: its records so far, and the epoch and target assignments that they lead to.

A change does not touch the group: its records do, once they are in the log. So a change that is refused halfway, or
whose records cannot be written, leaves no trace. Source: Kafka's GroupMetadataManager (streamsGroupHeartbeat,
maybeUpdateStreamsTargetAssignment, streamsGroupFenceMember), TargetAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.groups.expressions.topics_hash import group_hash
from barnabas.broker.groups.history import EventMember
from barnabas.broker.groups.streams.assignor import MemberSpec, SubtopologySpec, assign
from barnabas.broker.groups.streams.records import (
    epoch_record,
    member_tombstones,
    target_epoch_record,
    target_record,
    topology_record,
)
from barnabas.broker.groups.streams.tasks import NO_TASKS, TaskSet
from barnabas.broker.groups.streams.topics.configured import ConfiguredTopology, configure
from barnabas.broker.groups.streams.topics.topology import StreamsTopology
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.streams_group_values import NOT_VALIDATED, StreamsGroupMetadataValue
from barnabas.protocol.messages.groups.explain_group import GroupEventKind
from barnabas.protocol.messages.groups.streams_group_heartbeat import GroupStatus, StatusCode
from barnabas.protocol.messages.groups.streams_topology import KeyValue

if TYPE_CHECKING:
    from barnabas.broker.groups.log.records import GroupRecord
    from barnabas.broker.groups.streams.group import StreamsGroup
    from barnabas.broker.groups.streams.member import StreamsGroupMember
    from barnabas.broker.groups.streams.settings import StreamsContext
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.protocol.messages.groups.streams_topology import Topology

STANDBY_REPLICAS: Final = "num.standby.replicas"
"""The config that the assignor depends on, as it is in the group's record."""


class StreamsChange:
    """The records of one request or event, in order.

    is_delayed   the first assignment waits for more members
    status       what the requesting member is told
    """

    def __init__(self, group: StreamsGroup, context: StreamsContext) -> None:
        self.group = group
        self.context = context
        self.image: MetadataImage = context.image()
        self.settings = context.settings_of(group.group_id)
        self.records: list[GroupRecord] = []
        self.epoch = group.epoch
        self.topology = group.topology
        self.configured = group.configured
        self.is_delayed = group.is_delayed
        self.status: list[GroupStatus] = []
        self.events: list[tuple[GroupEventKind, EventMember | None, str]] = []
        """What the records mean for the group's history."""

    def report(self, kind: GroupEventKind, member: StreamsGroupMember | None = None, detail: str = "") -> None:
        """Add an event to the group's history, once the records are replayed."""
        about = None if member is None else EventMember(member.member_id, member.client_id, member.client_host)
        self.events.append((kind, about, detail))

    def set_topology(self, offered: Topology | None) -> StreamsTopology:
        """Return the group's topology; the first one that a member offers becomes the group's.

        Raises BrokerError INVALID_REQUEST for another topology than the group's in its epoch, or in a newer one.
        """
        present = self.topology
        if offered is None:
            if present is None:
                raise BrokerError(ErrorCode.INVALID_REQUEST, "The group has no topology: its members must join again.")
            return present
        wanted = StreamsTopology(offered)
        if present is None:
            self.records.append(topology_record(self.group.group_id, offered))
            self.topology = present = wanted
        elif present.epoch <= wanted.epoch and present != wanted:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
        return present

    def configure_topics(self) -> tuple[ConfiguredTopology, int]:
        """Return the topology with its internal topics, and the hash of its topics' metadata.

        Raises BrokerError STREAMS_INVALID_TOPOLOGY.
        """
        group, topology = self.group, self.topology
        assert topology is not None
        if group.is_checked and self.configured is not None:
            return self.configured, group.metadata_hash
        metadata_hash = group_hash(topology.required_topics, self.image)
        if self.configured is None or metadata_hash != group.metadata_hash:
            self.configured = configure(topology, self.image)
        return self.configured, metadata_hash

    def bump_epoch(self, configured: ConfiguredTopology, metadata_hash: int, *, bump: bool) -> None:
        """Begin the next epoch if `bump` is set, or if topics, their validity or the assignor's configs changed."""
        group = self.group
        validated = configured.epoch if configured.is_ready else NOT_VALIDATED
        configs = {STANDBY_REPLICAS: str(self.settings.standby_replicas)}
        topics_changed = metadata_hash != group.metadata_hash or validated != group.validated_epoch
        if not (bump or topics_changed or configs != group.assignment_configs):
            return
        self.epoch += 1
        self.report(GroupEventKind.REBALANCE_BEGAN, detail="its topics changed" if topics_changed and not bump else "")
        value = StreamsGroupMetadataValue(self.epoch, metadata_hash, validated, _pairs(configs))
        self.records.append(epoch_record(group.group_id, value))

    def target(
        self, members: Mapping[str, StreamsGroupMember], configured: ConfiguredTopology
    ) -> tuple[int, Mapping[str, TaskSet]]:
        """Return the epoch of the target assignment and the targets; assign again if they are of an older epoch."""
        group = self.group
        if self.is_delayed:
            self._tell_delay("Assignment delayed due to the configured initial rebalance delay.")
            return group.assignment_epoch, {}
        if group.assignment_epoch >= self.epoch:
            return group.assignment_epoch, group.target
        if not self._may_assign():
            self._tell_delay("Assignment delayed due to the configured assignment interval.")
            return group.assignment_epoch, group.target
        targets: Mapping[str, TaskSet] = {}
        if configured.is_ready:
            specs = {
                member_id: MemberSpec(member.process_id, group.target.get(member_id, NO_TASKS))
                for member_id, member in members.items()
            }
            subtopologies = {
                each: SubtopologySpec(found.tasks, bool(found.changelog_topics))
                for each, found in configured.subtopologies.items()
            }
            targets = assign(specs, subtopologies, self.settings.standby_replicas)
        for member_id in members:
            target = targets.get(member_id, NO_TASKS)
            if target != group.target.get(member_id):
                self.records.append(target_record(group.group_id, member_id, target))
        self.records.append(target_epoch_record(group.group_id, self.epoch, self.context.clock.wall_ms()))
        return self.epoch, targets

    def fence(self, member: StreamsGroupMember) -> None:
        """Remove a member; the others get a new assignment."""
        group = self.group
        self.records += member_tombstones(group.group_id, member.member_id)
        self.epoch += 1
        value = StreamsGroupMetadataValue(
            self.epoch, group.metadata_hash, group.validated_epoch, _pairs(group.assignment_configs)
        )
        self.records.append(epoch_record(group.group_id, value))
        self.report(GroupEventKind.REBALANCE_BEGAN)

    def _may_assign(self) -> bool:
        interval_ms, last_ms = self.settings.assignment_interval_ms, self.group.assignment_ms
        return not interval_ms or not last_ms or self.context.clock.wall_ms() >= last_ms + interval_ms

    def _tell_delay(self, detail: str) -> None:
        self.status.append(GroupStatus(code=StatusCode.ASSIGNMENT_DELAYED, detail=detail))


def _pairs(configs: Mapping[str, str]) -> tuple[KeyValue, ...]:
    return tuple(KeyValue(key=name, value=configs[name]) for name in sorted(configs))
