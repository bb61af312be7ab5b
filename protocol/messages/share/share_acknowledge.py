"""ShareAcknowledge (key 79): what a member of a share group made of the records that it acquired.

Version 2 adds RENEW and the time of locks (KIP-1222).
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Error, Int8, Int32, Int64, Message, NullableString, String, Uuid


class CurrentLeader(Struct):
    """A partition's leader, where the error says that this broker is none."""

    node_id: Int32 = 0
    leader_epoch: Int32 = 0


class AcknowledgedPartition(Struct):
    """The result for one partition."""

    partition: Int32
    error: Error = ErrorCode.NONE
    message: Message = None
    leader: CurrentLeader = CurrentLeader()


class AcknowledgedTopic(Struct):
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: Sequence[AcknowledgedPartition]


class NodeEndpoint(Struct):
    """Address of a leader."""

    node_id: Int32
    host: String
    port: Int32
    rack: NullableString = None


class ShareAcknowledgeResponse(Struct, flexible=0):
    """`lock_timeout_ms`: how long renewed records are locked. `nodes`: other leaders; a single node has none."""

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    message: Message = None
    lock_timeout_ms: Int32 = since(2, default=0)
    topics: Sequence[AcknowledgedTopic] = ()
    nodes: Sequence[NodeEndpoint] = ()


class AcknowledgementBatch(Struct):
    """`types`: one for all offsets, or one for each: 0 gap, 1 accept, 2 release, 3 reject, 4 renew."""

    first_offset: Int64
    last_offset: Int64
    types: Sequence[Int8]


class AcknowledgePartition(Struct):
    """The acknowledgements of one partition."""

    partition: Int32
    batches: Sequence[AcknowledgementBatch]


class AcknowledgeTopic(Struct):
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: Sequence[AcknowledgePartition]


class ShareAcknowledgeRequest(Request[ShareAcknowledgeResponse], api=ApiKey.SHARE_ACKNOWLEDGE, flexible=0):
    """A request within a share session."""

    group_id: NullableString = None
    member_id: NullableString
    session_epoch: Int32
    is_renewal: Bool = since(2, default=False)
    topics: Sequence[AcknowledgeTopic]

    @property
    def may_renew(self) -> bool:
        """Whether the version has acknowledgements of the type RENEW."""
        return self.version >= 2

    def refused(self, code: ErrorCode, message: str) -> ShareAcknowledgeResponse:
        """The code for the whole."""
        return ShareAcknowledgeResponse(error=code, message=message)
