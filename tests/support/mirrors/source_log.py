"""A log as the source of a mirror, with Kafka's answers to fetches, and what a copy of it must be."""

from __future__ import annotations

from typing import Any, cast

from barnabas.broker.mirrors.copied_log import CopiedLog
from barnabas.broker.mirrors.partition_copier import EpochEnd, FetchedPartition
from barnabas.broker.mirrors.stored_entries import Entry, iter_entries
from barnabas.broker.storage.log.appending.follower import FollowerAppender
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.protocol.errors import ErrorCode
from tests.support.storage.bench import START_MS, append, sized_batch


class TruncatingManager:
    """The part of LogManager that a copied log uses."""

    def __init__(self, log: PartitionLog) -> None:
        self.log = log

    def truncate(self, _: object, offset: int) -> None:
        self.log.truncate_to(offset)

    def restart(self, _: object, offset: int) -> None:
        self.log.truncate_fully_and_start_at(offset)


class SourceLog:
    """A log with Kafka's answers to fetches."""

    def __init__(self, log: PartitionLog, *, compares_epochs: bool) -> None:
        self.log = log
        self.epoch = 0
        self.timestamp = START_MS
        self._compares_epochs = compares_epochs

    def append(self, size: int) -> None:
        self.timestamp += 1
        append(self.log, sized_batch(size, self.timestamp), leader_epoch=self.epoch)

    def skip(self, offsets: int) -> None:
        """Leave a hole, as compaction does."""
        FollowerAppender(self.log.core, self.log.roller).skip_to(self.log.log_end_offset + offsets)
        self.append(100)

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        found = self.log.core.epochs.end_offset_for(epoch, self.log.log_end_offset)
        return EpochEnd(-1, -1) if found is None else EpochEnd(found.epoch, found.start_offset)

    def fetch(self, offset: int, last_epoch: int, max_bytes: int) -> FetchedPartition:
        log = self.log
        answer = FetchedPartition(high_watermark=log.log_end_offset, log_start_offset=log.log_start_offset)
        if self._compares_epochs and last_epoch >= 0:
            found = self.end_of_epoch(last_epoch)
            if found.end_offset < 0:
                return FetchedPartition(ErrorCode.OFFSET_OUT_OF_RANGE)
            if found.epoch < last_epoch or found.end_offset < offset:
                answer.diverging = found
                return answer
        if not log.log_start_offset <= offset <= log.log_end_offset:
            return FetchedPartition(ErrorCode.OFFSET_OUT_OF_RANGE)
        records = log.read(offset, max_bytes, upper_bound=log.log_end_offset, at_least_one_batch=True)
        if records is not None:
            answer.records = memoryview(cast(Any, records).read())
        return answer


def content(log: Any, start: int) -> bytes:
    offset, found = start, b""
    while (records := log.read(offset, 1 << 20, upper_bound=log.log_end_offset, at_least_one_batch=True)) is not None:
        data = records.read()
        found += data
        offset = max(each.last_offset for each in iter_entries(memoryview(data))) + 1
    return found


def entries(log: Any) -> list[Entry]:
    return list(iter_entries(memoryview(content(log, log.log_start_offset))))


def assert_equal(source: PartitionLog, copy: CopiedLog) -> None:
    start = source.log_start_offset
    assert (copy.start, copy.end) == (start, source.log_end_offset)
    assert content(copy.partition.log, start) == content(source, start)
    for offset in range(start, copy.end):
        assert copy.partition.log.core.epochs.epoch_for(offset) == source.core.epochs.epoch_for(offset), offset
