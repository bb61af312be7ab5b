"""OffsetCommit (key 8): commits a group's offsets; `groups.offsets.service` has the order of the checks.

Before those: the client may READ the group (GROUP_AUTHORIZATION_FAILED for every partition), and READ the topic
(TOPIC_AUTHORIZATION_FAILED, after UNKNOWN_TOPIC_ID and before UNKNOWN_TOPIC_OR_PARTITION).

A consumer that assigned its partitions itself commits with generation -1 and without a member id, to a group that has
no members at the time. An offset answered without an error is in `__consumer_offsets`, as durable as its flush settings
demand. An error of the whole request (the log is being loaded, the member is unknown) is the error of every partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.groups.offsets.checks import topic_names
from barnabas.broker.handlers.authorization import ensure_allowed
from barnabas.broker.handlers.turns import Turns, denied_in_turns, in_turns_then_deferred
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.protocol.messages.security.resources import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from barnabas.broker.groups.offsets.service import GroupOffsets
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.deferred import Deferred
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe


class OffsetCommitHandler:
    """Serves OffsetCommit."""

    def __init__(self, offsets: GroupOffsets, store: MetadataView, probe: ApiProbe) -> None:
        self._offsets = offsets
        self._store = store
        self._probe = probe

    def __call__(
        self, session: Session, request: OffsetCommitRequest
    ) -> OffsetCommitResponse | Deferred[OffsetCommitResponse] | Coroutine[Any, Any, OffsetCommitResponse]:
        """Answer one OffsetCommit request as the module docstring specifies."""
        if session.access is None:
            return self._commit(request, frozenset())
        try:
            ensure_allowed(session, Operation.READ, ResourceType.GROUP, request.group_id, ApiKey.OFFSET_COMMIT)
        except BrokerError as error:
            return self._refuse(request, error)
        return in_turns_then_deferred(self._commit_allowed(session, request))

    async def _commit_allowed(
        self, session: Session, request: OffsetCommitRequest
    ) -> OffsetCommitResponse | Deferred[OffsetCommitResponse]:
        """Check the permissions, in several turns if there are many, and commit in one."""
        names = topic_names(self._store.image, request.topics, by_id=request.is_by_id)
        api = ApiKey.OFFSET_COMMIT
        denied = await denied_in_turns(Turns(), session, Operation.READ, ResourceType.TOPIC, names, api)
        return self._commit(request, denied)

    def _commit(
        self, request: OffsetCommitRequest, denied: frozenset[str]
    ) -> OffsetCommitResponse | Deferred[OffsetCommitResponse]:
        try:
            response = self._offsets.commit(request, denied)
        except BrokerError as error:
            return self._refuse(request, error)
        if isinstance(response, OffsetCommitResponse):
            self._count(response)
        return response

    def _refuse(self, request: OffsetCommitRequest, error: BrokerError) -> OffsetCommitResponse:
        self._probe.count_error(error.code.name.lower())
        return request.refused(error.code)

    def _count(self, response: OffsetCommitResponse) -> None:
        for topic in response.topics:
            for each in topic.partitions:
                if each.error is not ErrorCode.NONE:
                    self._probe.count_error(each.error.name.lower())
