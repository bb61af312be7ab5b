"""One change of a consumer group: its records so far, and the epoch and target assignments that they lead to.

A change does not touch the group: its records do, once they are in the log. So a change that is refused halfway, or
whose records cannot be written, leaves no trace. Source: Kafka's GroupMetadataManager (updateSubscriptionMetadata,
maybeUpdateTargetAssignment and their callers).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.groups.assignors.assignor import Assignor, GroupSpec, MemberSpec
from barnabas.broker.groups.assignors.range_assignor import RangeAssignor
from barnabas.broker.groups.assignors.uniform_assignor import UniformAssignor
from barnabas.broker.groups.consumer.group import topics_of
from barnabas.broker.groups.consumer.reconcile import Owned, Reconciliation, reconcile
from barnabas.broker.groups.consumer.records import (
    current_record,
    epoch_record,
    member_tombstones,
    partition_metadata_tombstone,
    regex_record,
    target_epoch_record,
    target_record,
)
from barnabas.broker.groups.expressions.topics_hash import group_hash
from barnabas.broker.groups.history import EventMember
from barnabas.protocol.groups.consumer_group_values import Partitions
from barnabas.protocol.messages.groups.explain_group import GroupEventKind

if TYPE_CHECKING:
    from barnabas.broker.groups.consumer.group import ConsumerGroup
    from barnabas.broker.groups.consumer.member import ConsumerGroupMember
    from barnabas.broker.groups.consumer.settings import GroupContext
    from barnabas.broker.groups.log.records import GroupRecord
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.security.access import SessionAccess

ASSIGNORS: Final[Mapping[str, Assignor]] = {each.name: each for each in (UniformAssignor(), RangeAssignor())}


class GroupChange:
    """The records of one request or event, in order."""

    def __init__(self, group: ConsumerGroup, context: GroupContext) -> None:
        self.group = group
        self.context = context
        self.image: MetadataImage = context.image()
        self.settings = context.settings_of(group.group_id)
        self.records: list[GroupRecord] = []
        self.epoch = group.epoch
        self.regexes = group.regexes
        """The group's expressions, with those that this change resolved."""
        self.access: SessionAccess | None = None
        """The requesting client's: its expressions match only topics that it may describe. None: all."""
        self.events: list[tuple[GroupEventKind, EventMember | None, str]] = []
        """What the records mean for the group's history."""
        self._topic_ids: dict[tuple[frozenset[str], str], frozenset[bytes]] = {}

    def report(self, kind: GroupEventKind, member: ConsumerGroupMember | None = None, detail: str = "") -> None:
        """Add an event to the group's history, once the records are replayed."""
        about = None if member is None else EventMember(member.member_id, member.client_id, member.client_host)
        self.events.append((kind, about, detail))

    def bump_epoch(self, members: Iterable[ConsumerGroupMember], *, bump: bool) -> None:
        """Begin the next epoch if `bump` is set, or if the topics of `members` changed since this epoch."""
        group = self.group
        kinds = {(member.topic_names, member.topic_regex): member for member in members}  # most groups have one kind
        read = frozenset().union(*(topics_of(member, self.regexes) for member in kinds.values()))
        metadata_hash = group_hash(read, self.image)
        if bump or metadata_hash != group.metadata_hash:
            self.epoch += 1
            self.report(GroupEventKind.REBALANCE_BEGAN, detail="" if bump else "its topics changed")
            self.records.append(epoch_record(group.group_id, self.epoch, metadata_hash))
        if group.has_partition_metadata:
            self.records.append(partition_metadata_tombstone(group.group_id))

    def target(self, members: Mapping[str, ConsumerGroupMember], member: ConsumerGroupMember) -> tuple[int, Partitions]:
        """Return epoch and target of `member`, one of `members`; assign again if the targets are of an older epoch."""
        group = self.group
        if group.assignment_epoch >= self.epoch or not self._may_assign():
            return group.assignment_epoch, self._target_of(member)
        settings = self.settings
        name = group.preferred_assignor(members.values(), settings.assignors[0])
        assignor = ASSIGNORS.get(name) or ASSIGNORS[settings.assignors[0]]
        targets = assignor.assign(self._spec(members))
        for member_id in members:
            target = targets.get(member_id, {})
            if target != group.target.get(member_id):
                self.records.append(target_record(group.group_id, member_id, target))
        self.records.append(target_epoch_record(group.group_id, self.epoch, self.context.clock.wall_ms()))
        return self.epoch, targets.get(member.member_id, {})

    def reconcile(
        self,
        member: ConsumerGroupMember,
        target: tuple[int, Partitions],
        owned: Owned | None,
        *,
        subscription_changed: bool,
    ) -> ConsumerGroupMember:
        """Return the member, one step closer to its target. Raises BrokerError as `reconcile.reconcile`."""
        topics = self.topic_ids(member)
        wanted = Reconciliation(*target, topics=topics, owners=self.group.owners, owned=owned)
        updated = reconcile(member, wanted, subscription_changed=subscription_changed)
        if updated != member:  # a member that waits for others must not write a record with each heartbeat
            self.records.append(current_record(self.group.group_id, updated))
        return updated

    def fence(self, members: Iterable[ConsumerGroupMember]) -> None:
        """Remove members; the others get a new assignment."""
        group = self.group
        gone = {member.member_id: member for member in members}
        for member_id in gone:
            self.records += member_tombstones(group.group_id, member_id)
        left = [member for member_id, member in group.members.items() if member_id not in gone]
        users = {member.topic_regex for member in left}
        for regex in sorted(group.regexes.keys() - users):
            self.records.append(regex_record(group.group_id, regex, None))
        self.bump_epoch(left, bump=True)

    def topic_ids(self, member: ConsumerGroupMember) -> frozenset[bytes]:
        """Return the existing topics that a member reads, computed once for all members with the same subscription."""
        key = (member.topic_names, member.topic_regex)
        found = self._topic_ids.get(key)
        if found is None:
            topics = self.image.topics
            found = frozenset(topics[name].topic_id for name in topics_of(member, self.regexes) if name in topics)
            self._topic_ids[key] = found
        return found

    def _may_assign(self) -> bool:
        interval_ms, last_ms = self.settings.assignment_interval_ms, self.group.assignment_ms
        return not interval_ms or not last_ms or self.context.clock.wall_ms() >= last_ms + interval_ms

    def _target_of(self, member: ConsumerGroupMember) -> Partitions:
        """Return the present target; a static member that came back under a new id has the target of the old one."""
        group = self.group
        if member.member_id in group.target or member.instance_id is None:
            return group.target.get(member.member_id, {})
        return group.target.get(group.static_ids.get(member.instance_id, ""), {})

    def _spec(self, members: Mapping[str, ConsumerGroupMember]) -> GroupSpec:
        specs = {
            member_id: MemberSpec(self.topic_ids(member), self._target_of(member), member.instance_id)
            for member_id, member in members.items()
        }
        read = sorted(frozenset().union(*{spec.topics for spec in specs.values()}))
        names, topics = self.image.names, self.image.topics
        return GroupSpec(specs, {topic_id: len(topics[names[topic_id]].partitions) for topic_id in read})
