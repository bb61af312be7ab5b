"""Mirrors (key 10000): create, alter, promote, delete and describe mirrors. Barnabas only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import tagged
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Error, Float64, Int32, Int64, Message, NullableString, String


class MirrorAction(StrEnum):
    """What a request does."""

    CREATE = "create"
    ALTER = "alter"
    DELETE = "delete"
    DESCRIBE = "describe"
    PROMOTE = "promote"


class MirrorField(Struct, kw_only=False):
    """A field of a definition, by MirrorDefinition's name. `value`: JSON; null, boolean, integer, text, or texts."""

    name: String
    value: String


class MirroredTopic(Struct, kw_only=False):
    """One topic of a mirror: its state, and its id at the source as text."""

    topic: String
    state: String
    source_id: NullableString = None


class MirroredPartition(Struct, kw_only=False):
    """One partition of a mirror. `source_offset` is -1 and lag None while they are not known.

    `lag_bytes` is an estimate from the mean size of the copy's records.
    """

    topic: String
    partition: Int32
    state: String
    offset: Int64
    source_offset: Int64 = -1
    lag_records: Int64 | None = tagged(0, default=None)
    lag_seconds: Float64 | None = tagged(1, default=None)
    error: NullableString = None
    lag_bytes: Int64 | None = tagged(2, default=None)


class MirrorProblem(Struct, kw_only=False):
    """Why a topic, or a group, is not copied, or a topic is copied without the source's configs."""

    topic: String
    reason: String


class PromotedPartition(Struct, kw_only=False):
    """One partition of a promoted topic; see PartitionPromotion. `leader_epoch` begins at `copied_end`."""

    topic: String
    partition: Int32
    copied_end: Int64
    source_epoch: Int32
    end: Int64
    leader_epoch: Int32
    committed: Int64 = 0
    aborted: Int64 = 0
    cut: Int64 = 0


class MirrorDescription(Struct):
    """One mirror. `definition` is empty if it cannot be read."""

    name: String
    definition: Sequence[MirrorField] = ()
    state: String
    error: NullableString = None
    topics: Sequence[MirroredTopic] = ()
    partitions: Sequence[MirroredPartition] = ()
    problems: Sequence[MirrorProblem] = ()
    promoted: Sequence[PromotedPartition] = ()

    @property
    def fields(self) -> dict[str, Any]:
        """The definition's fields and their values. Raises DecodeError."""
        return _values(self.definition)


class MirrorsResponse(Struct, flexible=0):
    """`mirrors`: the described ones, by name. `released`: topics that a deletion made writable."""

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    message: Message = None
    mirrors: Sequence[MirrorDescription] = ()
    released: Sequence[String] = ()


class MirrorsRequest(Request[MirrorsResponse], api=ApiKey.MIRRORS, flexible=0):
    """`names`: exactly one, except for DESCRIBE, which describes all mirrors without names.

    `definition` has the fields of a new one (CREATE) or those that change (ALTER). PROMOTE has `topics`, patterns of
    the topics to promote (empty: all, and the mirror ends), and `undecided` (cut, abort).
    `releases_topics` (DELETE): read-only topics become ordinary topics.
    """

    action: String
    names: Sequence[String] = ()
    definition: Sequence[MirrorField] = ()
    releases_topics: Bool = False

    def refused(self, code: ErrorCode, message: str) -> MirrorsResponse:
        """The code and the message."""
        return MirrorsResponse(error=code, message=message)

    @property
    def fields(self) -> dict[str, Any]:
        """The values of `definition`, by name. Raises DecodeError."""
        return _values(self.definition)


def definition_fields(values: Mapping[str, Any]) -> list[MirrorField]:
    """Return fields as `definition` has them. Raises TypeError for a value that JSON does not have."""
    import json  # here: most brokers have no mirrors

    return [MirrorField(name, json.dumps(value)) for name, value in values.items()]


def _values(definition: Sequence[MirrorField]) -> dict[str, Any]:
    import json

    values: dict[str, Any] = {}
    for each in definition:
        if each.name in values:
            raise DecodeError(f"{each.name} is given twice")
        try:
            values[each.name] = json.loads(each.value)
        except (ValueError, RecursionError) as error:
            raise DecodeError(f"{each.name} is not JSON: {error}") from error
    return values
