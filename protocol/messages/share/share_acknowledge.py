"""ShareAcknowledge (key 79): what a member of a share group made of the records that it acquired."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class AcknowledgementBatch:
    """`types`: one for all offsets, or one for each: 0 gap, 1 accept, 2 release, 3 reject, 4 renew."""

    first_offset: int
    last_offset: int
    types: list[int]


@dataclass(slots=True)
class AcknowledgePartition:
    """The acknowledgements of one partition."""

    partition: int
    batches: list[AcknowledgementBatch]


@dataclass(slots=True)
class AcknowledgeTopic:
    """Partitions of one topic."""

    topic_id: bytes
    partitions: list[AcknowledgePartition]


@dataclass(slots=True)
class ShareAcknowledgeRequest:
    """A request within a share session."""

    group_id: str | None
    member_id: str | None
    session_epoch: int
    topics: list[AcknowledgeTopic]
    is_renewal: bool = False
    may_renew: bool = False
    """Whether the version has acknowledgements of the type RENEW."""


@dataclass(slots=True)
class AcknowledgedPartition:
    """`leader`: node and epoch, where the error says that this broker is not the leader."""

    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    leader: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class AcknowledgedTopic:
    """Partitions of one topic."""

    topic_id: bytes
    partitions: list[AcknowledgedPartition]


@dataclass(slots=True)
class ShareAcknowledgeResponse:
    """`lock_timeout_ms`: how long renewed records are locked."""

    topics: list[AcknowledgedTopic]
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    lock_timeout_ms: int = 0
