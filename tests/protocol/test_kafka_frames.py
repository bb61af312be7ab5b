"""The table of compressed bodies: what is taken for storage is what Kafka's decoders read, and it can be read back."""

from __future__ import annotations

import pytest

from barnabas.protocol.compression import Codec, DecompressionError, DecompressionLimitError, borrow_decompressed
from barnabas.protocol.errors import DecodeError
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
    with pytest.raises(DecompressionError, match=r"lz4 frame"):
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
        borrow_decompressed(Codec.GZIP, gzip_member(b"x") * 101 + b"garbage" * 9, 1000)
