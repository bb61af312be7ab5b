"""ShareFetch (key 78): records for a member of a share group, and acknowledgements of those it got before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share.share_acknowledge import AcknowledgeTopic
from barnabas.protocol.wire.pieces import RecordsPart

FINAL_EPOCH = -1
"""Share session epoch of the request that closes the session."""

INITIAL_EPOCH = 0
"""Share session epoch of the request that opens a session."""

BATCH_OPTIMIZED = 0
"""Whole batches are acquired, so `max_records` may be exceeded."""

RECORD_LIMIT = 1
"""At most `max_records` are acquired."""


@dataclass(slots=True)
class ForgottenTopic:
    """Partitions that leave the session."""

    topic_id: bytes
    partitions: list[int]


@dataclass(slots=True)
class ShareFetchRequest:
    """`topics`: partitions that join the session, or that have acknowledgements.

    `batch_size`: the best number of records for a batch of acquired records.
    """

    group_id: str | None
    member_id: str | None
    session_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    topics: list[AcknowledgeTopic]
    forgotten: list[ForgottenTopic] = field(default_factory=list)
    acquire_mode: int = BATCH_OPTIMIZED
    is_renewal: bool = False
    may_renew: bool = False
    """Whether the version has acknowledgements of the type RENEW."""


@dataclass(slots=True)
class ShareFetchPartition:
    """`acquired`: first offset, last offset and delivery count of what the member now has a lock on."""

    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    acknowledge_error: ErrorCode = ErrorCode.NONE
    acknowledge_message: str | None = None
    leader: tuple[int, int] = (0, 0)
    records: RecordsPart | None = None
    acquired: Sequence[tuple[int, int, int]] = ()


@dataclass(slots=True)
class ShareFetchTopic:
    """Partitions of one topic."""

    topic_id: bytes
    partitions: list[ShareFetchPartition]


@dataclass(slots=True)
class ShareFetchResponse:
    """`lock_timeout_ms`: how long acquired records are locked."""

    topics: list[ShareFetchTopic]
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    lock_timeout_ms: int = 0
