"""OffsetFetch (9), versions 2-9: committed offsets of groups of both protocols, in given partitions or in all.

From version 8 on a request has several groups, before that exactly one. Version 10 names topics by id; it is not spoken
here, because an id may belong to a topic that has been deleted.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.fields import ERROR
from barnabas.protocol.kafka.schema import (
    BOOL,
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    Array,
    Computed,
    Message,
    Struct,
    Versions,
    rows,
    since,
    until,
)
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchGroupResult,
    OffsetFetchPartitionResult,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
    OffsetFetchTopicResult,
)

GROUPS_FROM: Final = 8
"""The first version with several groups in one request."""


def _only_group(request: OffsetFetchRequest) -> OffsetFetchGroup:
    (group,) = request.groups
    return group


def _topics_of_only(request: OffsetFetchRequest) -> list[OffsetFetchTopic] | None:
    return _only_group(request).topics


def _answer(
    topics: list[OffsetFetchTopicResult] | None = None,
    error: ErrorCode = ErrorCode.NONE,
    groups: list[OffsetFetchGroupResult] | None = None,
) -> OffsetFetchResponse:
    return OffsetFetchResponse([OffsetFetchGroupResult("", topics or [], error)] if groups is None else groups)


def _partition(
    partition: int, offset: int, metadata: str | None, error: ErrorCode, leader_epoch: int = -1
) -> OffsetFetchPartitionResult:
    return OffsetFetchPartitionResult(partition, error, offset, leader_epoch, metadata or "")


_REQUESTED: Final = Array(Struct(name=STRING, partitions=Array(INT32)), nullable_from=2)
_RESULTS: Final = rows(
    OffsetFetchTopicResult,
    name=STRING,
    partitions=rows(
        _partition,
        partition=INT32,
        offset=INT64,
        leader_epoch=since(5, INT32),
        metadata=NULLABLE_STRING,
        error=ERROR,
    ),
)
OFFSET_FETCH: Final = ClientApi(
    ApiKey.OFFSET_FETCH,
    2,
    9,
    Message(
        6,
        group_id=until(7, Computed(STRING, lambda request: _only_group(request).group_id)),
        topics=until(7, Computed(_REQUESTED, _topics_of_only)),
        groups=since(
            8,
            rows(
                group_id=STRING,
                member_id=since(9, NULLABLE_STRING),
                member_epoch=since(9, INT32),
                topics=_REQUESTED,
            ),
        ),
        require_stable=since(7, BOOL),
    ),
    Message(
        6,
        _answer,
        _throttle_ms=since(3, INT32),
        topics=until(7, _RESULTS),
        error=Versions(ERROR, 2, 7),
        groups=since(8, rows(OffsetFetchGroupResult, group_id=STRING, topics=_RESULTS, error=ERROR)),
    ),
)
"""Writes an OffsetFetchRequest, reads an OffsetFetchResponse; before version 8 its group has an empty id."""
