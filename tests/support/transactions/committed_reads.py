"""Fetches at read_committed, filtered as Kafka's consumer filters them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from barnabas.protocol.records.batch import RecordBatch, iter_batches
from barnabas.protocol.records.end_marker import decode_end_marker
from barnabas.protocol.records.reader import read_records
from tests.support.kafka.kafka_wire import KafkaWire, schema

_FETCH_VERSION = 11
_MAX_BYTES = 1 << 22
_NOT_YET = (3, 5, 6, 56)
WAIT_S = 30.0
_COMMITTED_ONLY, _EVERYTHING = 1, 0
_LATEST = -1


@dataclass
class FetchedPartition:
    """Committed values by offset, all markers, and the offset to continue from."""

    partition: int
    next_offset: int
    values: list[tuple[int, bytes]] = field(default_factory=list)
    markers: list[RecordBatch] = field(default_factory=list)


class PartitionUnavailableError(OSError):
    """The partition has no leader, or its log directory is offline."""


def fetch_committed(
    wire: KafkaWire, topic: str, partition: int, offset: int, *, wait_s: float = WAIT_S
) -> FetchedPartition:
    """Read a partition from `offset` to its last stable offset. Raises PartitionUnavailableError after `wait_s`."""
    found = FetchedPartition(partition, offset)
    while True:
        answer = _fetch(wire, topic, partition, found.next_offset, wait_s)
        if not answer.records:
            return found
        aborted = sorted((each.first_offset, each.producer_id) for each in answer.aborted_transactions or ())
        _collect(bytes(answer.records), aborted, found)


def end_offset(wire: KafkaWire, topic: str, partition: int, *, committed: bool) -> int:
    """Return a partition's last stable offset, or its high watermark."""
    kio = schema("list_offsets", 5, "request")
    entry = kio.ListOffsetsPartition(partition_index=partition, timestamp=_LATEST, current_leader_epoch=-1)
    topics = (kio.ListOffsetsTopic(name=topic, partitions=(entry,)),)
    level = _COMMITTED_ONLY if committed else _EVERYTHING
    answer = wire.call("list_offsets", 5, replica_id=-1, isolation_level=level, topics=topics)
    (found,) = answer.topics[0].partitions
    assert found.error_code == 0, found
    return int(found.offset)


def _collect(records: bytes, aborted: list[tuple[int, int]], found: FetchedPartition) -> None:
    open_aborts: set[int] = set()
    for batch in iter_batches(records):
        while aborted and aborted[0][0] <= batch.last_offset:
            open_aborts.add(aborted.pop(0)[1])
        if batch.next_offset <= found.next_offset:
            continue
        if batch.is_control:
            found.markers.append(batch)
            (record,) = read_records(batch)
            if not decode_end_marker(record.key, record.value).is_commit:
                open_aborts.discard(batch.producer_id)
        elif not batch.is_transactional or batch.producer_id not in open_aborts:
            # The first batch contains the fetch offset, and may begin before it.
            wanted = (record for record in read_records(batch) if record.offset >= found.next_offset)
            found.values += [(record.offset, record.value or b"") for record in wanted]
        found.next_offset = batch.next_offset


def _fetch(wire: KafkaWire, topic: str, partition: int, offset: int, wait_s: float) -> Any:
    kio = schema("fetch", _FETCH_VERSION, "request")
    entry = kio.FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=_MAX_BYTES, current_leader_epoch=-1
    )
    deadline = time.monotonic() + wait_s
    while True:
        answer = wire.call(
            "fetch",
            _FETCH_VERSION,
            replica_id=-1,
            max_wait=timedelta(0),
            min_bytes=1,
            max_bytes=_MAX_BYTES,
            isolation_level=_COMMITTED_ONLY,
            topics=(kio.FetchTopic(topic=topic, partitions=(entry,)),),
            forgotten_topics_data=(),
            session_epoch=-1,
            rack_id="",
        )
        (found,) = answer.responses[0].partitions
        if found.error_code not in _NOT_YET:
            assert found.error_code == 0, found
            return found
        if time.monotonic() > deadline:
            raise PartitionUnavailableError(f"{topic}-{partition}: error {found.error_code}")
        time.sleep(0.02)  # polling another process with a deadline
