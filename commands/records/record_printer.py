"""The work of `barnabas consume`: prints records to standard output until one of the options ends it.

Lines are written and flushed per poll, so the reader of a pipe gets them immediately. When that reader closes the pipe,
the command ends even if no further record comes (`| head` on a quiet topic), because a pipe reports it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.consumer.consumer import Consumer
from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.failures import ClosedPipeError, CommandFailure
from barnabas.commands.output import is_pipe, standard_output
from barnabas.commands.progress import progress_bar
from barnabas.commands.records.record_lines import RecordFormat
from barnabas.protocol.topic_partition import TopicPartition

POLL_RECORDS = 5_000

_POLL_INTERVAL_MS = 200
"""How soon the end of a partition is noticed if its last offsets have no readable record."""

Start = tuple[Literal["earliest", "latest", "offset", "timestamp"], int]
"""Where to start, with the offset or timestamp (0 for earliest and latest)."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What to read. `partitions` empty: all. `idle_timeout_s`: fail when no record has come for this long."""

    topic: str
    partitions: tuple[int, ...]
    start: Start
    max_records: int | None
    exit_at_end: bool
    idle_timeout_s: float | None

    def ensure_not_idle(self, idle_s: float, written: int) -> None:
        """Raise CommandFailure (timed out) if no record has come for too long."""
        if self.idle_timeout_s is not None and idle_s >= self.idle_timeout_s:
            raise CommandFailure(
                f"no record came for {self.idle_timeout_s:g} s; {written} were read", ExitCode.TIMED_OUT
            )


async def print_records(config: ConsumerConfig, reading: Reading, record_format: RecordFormat) -> int:
    """Print records and return their number. Raises CommandFailure (timed out) and ClosedPipeError."""
    with ended_by_closed_pipe():
        async with Consumer(config) as consumer:
            partitions = await _partitions(consumer, reading)
            ends = await consumer.end_offsets(partitions) if reading.exit_at_end else None
            starts = await _start_offsets(consumer, partitions, reading.start)
            await consumer.assign(partitions)
            for partition, offset in starts.items():
                consumer.seek(partition, offset)
            total = _total(starts, ends, reading.max_records)
            if ends is None:
                return await print_polled(consumer, reading, record_format, total=total)
            return await print_polled(
                consumer,
                reading,
                record_format,
                total=total,
                at_end=partial(_at_end, consumer, ends),
                end_of={partition.partition: end for partition, end in ends.items()},
            )


async def print_polled(
    consumer: Consumer,
    reading: Reading,
    record_format: RecordFormat,
    *,
    total: int | None,
    at_end: Callable[[], Awaitable[bool]] | None = None,
    end_of: Mapping[int, int] | None = None,
) -> int:
    """Print polled records until `at_end` or a limit of `reading`, and return their number.

    Leaves out records at or after `end_of` their partition. `total` is for the bar. Raises CommandFailure (timed out).
    """
    loop = asyncio.get_running_loop()
    output = standard_output()
    written = 0
    last_arrival = loop.time()
    with progress_bar("reading", total=total, unit="records", wanted=not sys.stdout.isatty()) as progress:
        while at_end is None or not await at_end():
            limit = POLL_RECORDS if reading.max_records is None else min(POLL_RECORDS, reading.max_records - written)
            records = await consumer.poll(limit, _POLL_INTERVAL_MS)
            now = loop.time()
            if records:
                last_arrival = now
            else:
                reading.ensure_not_idle(now - last_arrival, written)
            if end_of is not None:
                records = [record for record in records if record.offset < end_of[record.partition]]
            output.write(record_format.lines(records))
            output.flush()
            written += len(records)
            progress.advance(len(records))
            if written == reading.max_records:
                break
    return written


async def _partitions(consumer: Consumer, reading: Reading) -> list[TopicPartition]:
    """The partitions to read. Raises CommandFailure or ClientError if the topic or a partition does not exist."""
    existing = await consumer.partitions_for(reading.topic)
    for wanted in reading.partitions:
        if wanted >= len(existing):
            raise CommandFailure(
                f"topic {reading.topic} has no partition {wanted}: its partitions are 0 to {len(existing) - 1}"
            )
    return [existing[wanted] for wanted in sorted(set(reading.partitions))] if reading.partitions else list(existing)


async def _start_offsets(
    consumer: Consumer, partitions: Sequence[TopicPartition], start: Start
) -> dict[TopicPartition, int]:
    """Each partition's start offset; its end if no record is as late as the timestamp."""
    kind, value = start
    if kind == "offset":
        return dict.fromkeys(partitions, value)
    if kind == "earliest":
        return await consumer.beginning_offsets(partitions)
    ends = await consumer.end_offsets(partitions)
    if kind == "latest":
        return ends
    found = await consumer.offsets_for_times(dict.fromkeys(partitions, value))
    return {partition: ends[partition] if listed is None else listed.offset for partition, listed in found.items()}


async def _at_end(consumer: Consumer, ends: dict[TopicPartition, int]) -> bool:
    """Whether every partition is read up to its end offset at the start."""
    for partition, end in ends.items():
        if await consumer.position(partition) < end:
            return False
    return True


def _total(
    starts: dict[TopicPartition, int], ends: dict[TopicPartition, int] | None, max_records: int | None
) -> int | None:
    """Expected number of records for the bar, an estimate if offsets have holes; None if unlimited."""
    if ends is None:
        return max_records
    span = sum(max(0, end - starts[partition]) for partition, end in ends.items())
    return span if max_records is None else min(span, max_records)


class OutputPipe:
    """Standard output; `closed` once it is a pipe whose reader has closed it."""

    def __init__(self) -> None:
        self.closed = False


@contextmanager
def ended_by_closed_pipe() -> Iterator[OutputPipe]:
    """Cancel the task and raise ClosedPipeError when standard output is a pipe and its reader closes it."""
    pipe = OutputPipe()
    descriptor = sys.stdout.fileno()
    if not is_pipe(descriptor):
        yield pipe
        return
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None

    def end() -> None:
        pipe.closed = True
        loop.remove_reader(descriptor)
        task.cancel()

    loop.add_reader(descriptor, end)  # readable only once the other end is closed
    try:
        yield pipe
    except asyncio.CancelledError:
        if pipe.closed:
            raise ClosedPipeError from None
        raise
    finally:
        loop.remove_reader(descriptor)
