"""The work of `barnabas produce`: records out of lines, sent in their order, until the input ends or one is refused."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from dataclasses import dataclass, field
from functools import partial

from barnabas.clients.config import ProducerConfig
from barnabas.clients.errors import ClientError
from barnabas.clients.producer.producer import Producer
from barnabas.clients.records import RecordMetadata
from barnabas.commands.failures import CommandFailure, failure_of
from barnabas.commands.progress import Progress, progress_bar
from barnabas.commands.records.line_records import Headers, LineFormat
from barnabas.commands.records.standard_input import read_lines


@dataclass(frozen=True, slots=True)
class Target:
    """Where records go, and what all of them get unless a line says otherwise."""

    topic: str
    partition: int | None
    timestamp_ms: int | None
    headers: Headers


@dataclass(slots=True)
class Deliveries:
    """What became of the records. `failure` is that of the earliest line that was refused."""

    acknowledged: int = 0
    failure: Exception | None = None
    failed_line: int = 0
    failed: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, line: int, future: asyncio.Future[RecordMetadata]) -> None:
        """Count a record whose answer is there. A cancelled one belongs to a command that is ending anyway."""
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
    """How many records were acknowledged: all of them. Raises CommandFailure for the first line that was not sent."""
    descriptor = sys.stdin.fileno()
    deliveries = Deliveries()
    unreadable: CommandFailure | None = None
    async with Producer(config) as producer:
        with progress_bar("sending", total=_size_of(descriptor), unit="bytes", wanted=not sys.stdin.isatty()) as bar:
            try:
                await _send_until_refused(producer, descriptor, target, line_format, deliveries, bar)
            except CommandFailure as error:
                unreadable = error
            await producer.flush()
    _raise_first(deliveries, unreadable)
    return deliveries.acknowledged


async def _send_until_refused(
    producer: Producer,
    descriptor: int,
    target: Target,
    line_format: LineFormat,
    deliveries: Deliveries,
    progress: Progress,
) -> None:
    """Stop reading at the first refusal, even when the input is an open pipe that gives no further line."""
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
    """Send line by line to the end of the input. Raises CommandFailure for a line that makes no record."""
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


def _raise_first(deliveries: Deliveries, unreadable: CommandFailure | None) -> None:
    """A refusal comes from an earlier line than the one at which reading stopped, so it is the one to tell."""
    if deliveries.failure is not None:
        failure = failure_of(deliveries.failure)
        message = f"line {deliveries.failed_line}: {failure.message}"
        code = failure.exit_code
    elif unreadable is not None:
        message, code = unreadable.message, unreadable.exit_code
    else:
        return
    raise CommandFailure(f"{message}; {deliveries.acknowledged} records were sent", code)


def _size_of(descriptor: int) -> int | None:
    """Bytes of a regular file; None where it is not known how much comes."""
    status = os.fstat(descriptor)
    return status.st_size if stat.S_ISREG(status.st_mode) else None
