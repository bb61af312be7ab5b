"""Offsets of a topic's partitions, for `topic describe`, `group` and `offsets`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barnabas.clients.admin.admin import Admin
from barnabas.clients.offsets import ListedOffset
from barnabas.commands.failures import CommandFailure
from barnabas.protocol.messages.data.list_offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from barnabas.protocol.topic_partition import TopicPartition


async def offsets_at(
    admin: Admin, topic: str, partitions: Iterable[int], timestamp: int, *, isolation: int = 0
) -> dict[int, ListedOffset]:
    """Find each partition's first record at or after `timestamp` (or -1, -2, -3 as in ListOffsets)."""
    wanted = {TopicPartition(topic, partition): timestamp for partition in partitions}
    if not wanted:
        return {}
    listed = await admin.list_offsets(wanted, isolation=isolation)
    return {topic_partition.partition: offset for topic_partition, offset in listed.items()}


async def earliest_and_latest(admin: Admin, topic: str, partitions: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Find each partition's log start offset and high watermark."""
    earliest = await offsets_at(admin, topic, partitions, EARLIEST_TIMESTAMP)
    latest = await offsets_at(admin, topic, partitions, LATEST_TIMESTAMP)
    return {partition: (earliest[partition].offset, latest[partition].offset) for partition in partitions}


async def chosen_partitions(admin: Admin, topic: str, wanted: Sequence[int]) -> list[int]:
    """The `wanted` partitions, by default all of the topic. Raises CommandFailure, RefusedError for unknown ones."""
    count = len((await admin.describe_topic(topic)).partitions)
    for partition in wanted:
        if partition >= count:
            raise CommandFailure(f"topic {topic} has no partition {partition}: its partitions are 0 to {count - 1}")
    return sorted(set(wanted)) if wanted else list(range(count))
