"""Which of the stored batches that were read a share fetch looks at."""

from __future__ import annotations

import struct

from barnabas.broker.share.partition.reading import FoundRecords
from barnabas.protocol.records.builder import RecordBatchBuilder
from barnabas.protocol.wire.pieces import RecordBytes


def single_records(first: int, count: int) -> list[bytes]:
    batches = []
    for offset in range(first, first + count):
        builder = RecordBatchBuilder(max_bytes=1024)
        builder.append(0, None, b"value")
        batch = bytearray(builder.build())
        struct.pack_into(">q", batch, 0, offset)
        batches.append(bytes(batch))
    return batches


def part(found: FoundRecords, first: int, last: int) -> bytes:
    records = found.part(first, last)
    assert isinstance(records, RecordBytes)
    return records


def test_no_more_batches_are_looked_at_than_can_be_acquired() -> None:
    batches = single_records(10, 20)
    records = RecordBytes(b"".join(batches))
    found = FoundRecords(10, records, in_flight_to=12, most_new=3)
    assert [each.last_offset for each in found.batches] == [10, 11, 12, 13, 14, 15]
    assert found.size == len(records)
    assert part(found, 10, 15) == b"".join(batches[:6])
    assert part(found, 11, 12) == b"".join(batches[1:3])


def test_the_offsets_that_can_be_acquired_are_counted_from_the_first_that_the_log_has() -> None:
    records = RecordBytes(b"".join(single_records(100, 20)))
    found = FoundRecords(10, records, in_flight_to=12, most_new=3)
    assert [each.last_offset for each in found.batches] == [100, 101, 102, 103]
    assert found.part(100, 103).size == sum(each.size for each in found.batches)
    everything = FoundRecords(10, records, in_flight_to=12, most_new=50)
    assert everything.part(100, 119) is records
