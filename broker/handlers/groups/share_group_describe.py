"""ShareGroupDescribe (key 77): share groups with their members and assignments.

UNSUPPORTED_VERSION while share.version is 0. For each group: GROUP_AUTHORIZATION_FAILED if the client may not DESCRIBE
it, INVALID_GROUP_ID for an empty id, GROUP_ID_NOT_FOUND for an unknown group and for one of another protocol;
TOPIC_AUTHORIZATION_FAILED, without its members, for one that is assigned a topic that the client may not DESCRIBE.
Differs from Kafka: INVALID_REQUEST for each occurrence of a group that is listed more than ten times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.handlers.authorization import denial, group_operations, is_allowed
from barnabas.broker.handlers.repetitions import DESCRIBED_MAX, repeated, repetition_error
from barnabas.broker.handlers.turns import Turns, denied_in_turns, in_turns
from barnabas.broker.share.feature import ensure_share_groups
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.consumer_group_describe import AssignedTopic, Assignment
from barnabas.protocol.messages.groups.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupDescription,
    ShareGroupMemberDescription,
)
from barnabas.protocol.messages.security.resources import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from barnabas.broker.groups.share.groups import ShareGroups
    from barnabas.broker.groups.share.member import ShareGroupMember
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe


class ShareGroupDescribeHandler:
    """Serves ShareGroupDescribe."""

    def __init__(self, groups: ShareGroups, store: MetadataView, probe: ApiProbe) -> None:
        self._groups = groups
        self._store = store
        self._probe = probe

    def __call__(
        self, session: Session, request: ShareGroupDescribeRequest
    ) -> ShareGroupDescribeResponse | Coroutine[Any, Any, ShareGroupDescribeResponse]:
        """Answer one ShareGroupDescribe request as the module docstring specifies; of many in several turns."""
        ensure_share_groups(self._store.image)
        return in_turns(self._describe_all(session, request))

    async def _describe_all(self, session: Session, request: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
        turns = Turns()
        refused = repeated(request.group_ids, DESCRIBED_MAX)
        groups = []
        for group_id in request.group_ids:
            if turns.is_over:
                await turns.next()
            try:
                if not is_allowed(
                    session, Operation.DESCRIBE, ResourceType.GROUP, group_id, ApiKey.SHARE_GROUP_DESCRIBE
                ):
                    raise denial(ResourceType.GROUP)
                if group_id in refused:
                    raise repetition_error("group", DESCRIBED_MAX)
                group = self._describe(group_id)
            except BrokerError as error:
                group = self._refused(group_id, error)
            else:
                if request.include_authorized_operations:
                    group.authorized_operations = group_operations(session, group_id)
            groups.append(group)
        if session.access is not None:
            assigned = [_assigned_topics(each) for each in groups]
            names = sorted(set().union(*assigned))
            api = ApiKey.SHARE_GROUP_DESCRIBE
            denied = await denied_in_turns(turns, session, Operation.DESCRIBE, ResourceType.TOPIC, names, api)
            groups = [
                self._hidden(each.group_id) if topics & denied else each
                for each, topics in zip(groups, assigned, strict=True)
            ]
        return ShareGroupDescribeResponse(groups=groups)

    def _describe(self, group_id: str) -> ShareGroupDescription:
        if not group_id:
            raise BrokerError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        self._groups.ensure_serving(group_id)
        group = self._groups.existing(group_id)
        return ShareGroupDescription(
            group_id=group_id,
            state=group.state.value,
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            assignor=self._groups.assignor,
            members=[self._member(member) for member in group.members.values()],
        )

    def _member(self, member: ShareGroupMember) -> ShareGroupMemberDescription:
        names = self._store.image.names
        topics = [
            AssignedTopic(topic_id=topic_id, topic=names[topic_id], partitions=sorted(numbers))
            for topic_id, numbers in member.assigned.items()
            if topic_id in names
        ]
        return ShareGroupMemberDescription(
            member_id=member.member_id,
            rack_id=member.rack_id,
            member_epoch=member.member_epoch,
            client_id=member.client_id,
            client_host=member.client_host,
            topic_names=sorted(member.topic_names),
            assignment=Assignment(topics=topics),
        )

    def _hidden(self, group_id: str) -> ShareGroupDescription:
        message = "The group has described topic(s) that the client is not authorized to describe."
        return self._refused(group_id, BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, message))

    def _refused(self, group_id: str, error: BrokerError) -> ShareGroupDescription:
        self._probe.count_error(error.code.name.lower())
        return ShareGroupDescription(group_id=group_id, error=error.code, message=error.message)


def _assigned_topics(group: ShareGroupDescription) -> set[str]:
    """Return the names of the topics in the members' assignments."""
    return {topic.topic for member in group.members for topic in member.assignment.topics}
