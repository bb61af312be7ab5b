"""ShareFetch (78), versions 1 and 2: stored batches, sent between the fields of the answer.

Version 2 adds the mode of acquisition (KIP-1206) and RENEW (KIP-1222).
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
    MESSAGE,
    NO_THROTTLE,
    NULLABLE_STRING,
    STRING,
    UUID,
    Array,
    Computed,
    Constant,
    Message,
    Records,
    Struct,
    Write,
    rows,
    since,
)
from barnabas.protocol.messages.share.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
)
from barnabas.protocol.messages.share.share_fetch import ForgottenTopic, ShareFetchRequest, ShareFetchResponse
from barnabas.protocol.varint import unsigned
from barnabas.protocol.wire.pieces import Piece, Pieces

_RENEW_FROM = 2


class _Out(bytearray):
    """A body that is written, and the records that are sent within it, each at its position."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[tuple[int, Any]] = []


class StoredRecords(Records):
    """Records that stay where they are: a writer notes their place."""

    def writer(self, version: int, flexible: bool) -> Write:  # noqa: D102 - see Type
        def write(out: Any, records: Any) -> None:
            if records is None:
                out += unsigned(1)  # empty, which is not null
                return
            out += unsigned(records.size + 1)
            out.records.append((len(out), records))

        return write


_ACKNOWLEDGE_TOPICS = rows(
    AcknowledgeTopic,
    topic_id=UUID,
    partitions=rows(
        AcknowledgePartition,
        partition=INT32,
        batches=rows(AcknowledgementBatch, first_offset=INT64, last_offset=INT64, types=Array(INT8)),
    ),
)
_LEADER = Struct(
    node_id=Computed(INT32, lambda leader: leader[0]), leader_epoch=Computed(INT32, lambda leader: leader[1])
)
_NODES = rows(node_id=INT32, host=STRING, port=INT32, rack=NULLABLE_STRING)
"""Addresses of other leaders: a single node has none."""

REQUEST = Message(
    0,
    ShareFetchRequest,
    group_id=NULLABLE_STRING,
    member_id=NULLABLE_STRING,
    session_epoch=INT32,
    max_wait_ms=INT32,
    min_bytes=INT32,
    max_bytes=INT32,
    max_records=INT32,
    batch_size=INT32,
    acquire_mode=since(2, INT8),
    is_renewal=since(_RENEW_FROM, BOOL),
    topics=_ACKNOWLEDGE_TOPICS,
    forgotten=rows(ForgottenTopic, topic_id=UUID, partitions=Array(INT32)),
)
_ACQUIRED = Struct(
    first_offset=Computed(INT64, lambda acquired: acquired[0]),
    last_offset=Computed(INT64, lambda acquired: acquired[1]),
    delivery_count=Computed(INT16, lambda acquired: acquired[2]),
)
RESPONSE = Message(
    0,
    throttle_ms=NO_THROTTLE,
    error=INT16,
    message=MESSAGE,
    lock_timeout_ms=INT32,
    topics=rows(
        topic_id=UUID,
        partitions=rows(
            partition=INT32,
            error=INT16,
            message=MESSAGE,
            acknowledge_error=INT16,
            acknowledge_message=MESSAGE,
            leader=_LEADER,
            records=StoredRecords(is_nullable=False),
            acquired=Array(_ACQUIRED),
        ),
    ),
    nodes=Constant(_NODES, ()),
)


_writers: dict[int, Write] = {}
"""By version, compiled at the first use."""


def decode_request(version: int, body: memoryview) -> ShareFetchRequest:
    """Raises DecodeError."""
    request: ShareFetchRequest = REQUEST.read(version, body)
    request.may_renew = version >= _RENEW_FROM
    return request


def encode_response(version: int, response: ShareFetchResponse) -> Pieces:
    """Return an answer's body; each partition's records are a piece between bytes."""
    out = _Out()
    write = _writers.get(version)
    if write is None:
        write = _writers[version] = RESPONSE.body.writer(version, flexible=True)
    write(out, response)
    head = b""
    parts: list[Piece] = []
    size = written = 0
    for position, records in out.records:
        between = bytes(out[written:position])
        if parts:
            parts.append(between)
        else:
            head = between
        parts.append(records)
        size += records.size
        written = position
    rest = bytes(out[written:])
    size += len(out)
    if not parts:
        return Pieces(rest, parts, size)
    parts.append(rest)
    return Pieces(head, parts, size)


def encode_error(version: int, request: ShareFetchRequest, code: ErrorCode, message: str) -> Pieces:
    """The code for the whole."""
    return encode_response(version, ShareFetchResponse([], code, message))
