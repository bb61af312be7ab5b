"""ListGroups (key 16), DeleteGroups (42) and OffsetDelete (47): the administration of groups.

ListGroups: all groups that the client may DESCRIBE, or all with DESCRIBE on the cluster, that match the filters of
states and types (case-insensitive). A group that never had a member and only committed offsets is Empty, without a
protocol type. COORDINATOR_LOAD_IN_PROGRESS until all logs are loaded; groups whose log cannot be loaded are left out,
as in Kafka.

DeleteGroups, for each group: GROUP_AUTHORIZATION_FAILED if the client may not DELETE it, GROUP_ID_NOT_FOUND or
NON_EMPTY_GROUP. Without an error the group and its offsets are deleted, as durably as the flush settings of
`__consumer_offsets` demand. Of a share group the share coordinator deletes the states first; its error is the group's.

OffsetDelete, for the request: GROUP_AUTHORIZATION_FAILED if the client may not DELETE the group, INVALID_GROUP_ID for
an empty id, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP. For each partition: TOPIC_AUTHORIZATION_FAILED if the client may not
READ the topic, GROUP_SUBSCRIBED_TO_TOPIC if a member reads the topic, UNKNOWN_TOPIC_OR_PARTITION if it does not exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.handlers.authorization import denial, denied_names, ensure_allowed, is_allowed, is_cluster_allowed
from barnabas.broker.handlers.turns import Turns, denied_in_turns, in_turns, in_turns_then_deferred
from barnabas.broker.network.deferred import Deferred
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
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
from barnabas.protocol.messages.security.resources import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from barnabas.broker.coordinator_log.log import Appended
    from barnabas.broker.groups.offsets.service import GroupOffsets
    from barnabas.broker.groups.registry import GroupRegistry
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe


class ListGroupsHandler:
    """Serves ListGroups."""

    def __init__(self, offsets: GroupOffsets) -> None:
        self._offsets = offsets

    def __call__(
        self, session: Session, request: ListGroupsRequest
    ) -> ListGroupsResponse | Coroutine[Any, Any, ListGroupsResponse]:
        """Answer one ListGroups request as the module docstring specifies; with many groups in several turns."""
        return in_turns(self._list(session, request))

    async def _list(self, session: Session, request: ListGroupsRequest) -> ListGroupsResponse:
        turns = Turns()
        states = {each.lower() for each in request.states}
        types = {each.lower() for each in request.types}
        api, kind = ApiKey.LIST_GROUPS, ResourceType.GROUP
        lists_all = is_cluster_allowed(session, Operation.DESCRIBE, api, log_denied=False)
        listed = []
        for group_id, group in self._offsets.summaries().items():
            if turns.is_over:
                await turns.next()
            if (states and group.state.value.lower() not in states) or (
                types and group.group_type.value.lower() not in types
            ):
                continue
            if lists_all or is_allowed(session, Operation.DESCRIBE, kind, group_id, api, log_denied=False):
                listed.append(
                    ListedGroup(
                        group_id=group_id,
                        protocol_type=group.protocol_type,
                        state=group.state.value,
                        type=group.group_type.value.lower(),
                    )
                )
        return ListGroupsResponse(groups=listed)


class DeleteGroupsHandler:
    """Serves DeleteGroups. `delete` begins to delete one group, and raises BrokerError if it may not be deleted."""

    def __init__(self, delete: Callable[[str], Appended], probe: ApiProbe) -> None:
        self._delete = delete
        self._probe = probe

    def __call__(
        self, session: Session, request: DeleteGroupsRequest
    ) -> DeleteGroupsResponse | Deferred[DeleteGroupsResponse] | Coroutine[Any, Any, DeleteGroupsResponse]:
        """Answer one DeleteGroups request as the module docstring specifies; of many groups in several turns."""
        return in_turns_then_deferred(self._delete_all(session, request))

    async def _delete_all(
        self, session: Session, request: DeleteGroupsRequest
    ) -> DeleteGroupsResponse | Deferred[DeleteGroupsResponse]:
        turns = Turns()
        answer: Deferred[DeleteGroupsResponse] = Deferred()
        results = [DeleteGroupResult(group_id=group_id) for group_id in dict.fromkeys(request.group_ids)]
        missing = len(results) + 1
        api = ApiKey.DELETE_GROUPS
        denied = await denied_in_turns(turns, session, Operation.DELETE, ResourceType.GROUP, request.group_ids, api)

        def settle(result: DeleteGroupResult | None, error: BrokerError | None) -> None:
            nonlocal missing
            if result is not None and error is not None:
                self._probe.count_error(error.code.name.lower())
                result.error = error.code
            missing -= 1
            if not missing:
                answer.resolve(DeleteGroupsResponse(results=results))

        for result in results:
            if turns.is_over:
                await turns.next()
            try:
                if result.group_id in denied:
                    raise denial(ResourceType.GROUP)
                appended = self._delete(result.group_id)
            except BrokerError as error:
                settle(result, error)
            else:
                appended.then(lambda error, result=result: settle(result, error))  # type: ignore[misc]
        settle(None, None)
        return answer


class OffsetDeleteHandler:
    """Serves OffsetDelete."""

    def __init__(self, offsets: GroupOffsets, registry: GroupRegistry, store: MetadataView, probe: ApiProbe) -> None:
        self._offsets = offsets
        self._registry = registry
        self._store = store
        self._probe = probe

    def __call__(self, session: Session, request: OffsetDeleteRequest) -> Deferred[OffsetDeleteResponse]:
        """Answer one OffsetDelete request as the module docstring specifies."""
        group_id = request.group_id
        ensure_allowed(session, Operation.DELETE, ResourceType.GROUP, group_id, ApiKey.OFFSET_DELETE)
        topic_names = (topic.name for topic in request.topics)
        denied = denied_names(session, Operation.READ, ResourceType.TOPIC, topic_names, ApiKey.OFFSET_DELETE)
        if not group_id:
            raise BrokerError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        self._offsets.ensure_exists(group_id)
        group = self._registry.get(group_id)
        if group is not None:
            group.validate_offset_delete()
        topics, deleted = [], []
        for topic in request.topics:
            subscribed = group is not None and group.is_subscribed(topic.name)
            results = []
            for number in [each.partition for each in topic.partitions]:
                if topic.name in denied:
                    error = self._counted(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                else:
                    error = self._error_of(topic.name, number, subscribed=subscribed)
                results.append(OffsetDeletePartitionResult(partition=number, error=error))
                if error is ErrorCode.NONE:
                    deleted.append((topic.name, number))
            topics.append(OffsetDeleteTopicResult(name=topic.name, partitions=results))
        answer: Deferred[OffsetDeleteResponse] = Deferred()
        self._offsets.delete(group_id, deleted).then(
            lambda error: answer.resolve(
                OffsetDeleteResponse(topics=topics) if error is None else OffsetDeleteResponse(error=error.code)
            )
        )
        return answer

    def _error_of(self, topic: str, number: int, *, subscribed: bool) -> ErrorCode:
        error = ErrorCode.NONE
        if self._store.image.partition(topic, number) is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif subscribed:
            error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        return self._counted(error)

    def _counted(self, error: ErrorCode) -> ErrorCode:
        if error is not ErrorCode.NONE:
            self._probe.count_error(error.name.lower())
        return error
