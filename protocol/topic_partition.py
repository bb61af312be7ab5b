"""The name of one log: a topic and a partition number, written `<topic>-<partition>` like Kafka's directories."""

from __future__ import annotations

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A topic's name and one of its partitions (0-based)."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
