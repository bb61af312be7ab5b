"""Checks of batches that decompress to more than the event loop may spend time on, on threads.

A few kilobytes can hold 128 MiB (protocol/records/reader.py), which takes tenths of a second. So the loop decompresses
up to INLINE_DECOMPRESSED_BYTES, and a larger batch is decompressed and checked here, without the interpreter lock. It
is appended in the loop, with every check of its partition made anew: the topic may be deleted meanwhile, or a hand-over
begin.

At most CHECKS_AT_ONCE run at a time, so they take at most that many times 128 MiB. Others wait with a copy of what was
sent, WAITING_BYTES_MAX in all; beyond, a batch is refused with REQUEST_TIMED_OUT, which clients retry. Requests take
turns, batch by batch.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from traceback import format_exception
from typing import TYPE_CHECKING, Final

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.storage.log.append import INLINE_DECOMPRESSED_BYTES
from barnabas.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable
    from concurrent.futures import Executor

    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.storage.log.appending.validator import CheckedBatch

CHECKS_AT_ONCE: Final = 2
WAITING_BYTES_MAX: Final = 64 * 1024 * 1024


class LargeBatch:
    """One batch, with its own copy of the records, and what its check has found."""

    __slots__ = ("_in_transaction", "_partition", "checked", "records")

    def __init__(self, partition: Partition, records: memoryview, *, in_transaction: bool) -> None:
        self.records = memoryview(bytearray(records))
        self._in_transaction = in_transaction
        self.checked: CheckedBatch | Exception | None = None
        """The error that refuses the batch, or that is a bug; None before the check."""
        self._partition = partition

    def check(self) -> None:
        """Decompress and check the records. Any thread."""
        try:
            self.checked = self._partition.check_client_batch(self.records, in_transaction=self._in_transaction)
        except BrokerError as error:
            # A new one: the traceback of the first has the decompressed records.
            self.checked = BrokerError(error.code, error.message, error.record_errors)
        except Exception as error:  # noqa: BLE001 - raised again in the event loop
            self.checked = RuntimeError("the check of a batch failed: " + "".join(format_exception(error)))

    def found(self) -> CheckedBatch:
        """Return the result of the check. Raises what it has raised."""
        assert self.checked is not None, "the check has ended"
        if isinstance(self.checked, Exception):
            raise self.checked
        return self.checked


class LargeBatches:
    """Runs the checks. Event loop only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, executor: Executor) -> None:
        self._loop = loop
        self._executor = executor
        self._running = 0
        self._held_bytes = 0
        self._waiting: deque[tuple[deque[LargeBatch], Deferred[None]]] = deque()
        """The batches of each request that has some left to check."""

    def batch(self, partition: Partition, records: memoryview, *, in_transaction: bool) -> LargeBatch:
        """Return a batch with a copy of the records; `check` it. Raises BrokerError REQUEST_TIMED_OUT."""
        if self._held_bytes and self._held_bytes + len(records) > WAITING_BYTES_MAX:
            raise BrokerError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"{self._held_bytes} bytes of batches wait, each of which holds more than {INLINE_DECOMPRESSED_BYTES}",
            )
        self._held_bytes += len(records)
        return LargeBatch(partition, records, in_transaction=in_transaction)

    def check(self, batches: Iterable[LargeBatch]) -> Deferred[None]:
        """Return an answer that comes when all batches of a request, at least one, have been checked."""
        done: Deferred[None] = Deferred()
        self._waiting.append((deque(batches), done))
        self._start()
        return done

    def _start(self) -> None:
        while self._waiting and self._running < CHECKS_AT_ONCE:
            batches, done = self._waiting.popleft()
            batch = batches.popleft()
            self._running += 1
            checked = self._loop.run_in_executor(self._executor, batch.check)
            checked.add_done_callback(partial(self._ended, batch, batches, done))

    def _ended(self, batch: LargeBatch, left: deque[LargeBatch], done: Deferred[None], _: object) -> None:
        self._running -= 1
        self._held_bytes -= len(batch.records)
        is_last = not left
        if not is_last:
            self._waiting.append((left, done))
        try:
            self._start()
        finally:
            if is_last:
                done.resolve(None)
