"""Who uses the disk, how fast it grows, and when it is full: pure, from segments and free space.

Growth is what has been appended within the last day and is still there. A topic grows until retention deletes as much
as comes in; what it has then is its steady size. Nothing else on the file systems is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from barnabas.protocol.messages.topics.explain_topic import (
        ExplainedPartition,
        ExplainedSegment,
        ExplainTopicResponse,
    )

DAY_MS: Final = 24 * 3600 * 1000


class TopicSpace(NamedTuple):
    """One topic on one file system. `steady_bytes` None: it grows without a limit, or compaction decides."""

    topic: str
    size_bytes: int
    bytes_per_day: float
    steady_bytes: int | None
    limit: str


class FileSystem(NamedTuple):
    """Log directories that share one file system; -1: not known."""

    paths: tuple[str, ...]
    total_bytes: int
    usable_bytes: int


class FileSystemSpace(NamedTuple):
    """What becomes of a file system at the present rate. `full_in_days` None: never."""

    file_system: FileSystem
    topics: Sequence[TopicSpace]
    full_in_days: float | None

    @property
    def size_bytes(self) -> int:
        """Of all segments."""
        return sum(each.size_bytes for each in self.topics)

    @property
    def bytes_per_day(self) -> float:
        """Of all topics."""
        return sum(each.bytes_per_day for each in self.topics)

    @property
    def steady_bytes(self) -> int | None:
        """Of all topics, None if one of them has none."""
        sizes = [each.steady_bytes for each in self.topics if each.bytes_per_day > 0 or each.steady_bytes is not None]
        known = [each for each in sizes if each is not None]
        return sum(known) if len(known) == len(sizes) else None


def explain_space(
    file_systems: Sequence[FileSystem], explained: Mapping[str, ExplainTopicResponse]
) -> list[FileSystemSpace]:
    """Explain each file system; its topics are sorted by size."""
    return [_explain(each, explained) for each in file_systems]


def _explain(file_system: FileSystem, explained: Mapping[str, ExplainTopicResponse]) -> FileSystemSpace:
    topics = []
    for name, answer in explained.items():
        partitions = [each for each in answer.partitions if each.log_dir in file_system.paths]
        if partitions:
            topics.append(_topic(name, partitions, answer))
    topics.sort(key=lambda each: (-each.size_bytes, each.topic))
    return FileSystemSpace(file_system, topics, _full_in_days(file_system.usable_bytes, topics))


def _topic(name: str, partitions: Sequence[ExplainedPartition], answer: ExplainTopicResponse) -> TopicSpace:
    unread = next((each for each in answer.settings if each.problem is not None), None)
    settings = {each.name: each.value or "" for each in answer.settings if each.problem is None}
    policy = settings.get("cleanup.policy", "")
    deletes = unread is None and "delete" in policy
    retention_ms, retention_bytes, segment_bytes = (
        int(settings.get(name, "-1")) for name in ("retention.ms", "retention.bytes", "segment.bytes")
    )
    size, rate, steady = 0, 0.0, 0.0
    for partition in partitions:
        partition_rate = sum(_within_a_day(each, answer.now_ms) for each in partition.segments)
        size += sum(each.size_bytes for each in partition.segments)
        rate += partition_rate
        limits = []
        if retention_ms >= 0:
            limits.append(partition_rate * retention_ms / DAY_MS)
        if retention_bytes >= 0:
            limits.append(float(retention_bytes))
        # Retention deletes whole segments, and never the one that is written.
        steady += (min(limits) if limits else 0.0) + (segment_bytes if partition_rate > 0 else 0)
    has_limit = deletes and (retention_ms >= 0 or retention_bytes >= 0)
    if unread is not None:
        limit = f"no limit: {unread.name}={unread.value} is not understood"
    elif not policy:
        limit = "no limit: cleanup.policy is empty"
    elif not deletes:
        limit = f"cleanup.policy={policy}: compaction decides, by the number of keys"
    elif not has_limit:
        limit = "no limit: retention.ms and retention.bytes are -1"
    else:
        limit = f"retention.ms={retention_ms}, retention.bytes={retention_bytes}"
    return TopicSpace(name, size, rate, round(steady) if has_limit else None, limit)


def _within_a_day(segment: ExplainedSegment, now_ms: int) -> float:
    """The bytes of a segment that were appended within the last day, by its timestamps."""
    first, last = segment.first_timestamp_ms, min(segment.largest_timestamp_ms, now_ms)
    begin = now_ms - DAY_MS
    if segment.size_bytes == 0 or last < begin:
        return 0.0
    if first < 0 or first >= begin or last <= first:
        return float(segment.size_bytes)
    return segment.size_bytes * (last - begin) / (last - first)


def _full_in_days(usable_bytes: int, topics: Sequence[TopicSpace]) -> float | None:
    """The time until the topics have grown by `usable_bytes`, each up to its steady size."""
    if usable_bytes < 0:
        return None
    growing = [(each.bytes_per_day, _room(each)) for each in topics if each.bytes_per_day > 0 and _room(each) != 0]
    left, days = float(usable_bytes), 0.0
    while growing:
        rate = sum(each for each, _ in growing)
        bounded = [room / each for each, room in growing if room is not None]
        until = min(bounded, default=None)
        if until is None or rate * until >= left:
            return days + left / rate
        left -= rate * until
        days += until
        later = [(each, None if room is None else room - each * until) for each, room in growing]
        growing = [(each, room) for each, room in later if room is None or room > 1]
    return None


def _room(topic: TopicSpace) -> float | None:
    return None if topic.steady_bytes is None else max(0.0, topic.steady_bytes - topic.size_bytes)
