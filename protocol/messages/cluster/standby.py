"""Standby (key 10001): what a standby copies beside the partitions, and the planned switch. Barnabas only."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import tagged
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Bytes, Error, Int32, Int64, Message, Nullable, String, Uuid


class StandbyAction(StrEnum):
    """What a request does."""

    IDENTIFY = "identify"
    METADATA = "metadata"
    SNAPSHOT = "snapshot"
    FREEZE = "freeze"
    UNFREEZE = "unfreeze"
    RETIRE = "retire"
    FENCE = "fence"


class StandbyIdentity(Struct, kw_only=False):
    """The identity of the active broker. `directory_ids`: of its log directories, the metadata log's first.

    `number`: how often a standby has taken over in this cluster.
    """

    cluster_id: String
    node_id: Int32
    directory_ids: tuple[Uuid, ...]
    number: Int32
    bootstrap_checkpoint: Bytes = b""


class SnapshotName(Struct, kw_only=False):
    """A snapshot of the metadata log: the end offset that it covers, and the epoch of the last record."""

    end_offset: Int64
    epoch: Int32


class PartitionEnd(Struct, kw_only=False):
    """Log end offset of a partition."""

    topic: String
    partition: Int32
    end_offset: Int64


class StandbyResponse(Struct, flexible=0):
    """The answer.

    IDENTIFY    identity
    METADATA    `data`, whole batches; or `snapshot`, which the standby needs first; or `is_other_log`: the standby's
                metadata log is no prefix of this one. `end_offset`: the metadata log's end
    SNAPSHOT    `data`; empty at the end of the snapshot
    FREEZE      `ends` of all partitions, and `end_offset` of the metadata log
    """

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    message: Message = None
    identity: Annotated[StandbyIdentity | None, Nullable()] = None
    end_offset: Int64 = -1
    data: Bytes = b""
    snapshot: Annotated[SnapshotName | None, Nullable()] = None
    is_other_log: Bool = False
    ends: Sequence[PartitionEnd] = ()


class StandbyRequest(Request[StandbyResponse], api=ApiKey.STANDBY, flexible=0):
    """One request.

    METADATA    batches of the metadata log from `offset` on; `last_crc` is that of the batch before `offset` in the
                standby's log, None to compare nothing; waits up to `max_wait_ms` for a first batch
    SNAPSHOT    bytes of `snapshot` from `offset`, a position in bytes, on
    FREEZE      accept no more writes for `max_wait_ms`
    UNFREEZE    accept writes again
    FENCE       stop and never serve again, because a standby has taken over as `number` without a plan
    RETIRE      never accept writes again, and stop: the standby takes over as `number`. Only after FREEZE
    """

    action: String
    offset: Int64 = 0
    last_crc: Int64 | None = tagged(0, default=None)
    max_wait_ms: Int32 = 0
    snapshot: Annotated[SnapshotName | None, Nullable()] = None
    number: Int32 = 0

    def refused(self, code: ErrorCode, message: str) -> StandbyResponse:
        """The code and the message."""
        return StandbyResponse(error=code, message=message)
