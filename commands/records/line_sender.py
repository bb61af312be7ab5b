"""The work of `barnabas produce`: sends lines as records, in order, until the input ends or a record is refused."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
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
from barnabas.clients.producer.producer import Producer
from barnabas.clients.records import RecordMetadata
from barnabas.commands.durations import duration_text
from barnabas.commands.failures import CommandFailure, failure_of
from barnabas.commands.progress import Progress, progress_bar
from barnabas.commands.records.line_records import Headers, LineFormat
from barnabas.commands.records.standard_input import read_lines
from barnabas.protocol.errors import ErrorCode

_ENDED_BY_BROKER = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE})
"""Of a record or a commit whose transaction the coordinator has aborted meanwhile."""


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

    def take(self, line: int, future: asyncio.Future[RecordMetadata]) -> None:
        """Count a record with a result. A cancelled future belongs to a command that is ending anyway."""
        if future.cancelled():
            return
        error = future.exception()
        if error is None:
            self.acknowledged += 1
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
    """Send line by line to the end of the input. Raises CommandFailure for a line that cannot be parsed."""
    number = 0
    async for lines in read_lines(descriptor):
        for line in lines:
            number += 1
            record = line_format.parse(line, number)
            try:
                future = await producer.send(
                    target.topic,
                    record.value,
                    record.key,
                    headers=record.headers + target.headers,
                    timestamp_ms=target.timestamp_ms if record.timestamp_ms is None else record.timestamp_ms,
                    partition=target.partition if record.partition is None else record.partition,
                )
            except ClientError as error:
                deliveries.refuse(error, number)
                return
            future.add_done_callback(partial(deliveries.take, number))
        progress.advance(sum(map(len, lines)) + len(lines))


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
