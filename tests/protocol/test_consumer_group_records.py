"""Records of consumer groups (KIP-848): golden bytes, both ways, only DecodeError on hostile bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.groups import consumer_group_keys as keys
from barnabas.protocol.groups import consumer_group_values as values
from barnabas.protocol.groups.consumer_protocol import (
    NEWEST,
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from barnabas.protocol.groups.keys import decode_key, encode_key

TOPIC_ID = bytes(range(1, 17))
TEXT = st.text(max_size=20)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
IDS = st.binary(min_size=16, max_size=16)
EPOCHS = st.dictionaries(IDS, st.dictionaries(INT32, INT32, max_size=4), max_size=3)
TOPICS = st.lists(TEXT, max_size=3).map(tuple)
CLASSIC = st.builds(
    values.ClassicMemberMetadata, INT32, st.lists(st.tuples(TEXT, st.binary(max_size=9)), max_size=2).map(tuple)
)

KINDS: list[tuple[Any, Callable[[bytes], Any]]] = [
    (st.builds(values.ConsumerGroupMetadataValue, INT32, INT64), values.decode_consumer_group_metadata),
    (
        st.builds(
            values.MemberMetadataValue,
            st.none() | TEXT,
            st.none() | TEXT,
            TEXT,
            TEXT,
            TOPICS,
            st.none() | TEXT,
            INT32,
            st.none() | TEXT,
            st.none() | CLASSIC,
        ),
        values.decode_member_metadata,
    ),
    (st.builds(values.TargetAssignmentMetadataValue, INT32, INT64), values.decode_target_assignment_metadata),
    (
        st.builds(
            values.TargetAssignmentMemberValue, st.dictionaries(IDS, st.frozensets(INT32, max_size=4), max_size=3)
        ),
        values.decode_target_assignment_member,
    ),
    (
        st.builds(values.CurrentMemberAssignmentValue, INT32, INT32, st.integers(-128, 127), EPOCHS, EPOCHS),
        values.decode_current_member_assignment,
    ),
    (st.builds(values.RegularExpressionValue, TOPICS, INT64, INT64), values.decode_regular_expression),
]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (keys.ConsumerGroupMetadataKey("g"), "0003000167"),
        (keys.ConsumerGroupPartitionMetadataKey("g"), "0004000167"),
        (keys.ConsumerGroupMemberMetadataKey("g", "m"), "000500016700016d"),
        (keys.TargetAssignmentMetadataKey("g"), "0006000167"),
        (keys.TargetAssignmentMemberKey("g", "m"), "000700016700016d"),
        (keys.CurrentMemberAssignmentKey("g", "m"), "000800016700016d"),
        (keys.RegularExpressionKey("g", "a.*"), "00100001670003612e2a"),
    ],
)
def test_keys_have_the_bytes_of_kafka(key: keys.ConsumerGroupKey, expected: str) -> None:
    assert encode_key(key).hex() == expected
    assert decode_key(bytes.fromhex(expected)) == key
    assert type(decode_key(bytes.fromhex(expected))) is type(key)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (values.ConsumerGroupMetadataValue(2), "00000000000200"),
        (values.ConsumerGroupMetadataValue(2, 3), "0000000000020100080000000000000003"),
        (values.TargetAssignmentMetadataValue(2, 3), "0000000000020100080000000000000003"),
        (
            values.MemberMetadataValue(None, "r", "c", "/h", ("t",), "", 5, None),
            "00000002720263032f6802027401000000050001000100",
        ),
        (
            values.TargetAssignmentMemberValue({TOPIC_ID: frozenset({1, 0})}),
            "000002" + TOPIC_ID.hex() + "0300000000000000010000",
        ),
        (
            values.CurrentMemberAssignmentValue(2, 1, 0, {TOPIC_ID: {0: 2}}, {}),
            "000000000002000000010002" + TOPIC_ID.hex() + "020000000001000502000000020100",
        ),
        (values.RegularExpressionValue(("t",), 3, 4), "00000202740000000000000003000000000000000400"),
    ],
)
def test_values_have_the_bytes_of_kafka(value: values.ConsumerGroupValue, expected: str) -> None:
    assert values.encode_consumer_group_value(value).hex() == expected


@pytest.mark.parametrize(("strategy", "decode"), KINDS)
@given(data=st.data())
def test_values_come_back(strategy: Any, decode: Callable[[bytes], Any], data: st.DataObject) -> None:
    value = data.draw(strategy)
    assert decode(values.encode_consumer_group_value(value)) == value


@pytest.mark.parametrize(("strategy", "decode"), KINDS)
@given(data=st.data())
def test_hostile_values_raise_decode_errors_only(
    strategy: Any, decode: Callable[[bytes], Any], data: st.DataObject
) -> None:
    encoded = values.encode_consumer_group_value(data.draw(strategy))
    at = data.draw(st.integers(0, len(encoded) - 1))
    for hostile in (encoded[:at], encoded[:at] + data.draw(st.binary(max_size=9)) + encoded[at + 1 :]):
        try:
            decode(hostile)
        except DecodeError:
            continue


def test_a_partition_of_an_older_kafka_has_the_epoch_of_its_member() -> None:
    old = bytes.fromhex("000000000007000000060002" + TOPIC_ID.hex() + "0200000003000100")
    assert values.decode_current_member_assignment(old).assigned == {TOPIC_ID: {3: 7}}


@given(
    st.builds(
        Subscription,
        st.lists(TEXT, max_size=3),
        st.none() | st.binary(max_size=9),
        st.dictionaries(TEXT, st.lists(INT32, max_size=3).map(tuple), max_size=2),
        INT32,
        st.none() | TEXT,
        st.just(NEWEST),
    )
)
def test_subscriptions_come_back(value: Subscription) -> None:
    assert decode_subscription(encode_subscription(value)) == value


@given(
    st.builds(
        Assignment,
        st.dictionaries(TEXT, st.lists(INT32, max_size=3).map(tuple), max_size=3),
        st.none() | st.binary(max_size=9),
        st.just(NEWEST),
    )
)
def test_assignments_come_back(value: Assignment) -> None:
    assert decode_assignment(encode_assignment(value)) == value


@given(st.binary(max_size=60))
def test_hostile_subscriptions_raise_decode_errors_only(data: bytes) -> None:
    for decode in (decode_subscription, decode_assignment):
        try:
            decode(data)
        except DecodeError:
            continue
