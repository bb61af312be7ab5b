"""Planning of reads from segment files: start and end offsets of each log, and its parts for tasks.

Nothing is written and no lock is taken, so the directory may belong to a running broker: records appended after
planning are not read, and a half-written batch at the end of the newest segment is ignored.

The driver reads names, sizes, checkpoints, indexes, and the batch headers after the last index entry. Tasks read the
records: one segment each, or byte ranges of a large segment, cut at index entries where a batch really begins. A
segment with a missing or wrong index is read in one part.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.reading.offsets import OffsetRange, Offsets, TopicIds, names_of
from barnabas.pipeline.reading.options import ReadOptions
from barnabas.pipeline.reading.ranges import split_by_count
from barnabas.pipeline.segments.directories import SegmentDirectory, find_directories
from barnabas.pipeline.segments.index import SegmentEnd, SegmentFile
from barnabas.pipeline.segments.reading import SegmentPart
from barnabas.pipeline.segments.times import first_offset_at
from barnabas.pipeline.segments.transactions import aborted_transactions, last_stable_offset
from barnabas.protocol.topic_name import INTERNAL_PREFIX
from barnabas.protocol.topic_partition import TopicPartition

_LOOKS = 3


class SegmentLog:
    """The ReadableLog of the logs below some paths, which `partitions` lists again each time."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._found: dict[TopicPartition, SegmentDirectory] = {}
        self._ends: dict[TopicPartition, SegmentEnd] = {}

    def partitions(self) -> frozenset[TopicPartition]:
        """Return the partitions of the subscription (default: all non-internal topics). Raises OptionError, OSError."""
        self._found = find_directories(self._options.paths)
        self._ends = {}
        subscription = self._options.subscription
        there = self._found.keys()
        if subscription is None:
            return frozenset(each for each in there if not each.topic.startswith(INTERNAL_PREFIX))
        if subscription.partitions:
            if missing := subscription.partitions - there:
                raise OptionError(f"option assign: {names_of(missing)} is not below {self._options.place}")
            return subscription.partitions
        if missing_topics := subscription.topics - {each.topic for each in there}:
            raise OptionError(
                f"option {subscription.option}: there is no topic {', '.join(sorted(missing_topics))} "
                f"below {self._options.place}"
            )
        return frozenset(each for each in there if subscription.matches(each.topic))

    def topic_ids(self) -> TopicIds:
        """Return the topic ids in partition.metadata. Raises OSError, CorruptLogError."""
        found: TopicIds = {}
        for topic_partition, directory in self._found.items():
            if topic_partition.topic not in found and (topic_id := directory.topic_id()) is not None:
                found[topic_partition.topic] = topic_id
        return found

    def earliest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """See ReadableLog."""
        return {each: self._found[each].earliest for each in partitions}

    def latest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """Return the offsets after the last whole batches; under read_committed the last stable offsets."""
        ends = {each: max(self._end(each).offset, self._found[each].earliest) for each in partitions}
        if not self._options.read_committed:
            return ends
        return {each: last_stable_offset(self._found[each], end) for each, end in ends.items()}

    def at(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """See ReadableLog."""
        return {
            each: first_offset_at(self._found[each], timestamp, self._end(each).offset)
            for each, timestamp in timestamps.items()
        }

    def parts(self, ranges: Sequence[OffsetRange], min_timestamp: int | None) -> Sequence[SegmentPart]:
        """Return parts by segment and size; minPartitions makes them smaller."""
        options = self._options
        if options.read_committed:
            min_timestamp = None  # a batch skipped by its timestamp might be a marker
        every_bytes = options.max_partition_bytes
        if options.min_partitions is not None:
            total = sum(segment.size_bytes for each in ranges for segment, _ in self._segments(each))
            every_bytes = max(1, min(every_bytes, total // options.min_partitions))
        found: list[SegmentPart] = []
        for each in split_by_count(ranges, None, options.max_records_per_partition):
            directory = self._found[each.topic_partition]
            aborted = aborted_transactions(directory) if options.read_committed else []
            for segment, next_base in self._segments(each):
                is_newest = segment is directory.segments[-1]
                if min_timestamp is not None and not is_newest:
                    largest = segment.max_timestamp()
                    if largest is not None and largest < min_timestamp:
                        continue
                parts = self._parts_of(directory, segment, next_base, each, every_bytes, min_timestamp)
                found += [part.with_aborted(aborted) for part in parts]
        return found

    def close(self) -> None:
        """See ReadableLog; no file is kept open."""

    def _parts_of(
        self,
        directory: SegmentDirectory,
        segment: SegmentFile,
        next_base: int,
        wanted: OffsetRange,
        every_bytes: int,
        min_timestamp: int | None,
    ) -> list[SegmentPart]:
        is_newest = segment is directory.segments[-1]
        end = self._end(wanted.topic_partition)
        size = end.position if is_newest else segment.size_bytes
        first = segment.position_for(wanted.start) if wanted.start > segment.base_offset else 0
        if min_timestamp is not None:
            first = max(first, segment.position_for_time(min_timestamp))
        cuts = segment.cuts(every_bytes)
        found = []
        for index, (position, base_offset) in enumerate(cuts):
            is_last = index + 1 == len(cuts)
            next_position, next_base_offset = (size, next_base) if is_last else cuts[index + 1]
            if (
                next_position <= first
                or base_offset >= wanted.end
                or (not is_last and next_base_offset <= wanted.start)
            ):
                continue
            fault = end.fault if is_newest and is_last and wanted.end >= end.offset else None
            end_offset = min(next_base_offset, wanted.end)
            span = (max(position, first), next_position)
            found.append(SegmentPart(directory.root, segment.path, base_offset, end_offset, wanted, *span, fault))
        return found

    def _segments(self, wanted: OffsetRange) -> list[tuple[SegmentFile, int]]:
        """Return the segments that a range overlaps, each with the next base offset (or the end of the range)."""
        segments = self._found[wanted.topic_partition].segments
        nexts = [segment.base_offset for segment in segments[1:]] + [wanted.end + 1]
        return [
            (segment, next_base)
            for segment, next_base in zip(segments, nexts, strict=True)
            if segment.base_offset < wanted.end and next_base > wanted.start and segment.size_bytes
        ]

    def _end(self, topic_partition: TopicPartition) -> SegmentEnd:
        end = self._ends.get(topic_partition)
        if end is None:
            end = self._ends[topic_partition] = self._found_end(topic_partition)
        return end

    def _found_end(self, topic_partition: TopicPartition) -> SegmentEnd:
        """Return the end of the newest segment; if retention deleted it, list the directory again for a newer one."""
        for _ in range(_LOOKS):
            segments = self._found[topic_partition].segments
            try:
                return segments[-1].end() if segments else SegmentEnd(0, 0, None)
            except FileNotFoundError:
                self._found[topic_partition] = self._found[topic_partition].looked_at_again()
        return segments[-1].end()
