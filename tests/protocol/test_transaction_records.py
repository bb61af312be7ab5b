"""Records of `__transaction_state`: golden bytes of both versions, both ways, and only DecodeError on hostile bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.transactions.keys import decode_transaction_key, encode_transaction_key
from barnabas.protocol.transactions.values import (
    TransactionLogValue,
    decode_transaction_value,
    encode_transaction_value,
    is_known_version,
)

OPEN = TransactionLogValue(
    4000,
    7,
    60_000,
    1,
    [("t", [0, 2]), ("orders", [1])],
    1_700_000_000_001,
    1_700_000_000_000,
    previous_producer_id=3999,
    next_producer_id=4001,
    client_version=2,
)
HEAD = "0000000000000fa0 0007 0000ea60 01"
TIMES = "0000018bcfe56801 0000018bcfe56800"

VERSION_0 = f"""0000 {HEAD} 00000002
    0001 74 00000002 00000000 00000002
    0006 6f7264657273 00000001 00000001
    {TIMES}"""
VERSION_1 = f"""0001 {HEAD} 03
    02 74 03 00000000 00000002 00
    07 6f7264657273 02 00000001 00
    {TIMES}
    03 00 08 0000000000000f9f 01 08 0000000000000fa1 02 02 0002"""

INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT16 = st.integers(-(2**15), 2**15 - 1)
TOPICS = st.none() | st.lists(st.tuples(st.text(max_size=20), st.lists(INT32, max_size=5)), max_size=5)
VALUES = st.builds(
    TransactionLogValue,
    INT64,
    INT16,
    INT32,
    st.integers(-128, 127),
    TOPICS,
    INT64,
    INT64,
    INT64,
    INT64,
    INT16,
    INT16,
)


def test_the_bytes_of_version_0() -> None:
    data = bytes.fromhex(VERSION_0)
    assert bytes(encode_transaction_value(OPEN, 0)) == data
    assert decode_transaction_value(data) == OPEN._replace(
        previous_producer_id=-1, next_producer_id=-1, client_version=0
    )


def test_the_bytes_of_version_1() -> None:
    data = bytes.fromhex(VERSION_1)
    assert bytes(encode_transaction_value(OPEN, 1)) == data
    assert decode_transaction_value(data) == OPEN


def test_the_bytes_of_a_state_with_an_epoch_for_each_transaction() -> None:
    value = OPEN._replace(topics=[], next_producer_id=-1)
    expected = f"0001 {HEAD} 01 {TIMES} 02 00 08 0000000000000f9f 02 02 0002"
    assert bytes(encode_transaction_value(value, 1)) == bytes.fromhex(expected)
    assert bytes(encode_transaction_value(value, 0)) == bytes.fromhex(f"0000 {HEAD} 00000000 {TIMES}")


def test_version_1_leaves_out_defaults_and_an_empty_state_has_no_partitions() -> None:
    value = TransactionLogValue(4000, 7, 60_000, 1, None, 1_700_000_000_001, 1_700_000_000_000)
    assert bytes(encode_transaction_value(value, 1)) == bytes.fromhex(f"0001 {HEAD} 00 {TIMES} 00")
    assert bytes(encode_transaction_value(value, 0)) == bytes.fromhex(f"0000 {HEAD} ffffffff {TIMES}")
    assert bytes(encode_transaction_value(value._replace(topics=[]), 1)) == bytes.fromhex(f"0001 {HEAD} 01 {TIMES} 00")


def test_the_next_epoch_and_unknown_tagged_fields_of_a_later_kafka_are_read() -> None:
    value = OPEN._replace(next_producer_epoch=3)
    assert decode_transaction_value(bytes(encode_transaction_value(value, 1))) == value
    data = bytes.fromhex(f"0001 {HEAD} 00 {TIMES} 02 02 02 0002 63 01 ff")
    assert decode_transaction_value(data).client_version == 2


@given(VALUES)
def test_values_survive_both_versions(value: TransactionLogValue) -> None:
    assert decode_transaction_value(bytes(encode_transaction_value(value, 1))) == value
    kept = value._replace(previous_producer_id=-1, next_producer_id=-1, client_version=0, next_producer_epoch=-1)
    assert decode_transaction_value(bytes(encode_transaction_value(value, 0))) == kept


@given(st.binary(max_size=80) | st.binary(max_size=80).map(b"\x00\x01".__add__))
def test_hostile_values_raise_only_decode_errors(data: bytes) -> None:
    try:
        decode_transaction_value(data)
    except DecodeError:
        return
    assert is_known_version(data)


def test_values_of_unknown_versions_are_recognized() -> None:
    assert [is_known_version(bytes.fromhex(each)) for each in ("0000", "0001", "0002", "ffff", "00")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    with pytest.raises(DecodeError):
        decode_transaction_value(bytes.fromhex(VERSION_1.replace("0001", "0002", 1)))


def test_keys() -> None:
    data = bytes.fromhex("0000 0004 6dc3bc6c")
    assert encode_transaction_key("mül") == data
    assert decode_transaction_key(data) == "mül"
    assert decode_transaction_key(bytes.fromhex("0001 0004 6dc3bc6c")) is None
    for bad in ("", "0000", "0000 0005 6dc3bc6c", "0000 0003 6dc3bc6c", "0000 0001 c3"):
        with pytest.raises(DecodeError):
            decode_transaction_key(bytes.fromhex(bad))
    with pytest.raises(ValueError, match="32767"):
        encode_transaction_key("x" * 32_768)
