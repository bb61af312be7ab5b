"""A share group's member: ShareGroupHeartbeat (76), version 1; ShareFetch (78) and ShareAcknowledge (79), versions 1-2.

Version 2 has the mode of acquisition (KIP-1206) and RENEW (KIP-1222). The records of an answer are views of the
received frame. Addresses of new leaders are not read: metadata has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.fields import ERROR
from barnabas.protocol.kafka.schema import (
    INT16,
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    UUID,
    Message,
    Records,
    Struct,
    rows,
)
from barnabas.protocol.kafka.share import share_fetch
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from barnabas.protocol.messages.share.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse

RENEW_FROM: Final = 2
"""The first version of ShareAcknowledge with RENEW."""


class AcquiredOffsets(NamedTuple):
    """Offsets that the member has a lock on, and the number of their delivery."""

    first_offset: int
    last_offset: int
    delivery_count: int


class FetchedSharePartition(NamedTuple):
    """`records` has whole batches, which may have more records than `acquired`."""

    partition: int
    error: ErrorCode
    message: str | None
    acknowledge_error: ErrorCode
    acknowledge_message: str | None
    records: memoryview
    acquired: Sequence[AcquiredOffsets]


class FetchedShareTopic(NamedTuple):
    """Partitions of one topic."""

    topic_id: bytes
    partitions: Sequence[FetchedSharePartition]


class ShareFetchAnswer(NamedTuple):
    """`error` is that of the whole request, for example of its session. `lock_timeout_ms`: how long locks last."""

    error: ErrorCode
    message: str | None
    lock_timeout_ms: int
    topics: Sequence[FetchedShareTopic]


def _leader(node_id: int, leader_epoch: int) -> tuple[int, int]:
    return node_id, leader_epoch


_LEADER: Final = Struct(_leader, node_id=INT32, leader_epoch=INT32)

SHARE_GROUP_HEARTBEAT: Final = ClientApi(
    ApiKey.SHARE_GROUP_HEARTBEAT, 1, 1, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
)


def _endpoint(**_fields: object) -> None:
    """Drop an address."""


_ENDPOINTS: Final = rows(_endpoint, node_id=INT32, host=STRING, port=INT32, rack=NULLABLE_STRING)
SHARE_FETCH: Final = ClientApi(
    ApiKey.SHARE_FETCH,
    1,
    2,
    share_fetch.REQUEST,
    Message(
        0,
        ShareFetchAnswer,
        _throttle_ms=INT32,
        error=ERROR,
        message=NULLABLE_STRING,
        lock_timeout_ms=INT32,
        topics=rows(
            FetchedShareTopic,
            topic_id=UUID,
            partitions=rows(
                FetchedSharePartition,
                partition=INT32,
                error=ERROR,
                message=NULLABLE_STRING,
                acknowledge_error=ERROR,
                acknowledge_message=NULLABLE_STRING,
                _leader=_LEADER,
                records=Records(is_nullable=False),
                acquired=rows(AcquiredOffsets, first_offset=INT64, last_offset=INT64, delivery_count=INT16),
            ),
        ),
        _endpoints=_ENDPOINTS,
    ),
)
"""Writes a ShareFetchRequest, reads a ShareFetchAnswer."""

SHARE_ACKNOWLEDGE: Final = ClientApi(ApiKey.SHARE_ACKNOWLEDGE, 1, 2, ShareAcknowledgeRequest, ShareAcknowledgeResponse)
