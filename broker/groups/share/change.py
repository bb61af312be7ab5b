"""One change of a share group: its records so far, and the epoch and target assignments that they lead to.

A change does not touch the group: its records do, once they are in the log. So a change that is refused halfway, or
whose records cannot be written, leaves no trace. Source: Kafka's GroupMetadataManager (shareGroupHeartbeat and what it
calls).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.broker.groups.assignors import simple_assignor
from barnabas.broker.groups.expressions.topics_hash import group_hash
from barnabas.broker.groups.history import EventMember
from barnabas.broker.groups.share import states as share_states
from barnabas.broker.groups.share.member import STABLE, ShareGroupMember
from barnabas.broker.groups.share.records import (
    current_record,
    epoch_record,
    member_tombstones,
    states_record,
    target_epoch_record,
    target_record,
)
from barnabas.protocol.messages.groups.explain_group import GroupEventKind

if TYPE_CHECKING:
    from barnabas.broker.groups.log.records import GroupRecord
    from barnabas.broker.groups.share.context import ShareContext
    from barnabas.broker.groups.share.group import ShareGroup
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.protocol.groups.consumer_group_values import Partitions


class ShareGroupChange:
    """The records of one request or event, in order.

    `initializes`: the partitions whose state the share coordinator has to create once the records are written, in the
    group's epoch `epoch`.
    """

    def __init__(self, group: ShareGroup, context: ShareContext) -> None:
        self.group = group
        self.context = context
        self.image: MetadataImage = context.image()
        self.settings = context.settings_of(group.group_id)
        self.records: list[GroupRecord] = []
        self.epoch = group.epoch
        self.initializes: dict[bytes, frozenset[int]] = {}
        self.events: list[tuple[GroupEventKind, EventMember | None, str]] = []
        """What the records mean for the group's history."""

    def report(self, kind: GroupEventKind, member: ShareGroupMember | None = None, detail: str = "") -> None:
        """Add an event to the group's history, once the records are replayed."""
        about = None if member is None else EventMember(member.member_id, member.client_id, member.client_host)
        self.events.append((kind, about, detail))

    def bump_epoch(self, names: frozenset[str], *, bump: bool, why: str = "") -> bool:
        """Begin the next epoch if `bump` is set, or if the topics `names` changed; return whether it began."""
        group = self.group
        metadata_hash = group_hash(names, self.image)
        if not bump and metadata_hash == group.metadata_hash:
            return False
        self.epoch += 1
        self.report(GroupEventKind.REBALANCE_BEGAN, detail=why if bump else "its topics changed")
        self.records.append(epoch_record(group.group_id, self.epoch, metadata_hash))
        return True

    def target(self, members: Mapping[str, ShareGroupMember], member: ShareGroupMember) -> tuple[int, Partitions]:
        """Return epoch and target of `member`, one of `members`; assign again if the targets are of an older epoch."""
        group = self.group
        if group.assignment_epoch >= self.epoch or not self._may_assign():
            return group.assignment_epoch, group.target.get(member.member_id, {})
        topics = self.image.topics
        specs = {
            member_id: simple_assignor.ShareMemberSpec(
                frozenset(topics[name].topic_id for name in each.topic_names if name in topics),
                group.target.get(member_id, {}),
            )
            for member_id, each in members.items()
        }
        same_topics = len({each.topic_names for each in members.values()}) == 1
        targets = simple_assignor.assign(specs, self._assignable(), same_topics=same_topics)
        for member_id in members:
            target = targets.get(member_id, {})
            if target != group.target.get(member_id):
                self.records.append(target_record(group.group_id, member_id, target))
        self.records.append(target_epoch_record(group.group_id, self.epoch, self.context.clock.wall_ms()))
        return self.epoch, targets.get(member.member_id, {})

    def reconcile(
        self, member: ShareGroupMember, target: tuple[int, Partitions], *, subscription_changed: bool
    ) -> ShareGroupMember:
        """Return the member in the target's epoch, with the partitions of the target that it reads."""
        epoch, partitions = target
        enters = epoch != member.member_epoch
        if not (enters or subscription_changed):
            return member
        topics = self.image.topics
        read = {topics[name].topic_id for name in member.topic_names if name in topics}
        assigned = {topic_id: numbers for topic_id, numbers in partitions.items() if topic_id in read}
        updated = replace(member, assigned=assigned)
        if enters:
            updated = replace(updated, member_epoch=epoch, previous_member_epoch=member.member_epoch, state=STABLE)
        if updated != member:
            self.records.append(current_record(self.group.group_id, updated))
        return updated

    def initialize(self, names: frozenset[str]) -> None:
        """Begin to initialize the state of the topics' partitions that have none. Not while that is postponed."""
        group = self.group
        retry_s = self.settings.initialize_retry_interval_ms / 1000
        asks_again = self.context.clock.now() - group.states_since >= retry_s
        topics = share_states.missing(group.states, names, self.image, asks_again=asks_again)
        if topics:
            self.initializes = share_states.partitions_of(topics)
            after = share_states.with_initializing(group.states, topics, self.image)
            self.records.append(states_record(group.group_id, after))

    def fence(self, member: ShareGroupMember) -> None:
        """Remove a member; the others get a new assignment with their next heartbeats."""
        group = self.group
        self.records += member_tombstones(group.group_id, member.member_id)
        left = (each.topic_names for each in group.members.values() if each.member_id != member.member_id)
        self.bump_epoch(frozenset().union(*left), bump=True)

    def _may_assign(self) -> bool:
        interval_ms, last_ms = self.settings.assignment_interval_ms, self.group.assignment_ms
        return not interval_ms or not last_ms or self.context.clock.wall_ms() >= last_ms + interval_ms

    def _assignable(self) -> Partitions:
        """Return the partitions that exist and have state."""
        found = {}
        for topic_id, topic in self.group.states.initialized.items():
            existing = self.image.topic_by_id(topic_id)
            if existing is not None:
                found[topic_id] = topic.partitions & existing.partitions.keys()
        return found
