"""Which line is named when the producer does not take all lines of a block with keys."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from barnabas.clients.errors import BufferFullError
from barnabas.clients.producer.partitioner import partition_for_key
from barnabas.clients.producer.producer import Producer
from barnabas.commands.records.line_records import Block
from barnabas.commands.records.line_sender import Deliveries, Target, _RefusedBlockError, _send_block

PARTITIONS = 3
KEYS: dict[int, bytes] = {partition_for_key(b"%d" % number, PARTITIONS): b"%d" % number for number in range(50)}


class Stuck:
    """A producer that takes no more records for some partitions, or waits for ever."""

    def __init__(self, *, refuses: int = -1, waits: int = -1) -> None:
        self.refuses = refuses
        self.waits = waits
        self.sent: list[bytes] = []

    async def partitions_for(self, topic: str) -> int:
        return PARTITIONS

    async def send_values(
        self, topic: str, values: Sequence[bytes], *, partition: int, **_: Any
    ) -> tuple[int, asyncio.Future[Any]]:
        if partition == self.refuses:
            raise BufferFullError("full")
        if partition == self.waits:
            await asyncio.Event().wait()
        self.sent += values
        return len(values), asyncio.get_running_loop().create_future()


def block() -> Block:
    """Lines 0 to 5, of the partitions 2, 0, 1, 2, 0, 1."""
    keys: list[bytes | None] = [KEYS[number] for number in (2, 0, 1, 2, 0, 1)]
    return Block(keys, [b"%d" % number for number in range(6)])


def send(producer: Stuck, deliveries: Deliveries) -> Any:
    return _send_block(cast("Producer", producer), Target("t", None, None, ()), block(), 10, deliveries)


@pytest.mark.parametrize(("partition", "first"), [(2, 10), (0, 11), (1, 12)])
async def test_the_first_line_of_all_partitions_that_was_not_sent_is_named(partition: int, first: int) -> None:
    deliveries = Deliveries()
    producer = Stuck(refuses=partition)
    with pytest.raises(_RefusedBlockError):
        await send(producer, deliveries)
    assert deliveries.failed_line == first
    assert isinstance(deliveries.failure, BufferFullError)
    unsent = [number for number in range(6) if b"%d" % number not in producer.sent]
    assert first == 10 + unsent[0]


async def test_lines_left_out_because_a_later_one_was_refused_are_named() -> None:
    deliveries = Deliveries()
    sending = asyncio.create_task(send(Stuck(waits=0), deliveries))
    await asyncio.sleep(0)
    deliveries.refuse(BufferFullError("full"), 13)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert deliveries.failed_line == 11
