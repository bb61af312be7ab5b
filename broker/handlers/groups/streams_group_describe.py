"""StreamsGroupDescribe (key 89): streams groups with their topology and members, and the members' tasks.

GROUP_ID_NOT_FOUND for an unknown group, and for one of another type; UNSUPPORTED_VERSION as in StreamsGroupHeartbeat.
GROUP_AUTHORIZATION_FAILED for a group that the client may not DESCRIBE, and TOPIC_AUTHORIZATION_FAILED, without members
and topology, for one whose topology has a topic that it may not DESCRIBE. Once all topics of the topology exist, its
internal topics have their partition counts. Differs from Kafka: INVALID_REQUEST for each occurrence of a group that is
listed more than ten times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.groups.streams.tasks import NO_TASKS, TaskSet, without_epochs
from barnabas.broker.handlers.authorization import denial, group_operations, is_allowed
from barnabas.broker.handlers.groups.streams_group_heartbeat import ensure_enabled
from barnabas.broker.handlers.repetitions import DESCRIBED_MAX, repeated, repetition_error
from barnabas.broker.handlers.turns import Turns, denied_in_turns, in_turns
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.streams_group_describe import (
    DescribedSubtopology,
    DescribedTopology,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupDescription,
    StreamsGroupMemberDescription,
    TaskAssignment,
)
from barnabas.protocol.messages.groups.streams_topology import task_ids
from barnabas.protocol.messages.security.resources import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from barnabas.broker.groups.streams.group import StreamsGroup
    from barnabas.broker.groups.streams.groups import StreamsGroups
    from barnabas.broker.groups.streams.member import StreamsGroupMember
    from barnabas.broker.groups.streams.topics.configured import ConfiguredSubtopology
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe
    from barnabas.protocol.messages.groups.streams_topology import Subtopology, TopicInfo

_API: Final = ApiKey.STREAMS_GROUP_DESCRIBE


class StreamsGroupDescribeHandler:
    """Serves StreamsGroupDescribe."""

    def __init__(self, groups: StreamsGroups, probe: ApiProbe) -> None:
        self._groups = groups
        self._probe = probe

    def __call__(
        self, session: Session, request: StreamsGroupDescribeRequest
    ) -> StreamsGroupDescribeResponse | Coroutine[Any, Any, StreamsGroupDescribeResponse]:
        """Answer one StreamsGroupDescribe request as the module docstring specifies; of many in several turns."""
        return in_turns(self._describe_all(session, request))

    async def _describe_all(
        self, session: Session, request: StreamsGroupDescribeRequest
    ) -> StreamsGroupDescribeResponse:
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
            topics = [_topics_of(each) for each in groups]
            names = sorted(set().union(*topics))
            denied = await denied_in_turns(turns, session, Operation.DESCRIBE, ResourceType.TOPIC, names, _API)
            groups = [self._hide(each) if found & denied else each for each, found in zip(groups, topics, strict=True)]
        return StreamsGroupDescribeResponse(groups=groups)

    def _describe_allowed(self, session: Session, group_id: str, *, is_repeated: bool) -> StreamsGroupDescription:
        if is_allowed(session, Operation.DESCRIBE, ResourceType.GROUP, group_id, _API):
            return self._describe(group_id, is_repeated=is_repeated)
        code = denial(ResourceType.GROUP).code
        self._probe.count_error(code.name.lower())
        return StreamsGroupDescription(group_id=group_id, error=code)

    def _hide(self, group: StreamsGroupDescription) -> StreamsGroupDescription:
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        self._probe.count_error(code.name.lower())
        message = "The described group uses topics that the client is not authorized to describe."
        return StreamsGroupDescription(group_id=group.group_id, error=code, message=message)

    def _describe(self, group_id: str, *, is_repeated: bool) -> StreamsGroupDescription:
        try:
            if is_repeated:
                raise repetition_error("group", DESCRIBED_MAX)
            if not group_id:
                raise BrokerError(ErrorCode.INVALID_GROUP_ID, "")
            self._groups.ensure_serving(group_id)
            group = self._groups.get(group_id)
            if group is None:
                raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {printable(group_id)} not found.")
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            return StreamsGroupDescription(group_id=group_id, error=error.code, message=error.message or None)
        return StreamsGroupDescription(
            group_id=group_id,
            state=group.state.value,
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            topology=_topology(group),
            members=[_member(group, member) for member in group.members.values()],
        )


def _topology(group: StreamsGroup) -> DescribedTopology | None:
    if group.configured is not None and group.configured.is_ready:
        found = group.configured.subtopologies
        return DescribedTopology(
            epoch=group.configured.epoch, subtopologies=[_subtopology(each, found[each]) for each in sorted(found)]
        )
    if group.topology is None:
        return None
    known = group.topology.subtopologies
    return DescribedTopology(
        epoch=group.topology.epoch, subtopologies=[_subtopology(each, known[each]) for each in sorted(known)]
    )


def _subtopology(subtopology_id: str, found: ConfiguredSubtopology | Subtopology) -> DescribedSubtopology:
    return DescribedSubtopology(
        subtopology_id=subtopology_id,
        source_topics=sorted(found.source_topics),
        repartition_sink_topics=sorted(found.repartition_sink_topics),
        changelog_topics=_by_name(found.changelog_topics),
        repartition_source_topics=_by_name(found.repartition_source_topics),
    )


def _by_name(topics: Sequence[TopicInfo]) -> list[TopicInfo]:
    return sorted(topics, key=lambda topic: topic.name)


def _member(group: StreamsGroup, member: StreamsGroupMember) -> StreamsGroupMemberDescription:
    held, target = member.assigned, group.target.get(member.member_id, NO_TASKS)
    return StreamsGroupMemberDescription(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=member.user_endpoint,
        client_tags=member.client_tags,
        assignment=_assignment(TaskSet(without_epochs(held.active), held.standby, held.warmup)),
        target=_assignment(target),
    )


def _assignment(tasks: TaskSet) -> TaskAssignment:
    return TaskAssignment(active=task_ids(tasks.active), standby=task_ids(tasks.standby), warmup=task_ids(tasks.warmup))


def _topics_of(group: StreamsGroupDescription) -> set[str]:
    """Return the names of the topics in a described topology."""
    if group.topology is None:
        return set()
    found: set[str] = set()
    for each in group.topology.subtopologies or ():
        internal = (*each.repartition_source_topics, *each.changelog_topics)
        found.update(each.source_topics, each.repartition_sink_topics, (topic.name for topic in internal))
    return found
