"""The end of `barnabas consume`, with a fake consumer for timing that a broker cannot reproduce."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import pytest

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.records import ConsumerRecord
from barnabas.commands.records.record_lines import PlainFormat
from barnabas.commands.records.record_printer import Reading, print_records
from barnabas.protocol.topic_partition import TopicPartition

PARTITION = TopicPartition("t", 0)


class ScriptedConsumer:
    """Hands out the given polls. `end` is the end offset at the start; `hole` a last offset without a record."""

    polls: list[list[int]]
    end: int
    hole: int | None

    def __init__(self, config: ConsumerConfig) -> None:
        self._position = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def partitions_for(self, topic: str) -> tuple[TopicPartition, ...]:
        return (TopicPartition(topic, 0),)

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 0)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, self.end)

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        return None

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._position = offset

    async def position(self, partition: TopicPartition) -> int:
        return self._position

    async def poll(self, max_records: int, timeout_ms: float) -> list[ConsumerRecord]:
        if not self.polls:
            assert self.hole is not None, "polled beyond the end"
            self._position = self.hole + 1
            return []
        offsets = self.polls.pop(0)
        self._position = offsets[-1] + 1
        return [ConsumerRecord("t", 0, offset, 0, 0, None, b"%d" % offset, ()) for offset in offsets]


async def _printed(
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    polls: list[list[int]],
    *,
    end: int,
    hole: int | None = None,
) -> list[bytes]:
    script: dict[str, Any] = {"polls": polls, "end": end, "hole": hole}
    monkeypatch.setattr(
        "barnabas.commands.records.record_printer.Consumer", type("Scripted", (ScriptedConsumer,), script)
    )
    reading = Reading("t", (), ("earliest", 0), None, True, None)
    written = await print_records(ConsumerConfig(), reading, PlainFormat())
    lines = capfdbinary.readouterr().out.splitlines()
    assert written == len(lines)
    return lines


async def test_records_that_came_after_the_start_are_beyond_the_end(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert await _printed(monkeypatch, capfdbinary, [[0, 1], [2, 3, 4]], end=3) == [b"0", b"1", b"2"]


async def test_the_end_is_reached_over_offsets_without_a_record(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert await _printed(monkeypatch, capfdbinary, [[0, 1]], end=4, hole=3) == [b"0", b"1"]


async def test_an_empty_partition_is_at_its_end_without_a_poll(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert await _printed(monkeypatch, capfdbinary, [], end=0) == []
