"""The primitive types of flexible messages: golden bytes, round trips, and nothing but DecodeError on hostile bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.primitives import Reader, Writer

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**32 - 1, "ffffffff0f")],
)
def test_an_unsigned_varint_takes_seven_bits_a_byte_lowest_first(value: int, encoded: str) -> None:
    assert Writer().unsigned_varint(value).to_bytes().hex() == encoded
    assert Reader(bytes.fromhex(encoded)).unsigned_varint() == value


def test_compact_values_have_their_length_plus_one_and_null_is_zero() -> None:
    writer = Writer().compact_string("ab").compact_nullable_string(None).compact_bytes(b"").compact_nullable_bytes(None)
    assert writer.to_bytes() == b"\x03ab\x00\x01\x00"
    reader = Reader(writer.to_bytes())
    assert reader.compact_string() == "ab"
    assert reader.compact_nullable_string() is None
    assert reader.compact_bytes() == b""
    assert reader.compact_nullable_bytes() is None
    reader.ensure_end()


def test_a_compact_array_has_its_count_plus_one() -> None:
    writer = Writer()
    writer.compact_array([1, 2], writer.int16)
    writer.compact_array_length(None)
    assert writer.to_bytes() == bytes.fromhex("030001000200")
    reader = Reader(writer.to_bytes())
    assert reader.compact_array(reader.int16) == [1, 2]
    assert reader.compact_nullable_array(reader.int16) is None


def test_tagged_fields_are_written_by_ascending_tag() -> None:
    encoded = Writer().tagged_fields({8: b"xy", 0: b"z"}).to_bytes()
    assert encoded == bytes.fromhex("02 00 01 7a 08 02 7879")
    assert Reader(encoded).tagged_fields() == {0: b"z", 8: b"xy"}
    assert Writer().tagged_fields().to_bytes() == b"\x00"


@given(
    st.booleans(),
    st.integers(-128, 127),
    st.integers(-(2**15), 2**15 - 1),
    INT32,
    INT64,
    st.integers(0, 2**16 - 1),
    st.integers(0, 2**32 - 1),
    st.binary(min_size=16, max_size=16),
    st.none() | st.text(),
    st.none() | st.binary(),
    st.lists(INT32),
    st.dictionaries(st.integers(0, 2**32 - 1), st.binary()),
)
def test_written_values_are_read_back(
    flag: bool,
    i8: int,
    i16: int,
    i32: int,
    i64: int,
    u16: int,
    u32: int,
    uuid: bytes,
    text: str | None,
    blob: bytes | None,
    numbers: list[int],
    fields: dict[int, bytes],
) -> None:
    writer = Writer().boolean(flag).int8(i8).int16(i16).int32(i32).int64(i64).uint16(u16)
    writer.unsigned_varint(u32).uuid(uuid).compact_nullable_string(text)
    writer.compact_nullable_bytes(blob).compact_array(numbers, writer.int32).tagged_fields(fields).raw(b"end")

    reader = Reader(memoryview(writer.to_bytes()))
    fixed = [reader.boolean(), reader.int8(), reader.int16(), reader.int32(), reader.int64(), reader.uint16()]
    assert fixed == [flag, i8, i16, i32, i64, u16]
    assert (reader.unsigned_varint(), reader.uuid(), reader.compact_nullable_string()) == (u32, uuid, text)
    assert reader.compact_nullable_bytes() == blob
    assert reader.compact_array(reader.int32) == numbers
    assert reader.tagged_fields() == fields
    assert reader.remaining == 3
    assert reader.rest() == b"end"


@pytest.mark.parametrize(
    ("encoded", "method"),
    [
        ("", "int8"),
        ("00", "int16"),
        ("000000", "int32"),
        ("00000000000000", "int64"),
        ("80", "unsigned_varint"),
        ("ffffffff10", "unsigned_varint"),
        ("ffffffffff0f", "unsigned_varint"),
        ("00", "compact_string"),
        ("00", "compact_bytes"),
        ("00", "compact_array_length"),
        ("03ff61", "compact_string"),
        ("ffffffff0f", "compact_bytes"),
        ("ffffffff0f", "compact_array_length"),
        ("00" * 15, "uuid"),
        ("ffffffff0f", "tagged_fields"),
        ("02010001", "tagged_fields"),
        ("0201000100", "tagged_fields"),
    ],
)
def test_invalid_bytes_raise_a_decode_error(encoded: str, method: str) -> None:
    with pytest.raises(DecodeError):
        getattr(Reader(bytes.fromhex(encoded)), method)()


@given(st.binary(max_size=64), st.lists(st.sampled_from([n for n in dir(Reader) if not n.startswith("_")]), max_size=8))
def test_no_bytes_raise_anything_but_a_decode_error(data: bytes, methods: list[str]) -> None:
    reader = Reader(data)
    for name in methods:
        try:
            if name == "raw":
                reader.raw(7)
            elif name in ("compact_array", "compact_nullable_array"):
                getattr(reader, name)(reader.int32)
            elif name not in ("position", "remaining"):
                getattr(reader, name)()
        except DecodeError:
            return
        assert 0 <= reader.position <= len(data)


def test_a_value_that_its_type_cannot_hold_is_refused_by_the_writer() -> None:
    for write, value in [("int8", 128), ("int64", 2**63), ("uint16", -1)]:
        with pytest.raises(ValueError, match="does not fit"):
            getattr(Writer(), write)(value)
    with pytest.raises(ValueError, match="unsigned"):
        Writer().unsigned_varint(-1)
    with pytest.raises(ValueError, match="16 bytes"):
        Writer().uuid(b"short")
