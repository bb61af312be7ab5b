"""Responses that wait for the group commit, and the flushes that each waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

from barnabas.broker.partitions.flush_waits import FlushWaits
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.storage.group_commit import FlushRequest, GroupCommitFlusher
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.produce import ProducePartitionResult, ProduceResponse


class HeldFlusher:
    """A flusher that only records its calls."""

    def __init__(self) -> None:
        self.asked: list[list[FlushRequest]] = []

    def request(self, requests: Sequence[FlushRequest]) -> None:
        self.asked.append(list(requests))


def _waits(loop: asyncio.AbstractEventLoop) -> tuple[FlushWaits, HeldFlusher]:
    waits, flusher = FlushWaits(loop), HeldFlusher()
    waits.flusher = cast("GroupCommitFlusher", flusher)
    return waits, flusher


def _partition(number: int, *, is_retired: bool = False) -> Partition:
    log = SimpleNamespace(topic_partition=number)
    return cast("Partition", SimpleNamespace(log=log, writable_log=log, is_retired=is_retired))


async def test_an_answer_waits_for_all_of_its_partitions_and_a_failed_one_is_told_apart() -> None:
    waits, flusher = _waits(asyncio.get_running_loop())
    results = [ProducePartitionResult(number, base_offset=10 * number) for number in range(3)]
    response = ProduceResponse([])
    answers: list[object] = []
    waits.answer_after([(_partition(n), n + 1, results[n]) for n in range(3)], response).then(answers.append)
    await asyncio.sleep(0)
    [asked] = flusher.asked
    assert [request.up_to_offset for request in asked] == [1, 2, 3]
    asked[1].callback(None)
    asked[0].callback(OSError("the disk"))
    assert answers == []
    asked[2].callback(None)
    assert answers == [response]
    assert [result.error for result in results] == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE, ErrorCode.NONE]
    assert [result.base_offset for result in results] == [-1, 10, 20]


async def test_what_one_turn_of_the_loop_appended_is_asked_for_together() -> None:
    waits, flusher = _waits(asyncio.get_running_loop())
    for number in range(3):
        waits.answer_after([(_partition(0), number + 1, ProducePartitionResult(0))], ProduceResponse([]))
    waits.begin(_partition(1), 7)
    assert flusher.asked == []
    await asyncio.sleep(0)
    waits.begin(_partition(1), 8)
    await asyncio.sleep(0)
    assert [[request.up_to_offset for request in requests] for requests in flusher.asked] == [[1, 2, 3, 7], [8]]


async def test_records_of_a_topic_that_was_deleted_before_their_flush_are_of_no_partition() -> None:
    waits, flusher = _waits(asyncio.get_running_loop())
    result = ProducePartitionResult(0, base_offset=3)
    waits.answer_after([(_partition(0, is_retired=True), 4, result)], ProduceResponse([]))
    await asyncio.sleep(0)
    flusher.asked[0][0].callback(OSError("gone"))
    assert (result.error, result.base_offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
