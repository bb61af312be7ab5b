"""The work of `barnabas produce`: sends lines as records, in order, until the input ends or a record is refused."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from barnabas.clients.config import ProducerConfig
from barnabas.clients.errors import (
    BrokerConnectionError,
    BrokerTimeoutError,
    ClientError,
    ProducerFencedError,
    RefusedError,
    TransactionAbortableError,
)
from barnabas.clients.producer.partitioner import partition_for_key
from barnabas.clients.producer.producer import Producer
from barnabas.clients.records import RecordMetadata
from barnabas.commands.failures import CommandFailure, failure_of
from barnabas.commands.progress import Progress, progress_bar
from barnabas.commands.records.line_records import Block, Headers, InputRecord, LineFormat
from barnabas.commands.records.standard_input import read_lines
from barnabas.explanation.wording import duration_text
from barnabas.protocol.errors import ErrorCode

_ENDED_BY_BROKER = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE})
"""Of a record or a commit whose transaction the coordinator has aborted meanwhile."""

_VALUES_AT_ONCE = 4096
"""As many short lines as fill a batch."""

_LONG_LINE_BYTES = 64 * 1024
"""Lines with keys are sent by partition, block by block, unless one of the block is longer than this."""


@dataclass(frozen=True, slots=True)
class Target:
    """Topic and partition of the records, and defaults for fields that a line does not set."""

    topic: str
    partition: int | None
    timestamp_ms: int | None
    headers: Headers


@dataclass(slots=True)
class Deliveries:
    """Results of the sent records. `failure` is that of the earliest refused line."""

    acknowledged: int = 0
    failure: Exception | None = None
    failed_line: int = 0
    failed: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, line: int, count: int, future: asyncio.Future[RecordMetadata]) -> None:
        """Count the records from `line` on that have this result.

        A cancelled future belongs to a command that is ending anyway.
        """
        if future.cancelled():
            return
        error = future.exception()
        if error is None:
            self.acknowledged += count
        elif isinstance(error, Exception):
            self.refuse(error, line)

    def refuse(self, error: Exception, line: int) -> None:
        """Keep the failure of the earliest line."""
        if self.failure is None or line < self.failed_line:
            self.failure, self.failed_line = error, line
            self.failed.set()


async def send_input(config: ProducerConfig, target: Target, line_format: LineFormat) -> int:
    """Send all lines and return their number. Raises CommandFailure for the first line that was not sent.

    With a transactional id they are one transaction, which a failure aborts.
    """
    async with Producer(config) as producer:
        if config.transactional_id is None:
            return await _send_all(producer, target, line_format, "{count} records were sent")
        await producer.begin_transaction()
        try:
            count = await _send_all(producer, target, line_format)
        except CommandFailure as failure:
            outcome = await _abort(producer, config)
            cause = failure.__cause__
            if _was_ended_by_broker(cause):
                raise _taken_over(config) from failure
            raise CommandFailure(f"{failure.message}; {outcome}", failure.exit_code) from cause
        await _commit(producer, config)
        return count


async def _abort(producer: Producer, config: ProducerConfig) -> str:
    """Abort the transaction, and return a sentence about its outcome."""
    try:
        await producer.abort_transaction()
    except (BrokerConnectionError, BrokerTimeoutError):
        timeout = duration_text(config.transaction_timeout_ms)
        return (
            "the broker cannot be reached to abort the transaction, and aborts it by itself when it has been open for"
            f" --transaction-timeout ({timeout})"
        )
    except ClientError as error:
        return f"the transaction was not aborted: {failure_of(error).message}"
    return "the transaction was aborted"


async def _commit(producer: Producer, config: ProducerConfig) -> None:
    """Commit the transaction. Raises CommandFailure, naming the outcome."""
    try:
        await producer.commit_transaction()
    except (BrokerConnectionError, BrokerTimeoutError) as error:
        failure = failure_of(error.__cause__ if isinstance(error.__cause__, ClientError) else error)
        raise CommandFailure(
            f"{failure.message}; it is not known whether the transaction was committed: before you send the input"
            " again, look for its records with `barnabas consume --isolation-level read_committed`",
            failure.exit_code,
        ) from error
    except (TransactionAbortableError, ProducerFencedError) as error:
        if isinstance(error, ProducerFencedError) or _was_ended_by_broker(error.__cause__):
            raise _taken_over(config) from error
        raise


def _was_ended_by_broker(error: BaseException | None) -> bool:
    return isinstance(error, RefusedError) and error.code in _ENDED_BY_BROKER


def _taken_over(config: ProducerConfig) -> CommandFailure:
    return CommandFailure(
        "the broker has aborted the transaction: it was open for longer than --transaction-timeout"
        f" ({duration_text(config.transaction_timeout_ms)}), or another run with transactional id"
        f" {config.transactional_id!r} or `barnabas transaction abort` has ended it. Send the input again, with a"
        " longer --transaction-timeout or another --transactional-id if that was the reason"
    )


async def _send_all(producer: Producer, target: Target, line_format: LineFormat, outcome: str | None = None) -> int:
    """Send and flush. `outcome` ends the sentence of a failure, with the `count` of acknowledged records."""
    descriptor = sys.stdin.fileno()
    deliveries = Deliveries()
    unreadable: CommandFailure | None = None
    with progress_bar("sending", total=_size_of(descriptor), unit="bytes", wanted=not sys.stdin.isatty()) as bar:
        try:
            await _send_until_refused(producer, descriptor, target, line_format, deliveries, bar)
        except CommandFailure as error:
            unreadable = error
        await producer.flush()
    _raise_first(deliveries, unreadable, outcome)
    return deliveries.acknowledged


async def _send_until_refused(
    producer: Producer,
    descriptor: int,
    target: Target,
    line_format: LineFormat,
    deliveries: Deliveries,
    progress: Progress,
) -> None:
    """Send lines until one is refused, even while reading waits for another line of an open pipe."""
    sending = asyncio.create_task(_send_lines(producer, descriptor, target, line_format, deliveries, progress))
    refusal = asyncio.create_task(deliveries.failed.wait())
    try:
        await asyncio.wait({sending, refusal}, return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()
    finally:
        for task in (sending, refusal):
            task.cancel()
        await asyncio.gather(sending, refusal, return_exceptions=True)


async def _send_lines(
    producer: Producer,
    descriptor: int,
    target: Target,
    line_format: LineFormat,
    deliveries: Deliveries,
    progress: Progress,
) -> None:
    """Send all lines to the end of the input. Raises CommandFailure for a line that cannot be parsed."""
    number = 1
    async for lines in read_lines(descriptor):
        block = line_format.block(lines)
        if block is not None and block.keys is not None and max(map(len, lines)) > _LONG_LINE_BYTES:
            block = None  # one of them may be too large, and those before it must have been sent
        sent = 0
        try:
            if block is not None:
                await _send_block(producer, target, block, number, deliveries)
                sent = len(block.values)
            for line in lines[sent:]:
                record = line_format.parse(line, number + sent)
                future = await _send_line(producer, target, record)
                future.add_done_callback(partial(deliveries.take, number + sent, 1))
                sent += 1
        except _RefusedBlockError:
            return
        except ClientError as error:
            deliveries.refuse(error, number + sent)
            return
        number += len(lines)
        progress.advance(sum(map(len, lines)) + len(lines))


class _Run:
    """Records for one partition, in their order, with their places in the block.

    `partition` None: the producer chooses it. `keys` None: the records have no keys. `sent`: how many are with the
    producer.
    """

    __slots__ = ("keys", "partition", "places", "sent", "values")

    def __init__(
        self,
        partition: int | None,
        places: Sequence[int],
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None,
    ) -> None:
        self.partition = partition
        self.places = places
        self.values = values
        self.keys = keys
        self.sent = 0


class _RefusedBlockError(Exception):
    """The producer did not take all lines of a block; the deliveries have the reason."""


async def _send_block(producer: Producer, target: Target, block: Block, number: int, deliveries: Deliveries) -> None:
    """Send a block that begins with line `number`, partition by partition. Raises _RefusedBlockError.

    The line that is named then is the first that was not sent, of all partitions.
    """
    runs: list[_Run] = []
    try:
        runs = await _runs(producer, target, block)
        for run in runs:
            await _send_run(producer, target, run, number, deliveries)
    except ClientError as error:
        deliveries.refuse(error, number + _first_unsent(runs))
        raise _RefusedBlockError from error
    except asyncio.CancelledError:  # because a delivery has failed
        if deliveries.failure is not None:
            deliveries.refuse(deliveries.failure, number + _first_unsent(runs))
        raise


def _first_unsent(runs: list[_Run]) -> int:
    """Return the place of the first line that is not sent: 0 before the block is divided; beyond all if all are."""
    if not runs:
        return 0
    return min((run.places[run.sent] for run in runs if run.sent < len(run.values)), default=sys.maxsize)


async def _runs(producer: Producer, target: Target, block: Block) -> list[_Run]:
    """Divide a block by partition. Records without a key need none. Raises ClientError."""
    values, keys = block.values, block.keys
    if not values:
        return []
    if keys is None or target.partition is not None:
        return [_Run(target.partition, range(len(values)), values, keys)]
    count = await producer.partitions_for(target.topic)
    places: dict[int | None, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(None if key is None else partition_for_key(key, count), []).append(place)
    return [
        _Run(
            partition,
            chosen,
            [values[place] for place in chosen],
            None if partition is None else [keys[place] for place in chosen],
        )
        for partition, chosen in places.items()
    ]


async def _send_run(producer: Producer, target: Target, run: _Run, number: int, deliveries: Deliveries) -> None:
    """Send the records of one partition, of a block that begins with line `number`. Raises ClientError."""
    while run.sent < len(run.values):
        begin, end = run.sent, run.sent + _VALUES_AT_ONCE
        count, future = await producer.send_values(
            target.topic,
            run.values[begin:end],
            keys=None if run.keys is None else run.keys[begin:end],
            headers=target.headers,
            timestamp_ms=target.timestamp_ms,
            partition=run.partition,
        )
        future.add_done_callback(partial(deliveries.take, number + run.places[begin], count))
        run.sent += count


async def _send_line(producer: Producer, target: Target, record: InputRecord) -> asyncio.Future[RecordMetadata]:
    return await producer.send(
        target.topic,
        record.value,
        record.key,
        headers=record.headers + target.headers,
        timestamp_ms=target.timestamp_ms if record.timestamp_ms is None else record.timestamp_ms,
        partition=target.partition if record.partition is None else record.partition,
    )


def _raise_first(deliveries: Deliveries, unreadable: CommandFailure | None, outcome: str | None) -> None:
    """Raise the refusal, whose line is before the one at which reading stopped, else the parser's failure."""
    if deliveries.failure is not None:
        failure = failure_of(deliveries.failure)
        message = f"line {deliveries.failed_line}: {failure.message}"
        code = failure.exit_code
    elif unreadable is not None:
        message, code = unreadable.message, unreadable.exit_code
    else:
        return
    if outcome is not None:
        message = f"{message}; {outcome.format(count=deliveries.acknowledged)}"
    raise CommandFailure(message, code) from deliveries.failure


def _size_of(descriptor: int) -> int | None:
    """Size of a regular file; None for other files."""
    status = os.fstat(descriptor)
    return status.st_size if stat.S_ISREG(status.st_mode) else None
