"""OffsetCommit (key 8): commits a group's offsets; `groups.offsets.service` has the order of the checks.

Before those: the client may READ the group (GROUP_AUTHORIZATION_FAILED for every partition), and READ the topic
(TOPIC_AUTHORIZATION_FAILED, after UNKNOWN_TOPIC_ID and before UNKNOWN_TOPIC_OR_PARTITION).

A consumer that assigned its partitions itself commits with generation -1 and without a member id, to a group that has
no members at the time. An offset answered without an error is in `__consumer_offsets`, as durable as its flush settings
demand. An error of the whole request (the log is being loaded, the member is unknown) is the error of every partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.offsets.checks import topic_names
from barnabas.broker.handlers.authorization import denied_names, ensure_allowed
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse, refuse_commit
from barnabas.protocol.messages.security.resources import Operation, ResourceType

if TYPE_CHECKING:
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
    ) -> OffsetCommitResponse | Deferred[OffsetCommitResponse]:
        """Answer one OffsetCommit request as the module docstring specifies."""
        api = ApiKey.OFFSET_COMMIT
        try:
            ensure_allowed(session, Operation.READ, ResourceType.GROUP, request.group_id, api)
            denied: frozenset[str] = frozenset()
            if session.access is not None:
                names = topic_names(self._store.image, request.topics)
                denied = denied_names(session, Operation.READ, ResourceType.TOPIC, names, api)
            response = self._offsets.commit(request, denied)
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            return refuse_commit(request, error.code)
        if isinstance(response, OffsetCommitResponse):
            self._count(response)
        return response

    def _count(self, response: OffsetCommitResponse) -> None:
        for topic in response.topics:
            for each in topic.partitions:
                if each.error is not ErrorCode.NONE:
                    self._probe.count_error(each.error.name.lower())
