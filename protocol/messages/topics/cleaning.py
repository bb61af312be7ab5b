"""Cleaning (key 10005): how far compacted logs are cleaned. Barnabas only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Float64, Int32, Int64, Message, Nullable, String


class CompactedLog(Struct, kw_only=False):
    """A compacted log, in its log directory; the copy of a move is not listed.

    `first_dirty_offset` of the cleaner's checkpoint: -1 without one. `dirty_ratio`: -1.0 if the log cannot be read.
    `cleaning_state`: idle, in progress, paused, aborted, or `uncleanable: ` and the reason.
    """

    log_dir: String
    topic: String
    partition: Int32
    first_dirty_offset: Int64
    dirty_ratio: Float64
    cleaning_state: String


class CleaningResponse(Struct, flexible=0):
    """`logs`: by directory, in the order of log.dirs, topic and partition. None with log.cleaner.enable=false."""

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    message: Message = None
    logs: Sequence[CompactedLog] = ()


class CleaningRequest(Request[CleaningResponse], api=ApiKey.CLEANING, flexible=0):
    """`topics` None: all."""

    topics: Annotated[Sequence[String] | None, Nullable()] = None

    def refused(self, code: ErrorCode, message: str) -> CleaningResponse:
        """The code and the message."""
        return CleaningResponse(error=code, message=message)
