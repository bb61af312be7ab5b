"""Produce answers that wait for the flusher's group commit (flush.messages).

The flusher calls back on its own thread; what it finished is collected, and one `call_soon_threadsafe` brings all of a
group into the event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.deferred import Deferred
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.partition import Partition
    from barnabas.broker.storage.flusher import Flusher
    from barnabas.protocol.messages.produce import ProducePartitionResult, ProduceResponse


class FlushWaits:
    """Hands flush requests to the flusher, and its results back to the event loop."""

    def __init__(self, flusher: Flusher, loop: asyncio.AbstractEventLoop) -> None:
        self._flusher = flusher
        self._loop = loop
        self._finished: deque[tuple[Callable[[OSError | None], None], OSError | None]] = deque()
        self._delivery_scheduled = False

    def answer_after(
        self, flushes: list[tuple[Partition, int, ProducePartitionResult]], response: ProduceResponse
    ) -> Deferred[ProduceResponse | None]:
        """`response`, once each partition is flushed up to its offset; a failed flush becomes its partition's error."""
        answer: Deferred[ProduceResponse | None] = Deferred()
        missing = len(flushes)

        def flushed(partition: Partition, result: ProducePartitionResult, error: OSError | None) -> None:
            nonlocal missing
            if error is not None:
                result.error = ErrorCode.KAFKA_STORAGE_ERROR
                result.message = f"{partition.log.topic_partition} could not be flushed: {error}"
                result.base_offset = -1
            missing -= 1
            if missing == 0:
                answer.resolve(response)

        for partition, up_to_offset, result in flushes:
            done = partial(flushed, partition, result)
            self._flusher.request(partition.log, up_to_offset, partial(self._collect, done))
        return answer

    def _collect(self, done: Callable[[OSError | None], None], error: OSError | None) -> None:
        """On the flusher's thread. The flag is cleared before the queue is emptied, so nothing is left lying."""
        self._finished.append((done, error))
        if not self._delivery_scheduled:
            self._delivery_scheduled = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._delivery_scheduled = False
        while self._finished:
            done, error = self._finished.popleft()
            done(error)
