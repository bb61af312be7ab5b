"""Reads records of one partition, with what is stored about their batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from barnabas.clients.errors import ClientError, RefusedError, reason_of
from barnabas.clients.network.cluster import Cluster
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.messages.data.fetch import (
    TOPIC_IDS_FROM,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.protocol.messages.data.list_offsets import (
    REMOTE_TIMEOUT_MS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.records.batch import RecordBatch, iter_batches
from barnabas.protocol.records.builder import Buffer
from barnabas.protocol.records.end_marker import decode_end_marker, is_end_marker
from barnabas.protocol.records.layout import (
    MAGIC_POSITION,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
)
from barnabas.protocol.records.legacy.messages import (
    MAX_HEAD_SIZE,
    LegacyMessage,
    is_legacy_magic,
    read_legacy_records,
)
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.records.record import Headers
from barnabas.protocol.uuids import ZERO_UUID

FETCH_BYTES: Final = 1 << 20
"""Of one request; an answer has at least one batch."""

DECOMPRESSED_BYTES_MAX: Final = 64 << 20
"""Of one batch. Larger ones are named and not shown."""

_PURPOSE: Final = "fetch"
_REQUESTS_MAX: Final = 8
"""For one page: each answer may end in the middle of a batch, or have none but empty ones."""


class BatchFacts(NamedTuple):
    """The batch of a record, as stored. `marker`: how a transaction ended, of a control record."""

    base_offset: int
    last_offset: int
    size_bytes: int
    codec: str
    magic: int
    leader_epoch: int
    timestamp_type: str
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool


class ShownRecord(NamedTuple):
    """One record. `marker` is empty unless it is a control record."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    batch: BatchFacts
    marker: str = ""


class RecordsPage(NamedTuple):
    """Records from an offset on. `next_offset` is behind the last one; `problem` says why there are no more."""

    records: Sequence[ShownRecord]
    start_offset: int
    next_offset: int
    high_watermark: int
    problem: str = ""


async def read_page(
    kafka: Cluster, topic: str, topic_id: bytes, partition: int, leader: int, offset: int, count: int
) -> RecordsPage:
    """Read up to `count` records from `offset` on. Raises ClientError; RefusedError for an error of the partition."""
    found: list[ShownRecord] = []
    position, start, high_watermark, problem = offset, 0, offset, ""
    for _ in range(_REQUESTS_MAX):
        connection = await kafka.connections.connect(leader, _PURPOSE)
        wanted = FetchPartition(partition=partition, offset=position, max_bytes=FETCH_BYTES)
        topics = [FetchTopic(name=topic, topic_id=topic_id, partitions=[wanted])]
        query = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=FETCH_BYTES, topics=topics)
        highest = None if topic_id != ZERO_UUID else TOPIC_IDS_FROM - 1
        answer: FetchResponse = await connection.request(query, highest=highest)
        fetched = next((each for topic_ in answer.topics for each in topic_.partitions), None)
        error = answer.error if fetched is None else fetched.error
        if fetched is None or error is not ErrorCode.NONE:
            raise RefusedError(error, f"{topic}-{partition} at offset {position}: {reason_of(error)}")
        start, high_watermark = fetched.log_start_offset, fetched.high_watermark
        before = position
        try:
            for entry in entries_of(fetched.data):
                found += [each for each in records_of(entry) if each.offset >= position]
                position = entry.next_offset
        except DecodeError as fault:
            problem = f"the batch at offset {position} cannot be read: {fault}"
        if problem or len(found) >= count or position >= high_watermark or position == before:
            break
    if len(found) > count:
        position, problem = found[count].offset, ""
    return RecordsPage(found[:count], start, position, high_watermark, problem)


async def offset_at(kafka: Cluster, topic: str, partition: int, leader: int, timestamp_ms: int) -> int | None:
    """Return the offset of the first record at or after a time, None without one. Raises ClientError."""
    wanted = [
        ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition=partition, timestamp=timestamp_ms)])
    ]
    answer = await kafka.ask(leader, ListOffsetsRequest(isolation=0, topics=wanted, timeout_ms=REMOTE_TIMEOUT_MS))
    for result in answer.topics:
        for each in result.partitions:
            if each.error is not ErrorCode.NONE:
                raise RefusedError(each.error, f"{topic}-{partition}: {reason_of(each.error)}")
            return int(each.offset) if each.offset >= 0 else None
    raise ClientError(f"{topic}-{partition}: the broker's answer is empty")


def entries_of(fetched: Buffer) -> Iterator[RecordBatch | LegacyMessage]:
    """Yield the complete batches, and messages of format 0 and 1, of a fetch's answer. Raises DecodeError."""
    view, position = memoryview(fetched), 0
    while len(view) - position > MAGIC_POSITION:
        entry: RecordBatch | LegacyMessage | None
        if is_legacy_magic(view[position + MAGIC_POSITION]):
            if len(view) - position < MAX_HEAD_SIZE:
                return
            entry = LegacyMessage(view, position)
        else:
            entry = next(iter_batches(view, position), None)
        if entry is None or entry.size_bytes > len(view) - position:
            return
        yield entry
        position += entry.size_bytes


def records_of(entry: RecordBatch | LegacyMessage) -> Iterator[ShownRecord]:
    """Yield the records of a batch, a message or a wrapper. Raises DecodeError for a damaged one."""
    entry.ensure_valid()
    if isinstance(entry, LegacyMessage):
        yield from _old_records(entry)
        return
    batch = entry
    facts = BatchFacts(
        batch.base_offset,
        batch.last_offset,
        batch.size_bytes,
        batch.codec.name.lower(),
        batch.magic,
        batch.partition_leader_epoch,
        batch.timestamp_type.name,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.is_transactional,
    )
    for each in read_records(batch, max_decompressed_bytes=DECOMPRESSED_BYTES_MAX):
        marker = _marker(each.key, each.value) if batch.is_control else ""
        yield ShownRecord(each.offset, each.timestamp, each.key, each.value, each.headers, facts, marker)


def _old_records(message: LegacyMessage) -> Iterator[ShownRecord]:
    records = read_legacy_records(message, max_decompressed_bytes=DECOMPRESSED_BYTES_MAX)
    facts = BatchFacts(
        records[0].offset,
        message.offset,
        message.size_bytes,
        message.codec.name.lower(),
        message.magic,
        NO_PARTITION_LEADER_EPOCH,
        message.timestamp_type.name,
        NO_PRODUCER_ID,
        NO_PRODUCER_EPOCH,
        NO_SEQUENCE,
        is_transactional=False,
    )
    for each in records:
        yield ShownRecord(each.offset, each.timestamp, each.key, each.value, each.headers, facts)


def _marker(key: bytes | None, value: bytes | None) -> str:
    if not is_end_marker(key):
        return "control record"
    return "transaction committed" if decode_end_marker(key, value).is_commit else "transaction aborted"
