"""Reads the records of a share fetch: those that were acquired, out of whole stored batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from barnabas.clients.config import ShareConsumerConfig
from barnabas.clients.errors import CorruptBatchError
from barnabas.clients.records import ShareRecord
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.share.share_fetch import AcquiredRecords, ShareFetchPartition
from barnabas.protocol.records.batch import RecordBatch, iter_batches
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.topic_partition import TopicPartition

MAX_MISSING: Final = 100_000
"""Acquired offsets without a record that are told to the broker; the locks of others end by themselves."""

_new_record = tuple.__new__


@dataclass(slots=True)
class Acquired:
    """What a partition's answer has: records, `gaps` without a record, `unread` offsets that cannot be read.

    Gaps and unread offsets come with their delivery counts. `error` is why offsets are unread.
    """

    records: list[ShareRecord] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    unread: list[tuple[int, int]] = field(default_factory=list)
    error: CorruptBatchError | None = None


def read_acquired(
    topic_partition: TopicPartition, fetched: ShareFetchPartition, config: ShareConsumerConfig
) -> Acquired:
    """Decode the acquired records. Raises nothing: offsets of a corrupt batch, and those after it, are unread."""
    result = Acquired()
    acquired = sorted(fetched.acquired, key=lambda each: each.first_offset)
    at, previous = 0, -1
    topic, partition = topic_partition
    end = 0
    batch: RecordBatch | None = None
    try:
        for batch in iter_batches(fetched.data):
            if config.check_crcs:
                batch.ensure_valid()
            if not batch.is_control:
                timestamp_type = int(batch.timestamp_type)
                for offset, timestamp, key, value, headers in read_records(
                    batch, max_decompressed_bytes=config.max_batch_bytes
                ):
                    while at < len(acquired) and acquired[at].last_offset < offset:
                        at += 1
                    if at < len(acquired) and acquired[at].first_offset <= offset and offset > previous:
                        previous, count = offset, acquired[at].delivery_count
                        fields = (topic, partition, offset, timestamp, timestamp_type, key, value, headers, count)
                        result.records.append(_new_record(ShareRecord, fields))
            end = batch.next_offset
    except DecodeError as error:
        next_offset = -1 if batch is None else batch.next_offset
        result.error = CorruptBatchError(topic_partition, end, next_offset, str(error))
    read = {record.offset for record in result.records}
    for offset, count in islice(_missing(acquired, read), MAX_MISSING):
        (result.gaps if offset < end else result.unread).append((offset, count))
    return result


def _missing(acquired: Sequence[AcquiredRecords], read: Set[int]) -> Iterator[tuple[int, int]]:
    for each in acquired:
        for offset in range(each.first_offset, each.last_offset + 1):
            if offset not in read:
                yield offset, each.delivery_count
