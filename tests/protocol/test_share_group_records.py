"""Records of share groups (KIP-932): golden bytes, both ways, only DecodeError on hostile bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.groups import share_group_keys as keys
from barnabas.protocol.groups import share_group_values as values
from barnabas.protocol.groups.keys import decode_key, encode_key

TOPIC_ID = bytes(range(1, 17))
TEXT = st.text(max_size=20)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
IDS = st.binary(min_size=16, max_size=16)
NUMBERS = st.frozensets(INT32, max_size=4)
PARTITIONS = st.dictionaries(IDS, NUMBERS, max_size=3)
STATES = st.dictionaries(IDS, st.builds(values.StateTopic, TEXT, NUMBERS), max_size=3)

KINDS: list[tuple[Any, Callable[[bytes], Any]]] = [
    (st.builds(values.ShareGroupMetadataValue, INT32, INT64), values.decode_share_group_metadata),
    (
        st.builds(values.ShareMemberMetadataValue, st.none() | TEXT, TEXT, TEXT, st.lists(TEXT, max_size=3).map(tuple)),
        values.decode_share_member_metadata,
    ),
    (st.builds(values.ShareTargetMetadataValue, INT32, INT64), values.decode_share_target_metadata),
    (st.builds(values.ShareTargetMemberValue, PARTITIONS), values.decode_share_target_member),
    (
        st.builds(values.ShareCurrentAssignmentValue, INT32, INT32, st.integers(-128, 127), PARTITIONS),
        values.decode_share_current_assignment,
    ),
    (
        st.builds(values.ShareStatePartitionsValue, STATES, STATES, st.dictionaries(IDS, TEXT, max_size=3)),
        values.decode_share_state_partitions,
    ),
]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (keys.ShareMemberMetadataKey("g", "m"), "000a00016700016d"),
        (keys.ShareGroupMetadataKey("g"), "000b000167"),
        (keys.ShareTargetMetadataKey("g"), "000c000167"),
        (keys.ShareTargetMemberKey("g", "m"), "000d00016700016d"),
        (keys.ShareCurrentAssignmentKey("g", "m"), "000e00016700016d"),
        (keys.ShareStatePartitionsKey("g"), "000f000167"),
    ],
)
def test_keys_have_the_bytes_of_kafka(key: keys.ShareGroupKey, expected: str) -> None:
    assert encode_key(key).hex() == expected
    assert decode_key(bytes.fromhex(expected)) == key
    assert type(decode_key(bytes.fromhex(expected))) is type(key)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (values.ShareGroupMetadataValue(2, 3), "000000000002000000000000000300"),
        (values.ShareMemberMetadataValue(None, "c", "/h", ("t",)), "0000000263032f6802027400"),
        (values.ShareTargetMetadataValue(2), "00000000000200"),
        (values.ShareTargetMetadataValue(2, 3), "0000000000020100080000000000000003"),
        (
            values.ShareTargetMemberValue({TOPIC_ID: frozenset({1, 0})}),
            "000002" + TOPIC_ID.hex() + "0300000000000000010000",
        ),
        (
            values.ShareCurrentAssignmentValue(2, 1, 0, {TOPIC_ID: frozenset({0})}),
            "000000000002000000010002" + TOPIC_ID.hex() + "02000000000000",
        ),
        (
            values.ShareStatePartitionsValue({TOPIC_ID: values.StateTopic("t", frozenset({1}))}, {}, {TOPIC_ID: "t"}),
            "000002" + TOPIC_ID.hex() + "0274020000000100" + "01" + "02" + TOPIC_ID.hex() + "02740000",
        ),
    ],
)
def test_values_have_the_bytes_of_kafka(value: values.ShareGroupValue, expected: str) -> None:
    assert values.encode_share_group_value(value).hex() == expected


@pytest.mark.parametrize(("strategy", "decode"), KINDS)
@given(data=st.data())
def test_values_come_back(strategy: Any, decode: Callable[[bytes], Any], data: st.DataObject) -> None:
    value = data.draw(strategy)
    assert decode(values.encode_share_group_value(value)) == value


@pytest.mark.parametrize(("strategy", "decode"), KINDS)
@given(data=st.data())
def test_hostile_values_raise_decode_errors_only(
    strategy: Any, decode: Callable[[bytes], Any], data: st.DataObject
) -> None:
    encoded = values.encode_share_group_value(data.draw(strategy))
    at = data.draw(st.integers(0, len(encoded) - 1))
    for hostile in (encoded[:at], encoded[:at] + data.draw(st.binary(max_size=9)) + encoded[at + 1 :]):
        try:
            decode(hostile)
        except DecodeError:
            continue
