"""OffsetCommit (key 8): stores how far a group has come; the order of checks is that of `groups.offsets_service`.

A consumer that assigned its partitions itself commits with generation -1 and without a member id, to a group that has
no members at the time. What is answered without an error is in `__consumer_offsets`, as durable as its flush settings
say. An error of the whole request (the log is being loaded, the member is not one of the group) is every partition's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse, refuse_commit

if TYPE_CHECKING:
    from barnabas.broker.groups.offsets.service import GroupOffsets
    from barnabas.broker.network.deferred import Deferred
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe


class OffsetCommitHandler:
    """Serves OffsetCommit."""

    def __init__(self, offsets: GroupOffsets, probe: ApiProbe) -> None:
        self._offsets = offsets
        self._probe = probe

    def __call__(
        self, session: Session, request: OffsetCommitRequest
    ) -> OffsetCommitResponse | Deferred[OffsetCommitResponse]:
        """The answer to one request; the contract is at the top of the file."""
        try:
            response = self._offsets.commit(request)
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
