"""The work of `barnabas consume --group`: prints the records of this member's partitions and commits them.

A line is flushed before the poll that commits it, and the last ones are committed at the end, also after Ctrl-C. So
records that are not in the output are not committed; a crash repeats lines and loses none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.consumer.consumer import Consumer
from barnabas.clients.consumer.rebalance_listener import RebalanceListener
from barnabas.clients.errors import ClientError
from barnabas.commands.records.record_lines import RecordFormat
from barnabas.commands.records.record_printer import Reading, ended_by_closed_pipe, print_polled
from barnabas.protocol.topic_partition import TopicPartition


class _Joined(RebalanceListener):
    """Notes whether the group has made an assignment, which may be empty."""

    def __init__(self) -> None:
        self.yes = False

    async def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.yes = True

    async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.yes = False


async def print_group_records(
    config: ConsumerConfig, reading: Reading, record_format: RecordFormat, pattern: str | None = None
) -> int:
    """Print records and return their number. `pattern` replaces the topic. Raises CommandFailure, ClosedPipeError.

    With exit_at_end it stops when each of this member's partitions is read up to its end offset at the start.
    """
    with ended_by_closed_pipe() as pipe:
        async with Consumer(config) as consumer:
            joined = _Joined()
            if pattern is None:
                await consumer.subscribe([reading.topic], joined)
            else:
                await consumer.subscribe(listener=joined, pattern=pattern)
            ends = None
            if reading.exit_at_end:
                partitions = [await consumer.partitions_for(topic) for topic in consumer.subscription]
                ends = await consumer.end_offsets(chain.from_iterable(partitions))

            async def at_end() -> bool:
                return ends is not None and joined.yes and await _read_to(consumer, ends)

            try:
                return await print_polled(consumer, reading, record_format, total=reading.max_records, at_end=at_end)
            except asyncio.CancelledError:
                if not pipe.closed:  # Ctrl-C: all records handed out have been written
                    with suppress(ClientError):
                        await consumer.commit()
                raise


async def _read_to(consumer: Consumer, ends: Mapping[TopicPartition, int]) -> bool:
    for partition in consumer.assignment:
        if await consumer.position(partition) < ends.get(partition, 0):
            return False
    return True
