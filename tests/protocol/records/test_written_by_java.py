"""Batches that Apache Kafka's Java client library (4.3.0, MemoryRecordsBuilder) wrote: read, and written again alike.

Three records each, base offset 100, leader epoch 5, producer 7, epoch 2, sequence 9. The interop tests let Java read
ours.
"""

from __future__ import annotations

from types import ModuleType

import pytest

from barnabas.protocol.records import (
    Codec,
    Record,
    RecordBatch,
    RecordBatchBuilder,
    RecordsSummary,
    check_records,
    read_records,
)

HEADER_TAIL = "0000018bcfe568000000018bcfe56802000000000000000700020000000900000003"
WRITTEN = {
    Codec.NONE: "0000000000000064000000680000000502"
    "1530b0f3000000000002" + HEADER_TAIL + "340000000a6b65792d300c76616c75652d04026804783004c3bc01"
    "1e000202011276616c75652d61626300160004040a6b65792d320100",
    Codec.GZIP: "0000000000000064000000750000000502"
    "d2eddc89000100000002" + HEADER_TAIL + "1f8b08000000000000ff33616060e0ca4eadd435e0294bcc294dd5"
    "6561ca60a9306039bc87518e8189895108229a9894cc20c6c0c202566ac4c800002d8f273c37000000",
    Codec.SNAPPY: "00000000000000640000007b0000000502"
    "9508fac9000200000002" + HEADER_TAIL + "82534e41505059000000000100000001000000363780340000000a"
    "6b65792d300c76616c75652d04026804783004c3bc011e000202011209163c61626300160004040a6b65792d320100",
    Codec.LZ4: "0000000000000064000000770000000502"
    "9b1b1336000300000002" + HEADER_TAIL + "04224d1860408237000080340000000a6b65792d300c76616c7565"
    "2d04026804783004c3bc011e000202011276616c75652d61626300160004040a6b65792d32010000000000",
    Codec.ZSTD: "0000000000000064000000740000000502"
    "5d01c654000400000002" + HEADER_TAIL + "28b52ffd0058b80100340000000a6b65792d300c76616c75652d04"
    "026804783004c3bc011e000202011276616c75652d61626300160004040a6b65792d320100010000",
}
RECORDS = [
    Record(100, 1_700_000_000_000, b"key-0", b"value-", (("h", b"x0"), ("ü", None))),
    Record(101, 1_700_000_000_001, None, b"value-abc"),
    Record(102, 1_700_000_000_002, b"key-2", None),
]


@pytest.mark.parametrize("codec", Codec)
def test_what_java_wrote_is_valid_and_is_read(kernel: ModuleType, codec: Codec) -> None:
    batch = RecordBatch(bytes.fromhex(WRITTEN[codec]))
    batch.ensure_valid()
    assert batch.codec is codec
    assert check_records(batch) == RecordsSummary(1_700_000_000_002, 2, 1_700_000_000_000, 1, 55)
    assert read_records(batch) == RECORDS


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.SNAPPY, Codec.LZ4])
def test_our_batches_are_equal_to_the_byte_if_the_compressors_are(kernel: ModuleType, codec: Codec) -> None:
    builder = RecordBatchBuilder(
        codec,
        max_bytes=1000,
        base_offset=100,
        partition_leader_epoch=5,
        producer_id=7,
        producer_epoch=2,
        base_sequence=9,
    )
    for record in RECORDS:
        builder.append(record.timestamp, record.key, record.value, record.headers)
    assert builder.build().hex() == WRITTEN[codec]
