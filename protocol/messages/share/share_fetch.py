"""ShareFetch (key 78): records for a member of a share group, and acknowledgements of those it got before.

Version 2 adds the mode of acquisition (KIP-1206) and RENEW (KIP-1222).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.share.share_acknowledge import AcknowledgeTopic, CurrentLeader, NodeEndpoint
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.pieces import NO_RECORDS
from barnabas.protocol.wire.structures import Request, StoredAnswer, Struct
from barnabas.protocol.wire.types import (
    Bool,
    Error,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    NullableString,
    StoredRecords,
    Uuid,
)

FINAL_EPOCH: Final = -1
"""Share session epoch of the request that closes the session."""

INITIAL_EPOCH: Final = 0
"""Share session epoch of the request that opens a session."""

BATCH_OPTIMIZED: Final = 0
"""Whole batches are acquired, so `max_records` may be exceeded."""

RECORD_LIMIT: Final = 1
"""At most `max_records` are acquired."""

RENEW_FROM: Final = 2
"""The first version with acknowledgements of the type RENEW."""


class AcquiredRecords(Struct, kw_only=False):
    """Offsets that the member now has a lock on, and the number of their delivery."""

    first_offset: Int64
    last_offset: Int64
    delivery_count: Int16


class ShareFetchPartition(Struct):
    """`records` has whole batches, which may have more records than `acquired`."""

    partition: Int32
    error: Error = ErrorCode.NONE
    message: Message = None
    acknowledge_error: Error = ErrorCode.NONE
    acknowledge_message: Message = None
    leader: CurrentLeader = CurrentLeader()
    records: StoredRecords = NO_RECORDS
    acquired: Sequence[AcquiredRecords] = ()

    @property
    def data(self) -> memoryview:
        """The records of an answer that was read."""
        return memoryview(cast(bytes, self.records))


class ShareFetchTopic(Struct):
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: Sequence[ShareFetchPartition]


class ShareFetchResponse(StoredAnswer, flexible=0):
    """`error` is that of the whole, for example of its session. `lock_timeout_ms`: how long records are locked.

    `nodes`: addresses of other leaders; a single node has none.
    """

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    message: Message = None
    lock_timeout_ms: Int32 = 0
    topics: Sequence[ShareFetchTopic] = ()
    nodes: Sequence[NodeEndpoint] = ()


class ForgottenTopic(Struct):
    """Partitions that leave the session."""

    topic_id: Uuid
    partitions: Sequence[Int32]


class ShareFetchRequest(Request[ShareFetchResponse], api=ApiKey.SHARE_FETCH, flexible=0):
    """`topics`: partitions that join the session, or that have acknowledgements.

    `batch_size`: the best number of records for a batch of acquired records.
    """

    group_id: NullableString = None
    member_id: NullableString
    session_epoch: Int32
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32
    max_records: Int32
    batch_size: Int32
    acquire_mode: Int8 = since(2, default=BATCH_OPTIMIZED)
    is_renewal: Bool = since(RENEW_FROM, default=False)
    topics: Sequence[AcknowledgeTopic]
    forgotten: Sequence[ForgottenTopic] = ()

    @property
    def may_renew(self) -> bool:
        """Whether the version has acknowledgements of the type RENEW."""
        return self.version >= RENEW_FROM

    def refused(self, code: ErrorCode, message: str) -> ShareFetchResponse:
        """The code for the whole."""
        return ShareFetchResponse(error=code, message=message)
