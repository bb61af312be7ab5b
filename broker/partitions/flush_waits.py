"""Produce responses that wait for the flusher's group commit (flush.messages).

The flusher's thread reports everything that a round made durable in one call, which one `call_soon_threadsafe` brings
into the event loop. In the other direction, the flushes for one turn of the loop, of all clients, are requested
together at the end of the turn, one for each log. A sync takes less time than the loop needs for a handful of requests:
otherwise each group would be that small, and the syncs would cost more than the appends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.storage.group_commit import FlushCallback, FlushCompletion, FlushRequest, GroupCommitFlusher
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.storage.log.partition_log import PartitionLog
    from barnabas.protocol.messages.data.produce import ProducePartitionResult, ProduceResponse


logger = logging.getLogger(__name__)


class FlushWaits:
    """Owns the flusher, and brings its results back to the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.flusher = GroupCommitFlusher(self._deliver)
        self._loop = loop
        self._gathered: dict[PartitionLog, _LogWaits] = {}

    def answer_after(
        self, flushes: list[tuple[Partition, int, ProducePartitionResult]], response: ProduceResponse
    ) -> Deferred[ProduceResponse | None]:
        """Return `response` once each partition is flushed up to its offset, with the errors of failed flushes."""
        answer: Deferred[ProduceResponse | None] = Deferred()
        missing = len(flushes)

        def flushed(partition: Partition, result: ProducePartitionResult, error: Exception | None) -> None:
            nonlocal missing
            if error is not None:
                result.error, result.message = flush_failure(partition, error)
                result.base_offset = -1
            missing -= 1
            if missing == 0:
                answer.resolve(response)

        for partition, up_to_offset, result in flushes:
            self.wait(partition, up_to_offset, partial(flushed, partition, result))
        return answer

    def wait(self, partition: Partition, up_to_offset: int, flushed: FlushCallback) -> None:
        """Call `flushed` in the event loop with None once the log is durable up to the offset, or with the error."""
        # Not `writable_log`, which is None while the broker is frozen for a switch. What was appended has such a log.
        log = cast("PartitionLog", partition.log)
        waits = self._gathered.get(log)
        if waits is None:
            if not self._gathered:
                self._loop.call_soon(self._hand_over)
            waits = self._gathered[log] = _LogWaits(log)
        waits.offsets.append(up_to_offset)
        waits.callbacks.append(flushed)

    def begin(self, partition: Partition, up_to_offset: int) -> None:
        """Start a flush that no request waits for; a failure takes the log directory offline."""
        self.wait(partition, up_to_offset, _ignore)

    def _hand_over(self) -> None:
        gathered, self._gathered = self._gathered, {}
        self.flusher.request(
            [FlushRequest(log, max(of.offsets), of.flushed, len(of.offsets)) for log, of in gathered.items()]
        )

    def _deliver(self, completions: Sequence[FlushCompletion]) -> None:
        """On the flusher's thread."""
        self._loop.call_soon_threadsafe(_complete, completions)


class _LogWaits:
    """What waits for one log's flush: everything that one turn of the loop appended to the log."""

    __slots__ = ("callbacks", "log", "offsets")

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self.offsets: list[int] = []
        self.callbacks: list[FlushCallback] = []

    def flushed(self, error: Exception | None) -> None:
        """Report the result to each. After a failure, records below the durable offset are safe nevertheless."""
        durable = self.log.durable_offset if error is not None else 0
        for up_to_offset, callback in zip(self.offsets, self.callbacks, strict=True):
            try:
                callback(error if error is not None and durable < up_to_offset else None)
            except Exception:
                logger.exception("a bug in what waited for a flush")


def flush_failure(partition: Partition, error: Exception) -> tuple[ErrorCode, str]:
    """Return the error, with its message, of an append that was not flushed."""
    if partition.is_retired:
        reason = "was deleted before it was flushed"
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{partition.log.topic_partition} {reason}"
    return ErrorCode.KAFKA_STORAGE_ERROR, f"{partition.log.topic_partition} could not be flushed: {error}"


def _ignore(error: Exception | None) -> None:
    """The flusher has logged the error."""


def _complete(completions: Sequence[FlushCompletion]) -> None:
    for completion in completions:
        completion.callback(completion.error)
