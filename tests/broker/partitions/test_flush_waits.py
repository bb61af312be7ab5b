"""Responses that wait for the group commit, and the flushes that each waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import pytest

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


@dataclass(eq=False)
class _Log:
    """A log, which is hashed by its identity."""

    topic_partition: int
    durable_offset: int


def _partition(number: int, *, is_retired: bool = False, durable_offset: int = 0) -> Partition:
    """A partition that is frozen since its records were appended."""
    log = _Log(number, durable_offset)
    return cast("Partition", SimpleNamespace(log=log, writable_log=None, is_retired=is_retired))


async def test_an_answer_waits_for_all_of_its_partitions_and_a_failed_one_is_told_apart() -> None:
    waits, flusher = _waits(asyncio.get_running_loop())
    results = [ProducePartitionResult(number, base_offset=10 * number) for number in range(3)]
    response = ProduceResponse(topics=[])
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


async def test_what_one_turn_of_the_loop_appended_is_asked_for_together_once_for_each_log() -> None:
    waits, flusher = _waits(asyncio.get_running_loop())
    first, second = _partition(0), _partition(1)
    for up_to_offset in (1, 3, 2):
        waits.answer_after([(first, up_to_offset, ProducePartitionResult(0))], ProduceResponse(topics=[]))
    waits.begin(second, 7)
    assert flusher.asked == []
    await asyncio.sleep(0)
    waits.begin(second, 8)
    await asyncio.sleep(0)
    asked = [[(each.log, each.up_to_offset, each.appends) for each in requests] for requests in flusher.asked]
    assert asked == [[(first.log, 3, 3), (second.log, 7, 1)], [(second.log, 8, 1)]]


async def test_a_failed_flush_fails_the_appends_that_are_not_durable() -> None:
    waits, flusher = _waits(asyncio.get_running_loop())
    partition = _partition(0, durable_offset=2)
    errors: list[Exception | None] = []
    for up_to_offset in (1, 2, 3):
        waits.wait(partition, up_to_offset, errors.append)
    await asyncio.sleep(0)
    failure = OSError("the disk")
    [[request]] = flusher.asked
    request.callback(failure)
    assert errors == [None, None, failure]


async def test_a_bug_in_one_wait_leaves_the_others_their_result(caplog: pytest.LogCaptureFixture) -> None:
    waits, flusher = _waits(asyncio.get_running_loop())
    partition = _partition(0)
    errors: list[Exception | None] = []

    def fail(_: Exception | None) -> None:
        raise ValueError("a bug")

    for callback in (fail, errors.append):
        waits.wait(partition, 1, callback)
    await asyncio.sleep(0)
    flusher.asked[0][0].callback(None)
    assert errors == [None]
    assert "a bug in what waited for a flush" in caplog.text


async def test_records_of_a_topic_that_was_deleted_before_their_flush_are_of_no_partition() -> None:
    waits, flusher = _waits(asyncio.get_running_loop())
    result = ProducePartitionResult(0, base_offset=3)
    waits.answer_after([(_partition(0, is_retired=True), 4, result)], ProduceResponse(topics=[]))
    await asyncio.sleep(0)
    flusher.asked[0][0].callback(OSError("gone"))
    assert (result.error, result.base_offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
