"""The response to a produce with acks=all that waits for the standby, at most timeout_ms of the request."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.network.deferred import Deferred
from barnabas.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition
    from barnabas.protocol.messages.data.produce import ProducePartitionResult, ProduceResponse

ReplicatedAppend = tuple["Partition", int, "ProducePartitionResult"]
"""A partition, the end of what was appended, and its result."""


def answer_when_replicated(
    appends: Sequence[ReplicatedAppend],
    answer: ProduceResponse | Deferred[ProduceResponse | None],
    timeout_ms: int,
) -> Deferred[ProduceResponse | None]:
    """Return `answer` once the standby has all appends.

    An append gets REQUEST_TIMED_OUT (7) after `timeout_ms`, and NOT_ENOUGH_REPLICAS_AFTER_APPEND (20) when the standby
    is out of time before.
    """
    return _ReplicatedResponse(appends, answer, timeout_ms).deferred


class _ReplicatedResponse:
    def __init__(
        self,
        appends: Sequence[ReplicatedAppend],
        answer: ProduceResponse | Deferred[ProduceResponse | None],
        timeout_ms: int,
    ) -> None:
        self._answer = answer
        self._missing: dict[int, ProducePartitionResult] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.deferred: Deferred[ProduceResponse | None] = Deferred(on_cancel=self._cancel_timer)
        for number, (_, _, result) in enumerate(appends):
            self._missing[number] = result
        for number, (partition, end_offset, _) in enumerate(appends):
            copy = partition.copy
            if copy is None:
                self._replicated(number, None)
            else:
                copy.wait(end_offset, partial(self._replicated, number), gives_up=True)
        if self._missing:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0, timeout_ms) / 1000, self._time_out)

    def _replicated(self, number: int, error: BrokerError | None) -> None:
        result = self._missing.pop(number, None)
        if result is None:
            return  # after the timeout
        if error is not None:
            _refuse(result, error)
        if not self._missing:
            self._finish()

    def _time_out(self) -> None:
        error = BrokerError(ErrorCode.REQUEST_TIMED_OUT, "the standby does not have the records yet")
        for result in self._missing.values():
            _refuse(result, error)
        self._missing.clear()
        self._finish()

    def _finish(self) -> None:
        self._cancel_timer()
        if isinstance(self._answer, Deferred):
            self._answer.then(self.deferred.resolve)
        else:
            self.deferred.resolve(self._answer)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _refuse(result: ProducePartitionResult, error: BrokerError) -> None:
    if not result.error:
        result.error, result.message, result.base_offset = error.code, error.message, -1
