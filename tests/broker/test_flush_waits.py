"""Which answers wait for the group commit, and for how much of it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from barnabas.broker.flush_waits import FlushWaits
from barnabas.broker.partition import Partition
from barnabas.broker.storage.flusher import FlushCallback, GroupCommitFlusher
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import ProducePartitionResult, ProduceResponse


class HeldFlusher:
    """Remembers what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, int, FlushCallback]] = []

    def request(self, log: Any, up_to_offset: int, callback: FlushCallback) -> None:
        self.asked.append((log, up_to_offset, callback))


def test_an_answer_waits_for_all_of_its_partitions_and_a_failed_one_is_told_apart() -> None:
    loop = asyncio.new_event_loop()
    waits, flusher = FlushWaits(loop), HeldFlusher()
    loop.close()
    waits.flusher = cast("GroupCommitFlusher", flusher)
    results = [ProducePartitionResult(number, base_offset=10 * number) for number in range(3)]
    partitions = [cast("Partition", SimpleNamespace(log=SimpleNamespace(topic_partition=n))) for n in range(3)]
    response = ProduceResponse([])
    answers: list[object] = []
    waits.answer_after([(partitions[n], n + 1, results[n]) for n in range(3)], response).then(answers.append)
    assert [up_to_offset for _, up_to_offset, _ in flusher.asked] == [1, 2, 3]
    flusher.asked[1][2](None)
    flusher.asked[0][2](OSError("the disk"))
    assert answers == []
    flusher.asked[2][2](None)
    assert answers == [response]
    assert [result.error for result in results] == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE, ErrorCode.NONE]
    assert [result.base_offset for result in results] == [-1, 10, 20]
