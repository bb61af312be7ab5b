"""ListGroups (16), DeleteGroups (42) and OffsetDelete (47): groups as their administrator sees them.

ListGroups: all groups, but for those that the filters of states and types leave out (in whatever case). A group that
only ever committed offsets is Empty, of no protocol type. COORDINATOR_LOAD_IN_PROGRESS until all logs are loaded; the
groups of one that cannot be are left out, as in Kafka.

DeleteGroups, by group: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP; without an error the group and its offsets are gone,
durably as the flush settings of `__consumer_offsets` say.

OffsetDelete: INVALID_GROUP_ID for an empty id, GROUP_ID_NOT_FOUND or NON_EMPTY_GROUP for all; by partition
GROUP_SUBSCRIBED_TO_TOPIC where a member reads the topic, UNKNOWN_TOPIC_OR_PARTITION where there is no such partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.network.deferred import Deferred
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.groups import (
    DeleteGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from barnabas.protocol.messages.groups.offset_delete import (
    OffsetDeletePartitionResult,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteTopicResult,
)

if TYPE_CHECKING:
    from barnabas.broker.groups.offsets.service import GroupOffsets
    from barnabas.broker.metadata.store import MetadataStore
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe


class ListGroupsHandler:
    """Serves ListGroups."""

    def __init__(self, offsets: GroupOffsets) -> None:
        self._offsets = offsets

    def __call__(self, session: Session, request: ListGroupsRequest) -> ListGroupsResponse:
        """The answer to one request; the contract is at the top of the file."""
        states = {each.lower() for each in request.states}
        types = {each.lower() for each in request.types}
        return ListGroupsResponse(
            [
                ListedGroup(group_id, group.protocol_type, group.state, group.group_type)
                for group_id, group in self._offsets.summaries().items()
                if (not states or group.state.lower() in states) and (not types or group.group_type.lower() in types)
            ]
        )


class DeleteGroupsHandler:
    """Serves DeleteGroups."""

    def __init__(self, offsets: GroupOffsets, probe: ApiProbe) -> None:
        self._offsets = offsets
        self._probe = probe

    def __call__(self, session: Session, request: DeleteGroupsRequest) -> Deferred[DeleteGroupsResponse]:
        """The answer to one request; the contract is at the top of the file."""
        answer: Deferred[DeleteGroupsResponse] = Deferred()
        results = [DeleteGroupResult(group_id) for group_id in dict.fromkeys(request.group_ids)]
        missing = len(results) + 1

        def settle(result: DeleteGroupResult | None, error: BrokerError | None) -> None:
            nonlocal missing
            if result is not None and error is not None:
                self._probe.count_error(error.code.name.lower())
                result.error = error.code
            missing -= 1
            if not missing:
                answer.resolve(DeleteGroupsResponse(results))

        for result in results:
            try:
                appended = self._offsets.delete_group(result.group_id)
            except BrokerError as error:
                settle(result, error)
            else:
                appended.then(lambda error, result=result: settle(result, error))  # type: ignore[misc]
        settle(None, None)
        return answer


class OffsetDeleteHandler:
    """Serves OffsetDelete."""

    def __init__(self, offsets: GroupOffsets, store: MetadataStore, probe: ApiProbe) -> None:
        self._offsets = offsets
        self._store = store
        self._probe = probe

    def __call__(self, session: Session, request: OffsetDeleteRequest) -> Deferred[OffsetDeleteResponse]:
        """The answer to one request; the contract is at the top of the file."""
        group_id, members = request.group_id, self._offsets.members
        if not group_id:
            raise BrokerError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        self._offsets.ensure_exists(group_id)
        has_members = members.summary(group_id) is not None
        if has_members:
            members.validate_offset_delete(group_id)
        topics, deleted = [], []
        for topic in request.topics:
            subscribed = has_members and members.is_subscribed(group_id, topic.name)
            results = []
            for number in topic.partitions:
                error = self._error_of(topic.name, number, subscribed=subscribed)
                results.append(OffsetDeletePartitionResult(number, error))
                if error is ErrorCode.NONE:
                    deleted.append((topic.name, number))
            topics.append(OffsetDeleteTopicResult(topic.name, results))
        answer: Deferred[OffsetDeleteResponse] = Deferred()
        self._offsets.delete(group_id, deleted).then(
            lambda error: answer.resolve(
                OffsetDeleteResponse(topics) if error is None else OffsetDeleteResponse(error=error.code)
            )
        )
        return answer

    def _error_of(self, topic: str, number: int, *, subscribed: bool) -> ErrorCode:
        error = ErrorCode.NONE
        if self._store.image.partition(topic, number) is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif subscribed:
            error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        if error is not ErrorCode.NONE:
            self._probe.count_error(error.name.lower())
        return error
