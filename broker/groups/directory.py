"""Which groups there are, of either protocol, and who answers for each: the one door for requests about a group id.

    classic     `membership`: its clients assign, the broker passes on
    consumer    `consumer_groups`: the broker assigns

An id belongs to one group at a time. A consumer group without members makes room for a classic one, and the other way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.groups.consumer.offsets import CommitCheck, validate_commit, validate_fetch
from barnabas.broker.groups.group_records import GroupRecord
from barnabas.broker.groups.members import CONSUMER, EMPTY, SINCE_COMMIT, GroupSummary, OffsetExpiry
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.keys import GroupMetadataKey
from barnabas.protocol.groups.subscription import CONSUMER as CONSUMER_PROTOCOL
from barnabas.protocol.messages.groups.describe_groups import DescribedGroup
from barnabas.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.broker.groups.classic.joining import JoiningClient
    from barnabas.broker.groups.classic.membership import GroupMembership
    from barnabas.broker.groups.consumer.group import ConsumerGroup
    from barnabas.broker.groups.consumer.late_groups import LateConsumerGroups
    from barnabas.broker.groups.group_log import GroupLog
    from barnabas.protocol.groups.metadata import GroupMetadataValue

DEAD = "Dead"


class GroupDirectory:
    """Groups by id. In the event loop only."""

    def __init__(self, group_log: GroupLog, classic: GroupMembership, consumer: LateConsumerGroups) -> None:
        self._log = group_log
        self._classic = classic
        self._consumer = consumer

    # --- requests of the classic protocol

    def join(self, request: JoinGroupRequest, client: JoiningClient) -> Deferred[JoinGroupResponse]:
        """The answer comes with the group's next generation. Raises BrokerError."""
        group = self._consumer_group(request.group_id)
        if group is None:
            return self._classic.join(request, client)
        self._classic.ensure_within_limits(request, client)
        if group.state.value != EMPTY:
            return self._consumer.made().join(request, client)
        answer: Deferred[JoinGroupResponse] = Deferred()

        def cleared(error: BrokerError | None) -> None:
            try:
                if error is not None:
                    raise error
                self.join(request, client).then(answer.resolve)  # somebody else may have made it a group meanwhile
            except BrokerError as refused:
                answer.resolve(JoinGroupResponse(refused.code, request.member_id))

        self._log.append(request.group_id, self.tombstones(request.group_id)).then(cleared)
        return answer

    def sync(self, request: SyncGroupRequest) -> SyncGroupResponse | Deferred[SyncGroupResponse]:
        """The answer comes with the member's assignment. Raises BrokerError."""
        if self._consumer_group(request.group_id) is None:
            return self._classic.sync(request)
        return self._consumer.made().sync(request)

    def heartbeat(self, group_id: str, member_id: str, group_instance_id: str | None, generation: int) -> ErrorCode:
        """What the member is told. Raises BrokerError."""
        if self._consumer_group(group_id) is None:
            return self._classic.heartbeat(group_id, member_id, group_instance_id, generation)
        return self._consumer.made().classic_heartbeat(group_id, member_id, group_instance_id, generation)

    def leave(self, request: LeaveGroupRequest) -> LeaveGroupResponse | Deferred[LeaveGroupResponse]:
        """What became of each. Raises BrokerError."""
        if self._consumer_group(request.group_id) is None:
            return self._classic.leave(request)
        return self._consumer.made().leave(request)

    def describe(self, group_id: str) -> DescribedGroup | None:
        """A classic group; None: there is no group. Raises BrokerError while the group's records are being loaded."""
        if self._consumer.get(group_id) is None:
            return self._classic.describe(group_id)
        return DescribedGroup(
            group_id,
            DEAD,
            error=ErrorCode.GROUP_ID_NOT_FOUND,
            message=f"group {printable(group_id)} is not a classic group",
        )

    # --- what offsets ask

    def group_ids(self) -> Iterable[str]:
        """All groups that there are."""
        return [*self._classic.group_ids(), *self._consumer.group_ids()]

    def summary(self, group_id: str) -> GroupSummary | None:
        """None for a group that there is not."""
        group = self._consumer.get(group_id)
        if group is None:
            return self._classic.summary(group_id)
        return GroupSummary(group.state.value, CONSUMER_PROTOCOL, CONSUMER)

    def validate_offset_commit(
        self,
        group_id: str,
        *,
        member_id: str,
        group_instance_id: str | None,
        generation: int,
        knows_member_epochs: bool,
    ) -> CommitCheck | None:
        """What is left to check of each partition. Raises BrokerError where the member may not commit."""
        group = self._consumer.get(group_id)
        if group is not None:
            return validate_commit(group, member_id, generation, knows_member_epochs=knows_member_epochs)
        self._classic.validate_offset_commit(
            group_id, member_id=member_id, group_instance_id=group_instance_id, generation=generation
        )
        return None

    def validate_offset_fetch(self, group_id: str, *, member_id: str | None, member_epoch: int) -> None:
        """Raises BrokerError UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH, ILLEGAL_GENERATION."""
        group = self._consumer.get(group_id)
        if group is not None:
            validate_fetch(group, member_id, member_epoch)

    def validate_offset_delete(self, group_id: str) -> None:
        """Raises BrokerError NON_EMPTY_GROUP."""
        if self._consumer.get(group_id) is None:
            self._classic.validate_offset_delete(group_id)

    def validate_delete(self, group_id: str) -> None:
        """Raises BrokerError NON_EMPTY_GROUP."""
        group = self._consumer.get(group_id)
        if group is None:
            self._classic.validate_delete(group_id)
        elif group.members:
            raise BrokerError(
                ErrorCode.NON_EMPTY_GROUP, f"group {printable(group_id)} has {len(group.members)} members"
            )

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        """Whether a member reads the topic, or may."""
        group = self._consumer.get(group_id)
        return self._classic.is_subscribed(group_id, topic) if group is None else group.is_subscribed(topic)

    def offset_expiry(self, group_id: str) -> OffsetExpiry | None:
        """Of a consumer group, since the commits; topics that members read are left out anyway."""
        return SINCE_COMMIT if self._consumer.get(group_id) is not None else self._classic.offset_expiry(group_id)

    def tombstones(self, group_id: str) -> list[GroupRecord]:
        """What takes the group itself back."""
        if self._consumer.get(group_id) is None:
            return [GroupRecord(GroupMetadataKey(group_id), None)]
        return self._consumer.made().tombstones(group_id)

    # --- the log

    def load(self, group_id: str, value: GroupMetadataValue) -> None:
        """At start: a classic group."""
        self._classic.load(group_id, value)

    def load_consumer_groups(self, records: Sequence[GroupRecord]) -> None:
        """At start: the records of consumer groups, the newest of each key."""
        self._consumer.load(records)

    def unload(self, group_id: str) -> None:
        """A classic group is gone."""
        self._classic.unload(group_id)

    def forget(self, group_id: str) -> None:
        """The group's log is gone, whatever it was."""
        self._classic.unload(group_id)
        self._consumer.forget(group_id)

    def stop(self) -> None:
        """Send everybody who waits, and who comes from now on, to ask for the coordinator again."""
        self._classic.stop()
        self._consumer.stop()

    def _consumer_group(self, group_id: str) -> ConsumerGroup | None:
        group = self._consumer.get(group_id)
        if group is not None:
            self._consumer.made().ensure_serving(group_id)
        return group
