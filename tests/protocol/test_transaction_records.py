"""Records of `__transaction_state`: golden bytes, and what is not known. tests/protocol/wire judges the fields."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.transactions.records import (
    TransactionLogKey,
    TransactionLogValue,
    TransactionPartitions,
    transactional_id_of,
)

OPEN = TransactionLogValue(
    4000,
    7,
    60_000,
    1,
    (TransactionPartitions("t", (0, 2)), TransactionPartitions("orders", (1,))),
    1_700_000_000_001,
    1_700_000_000_000,
    previous_producer_id=3999,
    next_producer_id=4001,
    client_transaction_version=2,
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


def test_the_bytes_of_version_0_lack_the_tagged_fields() -> None:
    data = bytes.fromhex(VERSION_0)
    assert OPEN.to_bytes(0) == data
    assert TransactionLogValue.from_bytes(data) == OPEN.replaced(
        previous_producer_id=-1, next_producer_id=-1, client_transaction_version=0
    )


def test_the_bytes_of_version_1() -> None:
    data = bytes.fromhex(VERSION_1)
    assert OPEN.to_bytes(1) == data
    assert TransactionLogValue.from_bytes(data) == OPEN
    assert list(OPEN.partitions) == [("t", 0), ("t", 2), ("orders", 1)]


def test_an_empty_state_has_no_partitions() -> None:
    value = TransactionLogValue(4000, 7, 60_000, 1, None, 1_700_000_000_001, 1_700_000_000_000)
    assert value.to_bytes(1) == bytes.fromhex(f"0001 {HEAD} 00 {TIMES} 00")
    assert value.to_bytes(0) == bytes.fromhex(f"0000 {HEAD} ffffffff {TIMES}")
    assert list(value.partitions) == []


def test_unknown_tagged_fields_of_a_later_kafka_are_skipped() -> None:
    data = bytes.fromhex(f"0001 {HEAD} 00 {TIMES} 02 02 02 0002 63 01 ff")
    assert TransactionLogValue.from_bytes(data).client_transaction_version == 2


def test_a_value_that_is_not_whole_or_of_an_unknown_version_is_refused() -> None:
    for version, is_known in (("0000", True), ("0001", True), ("0002", False), ("ffff", False)):
        assert TransactionLogValue.knows(bytes.fromhex(version)) == is_known
    too_long = VERSION_1.replace("02 02 0002", "02 03 000200")
    for text in ("", "00", "0001", VERSION_0 + "00", too_long, VERSION_1.replace("0001", "0002", 1)):
        with pytest.raises(DecodeError):
            TransactionLogValue.from_bytes(bytes.fromhex(text))


def test_keys() -> None:
    data = bytes.fromhex("0000 0004 6dc3bc6c")
    assert TransactionLogKey("mül").to_bytes() == data
    assert transactional_id_of(data) == "mül"
    assert transactional_id_of(bytes.fromhex("0001 0004 6dc3bc6c")) is None
    for bad in ("", "0000", "0000 0005 6dc3bc6c", "0000 0003 6dc3bc6c", "0000 0001 c3"):
        with pytest.raises(DecodeError):
            transactional_id_of(bytes.fromhex(bad))
    with pytest.raises(ValueError, match="transactional_id"):
        TransactionLogKey("x" * 32_768).to_bytes()
