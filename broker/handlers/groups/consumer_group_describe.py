"""ConsumerGroupDescribe (key 69): consumer groups with their members, and their current and target assignments.

GROUP_ID_NOT_FOUND for an unknown group, and for a classic one, which DescribeGroups (15) describes; UNSUPPORTED_VERSION
as in ConsumerGroupHeartbeat. GROUP_AUTHORIZATION_FAILED for a group that the client may not DESCRIBE, and
TOPIC_AUTHORIZATION_FAILED, without its members, for one that is assigned a topic that it may not DESCRIBE. A member's
current assignment includes the partitions that it still has to give up. Differs from Kafka: INVALID_REQUEST for each
occurrence of a group that is listed more than ten times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.handlers.authorization import denial, group_operations, is_allowed
from barnabas.broker.handlers.groups.consumer_group_heartbeat import ensure_enabled
from barnabas.broker.handlers.repetitions import DESCRIBED_MAX, repeated, repetition_error
from barnabas.broker.handlers.turns import Turns, denied_in_turns, in_turns
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.consumer_group_describe import (
    CLASSIC_MEMBER,
    CONSUMER_MEMBER,
    AssignedTopic,
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescription,
    ConsumerGroupMemberDescription,
)
from barnabas.protocol.messages.security.resources import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping

    from barnabas.broker.groups.consumer.group import ConsumerGroup
    from barnabas.broker.groups.consumer.groups import ConsumerGroups
    from barnabas.broker.groups.consumer.member import ConsumerGroupMember
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe


class ConsumerGroupDescribeHandler:
    """Serves ConsumerGroupDescribe."""

    def __init__(self, groups: ConsumerGroups, store: MetadataView, probe: ApiProbe) -> None:
        self._groups = groups
        self._store = store
        self._probe = probe

    def __call__(
        self, session: Session, request: ConsumerGroupDescribeRequest
    ) -> ConsumerGroupDescribeResponse | Coroutine[Any, Any, ConsumerGroupDescribeResponse]:
        """Answer one ConsumerGroupDescribe request as the module docstring specifies; of many in several turns."""
        return in_turns(self._describe_all(session, request))

    async def _describe_all(
        self, session: Session, request: ConsumerGroupDescribeRequest
    ) -> ConsumerGroupDescribeResponse:
        turns = Turns()
        ensure_enabled(self._groups)
        refused = repeated(request.group_ids, DESCRIBED_MAX)
        groups = []
        for group_id in request.group_ids:
            if turns.is_over:
                await turns.next()
            group = self._describe_allowed(session, group_id, is_repeated=group_id in refused)
            if request.include_authorized_operations and not group.error:
                group.authorized_operations = group_operations(session, group_id)
            groups.append(group)
        if session.access is not None:
            assigned = [_assigned_topics(each) for each in groups]
            names = sorted(set().union(*assigned))
            api = ApiKey.CONSUMER_GROUP_DESCRIBE
            denied = await denied_in_turns(turns, session, Operation.DESCRIBE, ResourceType.TOPIC, names, api)
            groups = [
                self._hide(each) if topics & denied else each for each, topics in zip(groups, assigned, strict=True)
            ]
        return ConsumerGroupDescribeResponse(groups=groups)

    def _describe_allowed(self, session: Session, group_id: str, *, is_repeated: bool) -> ConsumerGroupDescription:
        api = ApiKey.CONSUMER_GROUP_DESCRIBE
        if is_allowed(session, Operation.DESCRIBE, ResourceType.GROUP, group_id, api):
            return self._describe(group_id, is_repeated=is_repeated)
        return self._deny(group_id)

    def _deny(self, group_id: str) -> ConsumerGroupDescription:
        code = denial(ResourceType.GROUP).code
        self._probe.count_error(code.name.lower())
        return ConsumerGroupDescription(group_id=group_id, error=code)

    def _hide(self, group: ConsumerGroupDescription) -> ConsumerGroupDescription:
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        self._probe.count_error(code.name.lower())
        message = "The group has described topic(s) that the client is not authorized to describe."
        return ConsumerGroupDescription(group_id=group.group_id, error=code, message=message)

    def _describe(self, group_id: str, *, is_repeated: bool) -> ConsumerGroupDescription:
        try:
            if is_repeated:
                raise repetition_error("group", DESCRIBED_MAX)
            if not group_id:
                raise BrokerError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
            self._groups.ensure_serving(group_id)
            group = self._groups.get(group_id)
            if group is None:
                raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no consumer group {printable(group_id)}")
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            return ConsumerGroupDescription(group_id=group_id, error=error.code, message=error.message)
        members = group.members.values()
        return ConsumerGroupDescription(
            group_id=group_id,
            state=group.state.value,
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            assignor=group.preferred_assignor(members, self._groups.default_assignor),
            members=[self._member(group, member) for member in members],
        )

    def _member(self, group: ConsumerGroup, member: ConsumerGroupMember) -> ConsumerGroupMemberDescription:
        has: dict[bytes, set[int]] = {}
        for topics in (member.assigned, member.pending_revocation):
            for topic_id, epochs in topics.items():
                has.setdefault(topic_id, set()).update(epochs)
        return ConsumerGroupMemberDescription(
            member_id=member.member_id,
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            member_epoch=member.member_epoch,
            client_id=member.client_id,
            client_host=member.client_host,
            topic_names=sorted(member.topic_names),
            topic_regex=member.topic_regex or None,
            assignment=self._assignment(has),
            target=self._assignment(group.target.get(member.member_id, {})),
            member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
        )

    def _assignment(self, topics: Mapping[bytes, Iterable[int]]) -> Assignment:
        """Leave out deleted topics."""
        names = self._store.image.names
        return Assignment(
            topics=[
                AssignedTopic(topic_id=topic_id, topic=names[topic_id], partitions=sorted(numbers))
                for topic_id, numbers in topics.items()
                if topic_id in names
            ]
        )


def _assigned_topics(group: ConsumerGroupDescription) -> set[str]:
    """Return the names of the topics in the members' current and target assignments."""
    return {
        topic.topic for member in group.members for each in (member.assignment, member.target) for topic in each.topics
    }
