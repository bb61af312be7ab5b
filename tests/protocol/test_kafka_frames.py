"""The table of compressed bodies: what is taken for storage is what Kafka's decoders read, and it can be read back."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from barnabas.protocol.compression import Codec, borrow_decompressed
from barnabas.protocol.errors import DecodeError, DecompressionError, DecompressionLimitError
from barnabas.protocol.records import RecordBatch, check_records, read_records
from tests.support.kafka.bodies import Body, Verdict, bodies, gzip_member, listed, lz4_frame, lz4_of, payload

LENIENT = (
    "lz4: linked blocks",
    "lz4: cramjam's default",
    "lz4: flag of linked blocks",
    "lz4: dictionary id",
    "lz4: two frames",
    "lz4: an empty frame first",
    "lz4: a skippable frame first",
    "lz4: empty block in the middle",
    "snappy: version 0 of the second stream",
    "snappy: a length of 6 bytes",
    "snappy: a length of 10 bytes",
)
"""Kafka does not read them; what is stored already, by others or by earlier versions, we do."""


@pytest.mark.parametrize("body", bodies(), ids=lambda body: body.name)
def test_a_body_is_taken_if_kafka_reads_it(body: Body) -> None:
    batch = RecordBatch(body.batch())
    if body.verdict is Verdict.READ:
        check_records(batch, as_kafka=True)
        assert read_records(batch) == listed(body.records)
    else:
        with pytest.raises(DecodeError):
            check_records(batch, as_kafka=True)


@pytest.mark.parametrize("name", LENIENT)
def test_a_stored_body_that_kafka_does_not_read_is_read_by_us(name: str) -> None:
    body = next(each for each in bodies() if each.name == name)
    batch = RecordBatch(body.batch())
    assert read_records(batch) == listed(body.records)
    with pytest.raises(DecompressionError, match=r"lz4 frame|snappy"):
        check_records(batch, as_kafka=True)


def test_the_limit_holds_where_kafka_reads_more_than_the_library() -> None:
    data = payload(2000)
    for codec, body in (
        (Codec.GZIP, gzip_member(data) + b"garbage" * 9),
        (Codec.LZ4, lz4_of(data) + b"x"),
        (Codec.LZ4, lz4_frame(lz4_of(data)[7:-4], 0x6C, extra=bytes(8), end=bytes(8))),
    ):
        assert borrow_decompressed(codec, body, len(data), as_kafka=True) == data
        with pytest.raises(DecompressionLimitError):
            borrow_decompressed(codec, body, len(data) - 1, as_kafka=True)


def test_a_fault_after_very_many_gzip_members_is_not_looked_for() -> None:
    with pytest.raises(DecompressionError, match="more than 100 gzip members"):
        borrow_decompressed(Codec.GZIP, gzip_member(b"x") * 101 + b"garbage" * 9, 1 << 20)


def test_a_damaged_frame_that_only_we_read_is_called_damaged() -> None:
    linked = next(each for each in bodies() if each.name == "lz4: linked blocks").data
    with pytest.raises(DecompressionError, match="records are not lz4"):
        borrow_decompressed(Codec.LZ4, linked[:-50], 1 << 20)


@pytest.mark.parametrize("end", [b"\0", b""])
def test_a_long_name_in_a_gzip_header_costs_no_python_code_for_each_byte(end: bytes) -> None:
    data = payload(3)
    named = gzip_member(data, 0x18, b"n" * 100_000 + end + b"comment" + end)
    lines = 0

    def count(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        if end:
            assert borrow_decompressed(Codec.GZIP, named, len(data)) == data
        else:
            with pytest.raises(DecompressionError):
                borrow_decompressed(Codec.GZIP, named, len(data))
    finally:
        sys.settrace(before)
    assert 0 < lines < 1000
