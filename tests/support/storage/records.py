"""Record batches for tests, and hypothesis strategies for their content."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from hypothesis import strategies as st

from barnabas.protocol.crc32c import crc32c
from barnabas.protocol.records import Codec, Record, RecordBatch, RecordBatchBuilder
from barnabas.protocol.records.layout import HEADER, HEADER_SIZE, LOG_OVERHEAD

TIMESTAMP = 1_700_000_000_000

_nullable_bytes = st.none() | st.binary(max_size=40)
_headers = st.lists(st.tuples(st.text(max_size=8), _nullable_bytes), max_size=3).map(tuple)
_record = st.builds(
    Record,
    offset=st.just(0),
    timestamp=st.integers(-1, 2**62),
    key=_nullable_bytes,
    value=_nullable_bytes | st.binary(min_size=100, max_size=300),
    headers=_headers,
)

records = st.lists(_record, min_size=1, max_size=20).map(
    lambda listed: [record._replace(offset=offset) for offset, record in enumerate(listed)]
)
"""Records at the offsets 0, 1, 2, ..."""


def build(listed: Iterable[Record], codec: Codec = Codec.NONE, **header: int) -> bytearray:
    """Return a writable batch of these records at their offsets."""
    builder = RecordBatchBuilder(codec, max_bytes=1 << 30, **header)  # type: ignore[arg-type]
    for record in listed:
        assert builder.append(record.timestamp, record.key, record.value, record.headers, offset=record.offset)
    return bytearray(builder.build())


def plain(count: int, codec: Codec = Codec.NONE, **header: int) -> bytearray:
    """Return a batch of `count` records, 1 ms apart, with keys and values."""
    return build(plain_records(count, header.get("base_offset", 0)), codec, **header)


def plain_records(count: int, base_offset: int = 0) -> list[Record]:
    """Return the records of `plain`."""
    return [Record(base_offset + i, TIMESTAMP + i, b"key-%d" % i, b"value-%d" % i) for i in range(count)]


def reseal(batch: bytearray) -> bytearray:
    """Set the length and CRC of a modified batch, as a hostile client would."""
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big", signed=True)
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    RecordBatch(batch).ensure_valid()
    return batch


def stored(
    base_offset: int,
    size: int = 100,
    *,
    delta: int = 0,
    timestamp: int = -1,
    epoch: int = 0,
    producer_id: int = -1,
    producer_epoch: int = 0,
    sequence: int = 0,
    attributes: int = 0,
) -> bytes:
    """Return a batch with a correct header and arbitrary payload, for scans of headers."""
    fields = (attributes, delta, 0, timestamp, producer_id, producer_epoch, sequence, 1)
    batch = HEADER.pack(base_offset, size - LOG_OVERHEAD, epoch, 2, 0, *fields) + b"\7" * (size - HEADER_SIZE)
    return batch[:17] + struct.pack(">I", crc32c(batch[21:])) + batch[21:]
