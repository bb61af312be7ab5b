"""OffsetFetch (key 9): the committed offsets of groups, in given partitions or in all.

A request has several groups from version 8 on, and one group before that, in other fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Self

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.uuids import ZERO_UUID
from barnabas.protocol.wire.fields import since, until
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Error, Int32, Int64, Nullable, NullableString, String, Uuid

NO_OFFSET: Final = -1

NO_MEMBER_EPOCH: Final = -1
"""Sent by clients that are not members, or members of a classic group."""

GROUPS_FROM: Final = 8
"""The first version with several groups in one request."""

_ERROR_FROM: Final = 2
_FLEXIBLE_FROM: Final = 6
_BY_ID_FROM: Final = 10

_LONGEST_STRING: Final = 2**15 - 1
"""Bytes of a string before flexible versions; offset.metadata.max.bytes may allow more."""
_SURELY_FITS: Final = _LONGEST_STRING // 4
"""A string of at most this many characters fits."""


class OffsetFetchPartitionResult(Struct, kw_only=False):
    """`offset` is -1 if none is committed."""

    partition: Int32
    offset: Int64 = NO_OFFSET
    leader_epoch: Int32 = since(5, default=-1)
    metadata: NullableString = ""
    error: Error = ErrorCode.NONE


class OffsetFetchTopicResult(Struct):
    """One topic's offsets."""

    name: String = until(9, default="")
    topic_id: Uuid = since(10, default=ZERO_UUID)
    partitions: Sequence[OffsetFetchPartitionResult]


class OffsetFetchGroupResult(Struct):
    """One group's offsets, or an error."""

    group_id: String
    topics: Sequence[OffsetFetchTopicResult] = ()
    error: Error = ErrorCode.NONE


class OffsetFetchResponse(Struct, flexible=6):
    """In the order of the request. `topics`, `error`: those of the only group."""

    throttle_ms: Int32 = since(3, default=0)
    topics: Sequence[OffsetFetchTopicResult] = until(7, default=())
    error: Error = since(2, until=7, default=ErrorCode.NONE)
    groups: Sequence[OffsetFetchGroupResult] = since(8, default=())

    @property
    def results(self) -> Sequence[OffsetFetchGroupResult]:
        """The groups; the id of an only group is empty."""
        return self.groups or [OffsetFetchGroupResult(group_id="", topics=self.topics, error=self.error)]


class OffsetFetchTopic(Struct):
    """One topic by name, or by id; then the name is empty."""

    name: String = until(9, default="")
    topic_id: Uuid = since(10, default=ZERO_UUID)
    partitions: Sequence[Int32]


class OffsetFetchGroup(Struct):
    """`topics` None: all committed offsets. A member of the consumer protocol gives its id and epoch."""

    group_id: String
    member_id: NullableString = since(9, default=None)
    member_epoch: Int32 = since(9, default=NO_MEMBER_EPOCH)
    topics: Annotated[Sequence[OffsetFetchTopic] | None, Nullable()]


class OffsetFetchRequest(Request[OffsetFetchResponse], api=ApiKey.OFFSET_FETCH, flexible=6):
    """`require_stable`: refuse offsets that an open transaction may change. `asked_groups`: of any version."""

    group_id: String = until(7, default="")
    topics: Annotated[Sequence[OffsetFetchTopic] | None, Nullable(2)] = until(7, default=())
    groups: Sequence[OffsetFetchGroup] = since(8, default=())
    require_stable: Bool = since(7, default=False)

    @classmethod
    def of_groups(cls, groups: Sequence[OffsetFetchGroup], *, require_stable: bool = False) -> Self:
        """Return a request that any version can write; of several groups only those from version 8 on."""
        first = groups[0]
        return cls(group_id=first.group_id, topics=first.topics, groups=groups, require_stable=require_stable)

    @property
    def asked_groups(self) -> Sequence[OffsetFetchGroup]:
        """The groups."""
        if self.version >= GROUPS_FROM:
            return self.groups
        return [OffsetFetchGroup(group_id=self.group_id, topics=self.topics)]

    @property
    def is_by_id(self) -> bool:
        """Whether the answer names topics by id, also if all are requested."""
        return self.version >= _BY_ID_FROM

    def fits(self, metadata: str) -> bool:
        """Return whether the version has strings that are long enough for the metadata of an offset."""
        return (
            self.version >= _FLEXIBLE_FROM or len(metadata) <= _SURELY_FITS or len(metadata.encode()) <= _LONGEST_STRING
        )

    def answered(self, results: Sequence[OffsetFetchGroupResult]) -> OffsetFetchResponse:
        """Return the answer of the version."""
        if self.version >= GROUPS_FROM:
            return OffsetFetchResponse(groups=results)
        (only,) = results
        return OffsetFetchResponse(topics=only.topics, error=only.error)

    def refused(self, code: ErrorCode, message: str) -> OffsetFetchResponse:
        """The code for every group."""
        return self.answered([self.refused_group(each, code) for each in self.asked_groups])

    def refused_group(self, group: OffsetFetchGroup, error: ErrorCode) -> OffsetFetchGroupResult:
        """Return a result with the error for the group or, in a version without that, for each partition."""
        topics: list[OffsetFetchTopicResult] = []
        if self.version < _ERROR_FROM:
            topics += [
                OffsetFetchTopicResult(
                    name=topic.name,
                    partitions=[OffsetFetchPartitionResult(each, error=error) for each in topic.partitions],
                )
                for topic in group.topics or ()
            ]
        return OffsetFetchGroupResult(group_id=group.group_id, topics=topics, error=error)
