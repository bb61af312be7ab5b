"""Records of `__consumer_offsets`: golden bytes, and what is not known. tests/protocol/wire judges the fields."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.groups import consumer_group_values as consumer
from barnabas.protocol.groups import keys
from barnabas.protocol.groups import share_group_values as share
from barnabas.protocol.groups.keys import GroupMetadataKey, OffsetCommitKey, UnknownKey, decode_key
from barnabas.protocol.groups.values import (
    GroupMetadataValue,
    GroupValue,
    MemberMetadata,
    OffsetCommitValue,
    decode_value,
)

TOPIC_ID = bytes(range(1, 17))


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (OffsetCommitKey("g", "topic", 3), "0001000167" + "0005" + b"topic".hex() + "00000003"),
        (GroupMetadataKey("group"), "00020005" + b"group".hex()),
        (keys.ConsumerGroupMetadataKey("g"), "0003000167"),
        (keys.ConsumerGroupPartitionMetadataKey("g"), "0004000167"),
        (keys.ConsumerGroupMemberMetadataKey("g", "m"), "00050001670001" + "6d"),
        (keys.ConsumerGroupTargetAssignmentMetadataKey("g"), "0006000167"),
        (keys.ConsumerGroupTargetAssignmentMemberKey("g", "m"), "000700016700016d"),
        (keys.ConsumerGroupCurrentMemberAssignmentKey("g", "m"), "000800016700016d"),
        (keys.ConsumerGroupRegularExpressionKey("g", "r"), "0010000167000172"),
        (keys.ShareGroupMemberMetadataKey("g", "m"), "000a00016700016d"),
        (keys.ShareGroupMetadataKey("g"), "000b000167"),
        (keys.ShareGroupTargetAssignmentMetadataKey("g"), "000c000167"),
        (keys.ShareGroupTargetAssignmentMemberKey("g", "m"), "000d00016700016d"),
        (keys.ShareGroupCurrentMemberAssignmentKey("g", "m"), "000e00016700016d"),
        (keys.ShareGroupStatePartitionMetadataKey("g"), "000f000167"),
    ],
)
def test_keys_have_the_bytes_of_kafka(key: keys.KnownKey, expected: str) -> None:
    assert key.to_bytes().hex() == expected
    assert decode_key(bytes.fromhex(expected)) == key
    assert key.group in ("g", "group")


def test_the_oldest_key_of_an_offset_means_the_same() -> None:
    assert decode_key(bytes.fromhex("0000" + "000167" + "000174" + "00000000")) == OffsetCommitKey("g", "t", 0)


@pytest.mark.parametrize("number", [9, 18, 24, 32767])
def test_a_key_of_a_newer_protocol_is_kept_as_it_is(number: int) -> None:
    data = number.to_bytes(2, "big") + b"\x00\x01gwhatever"
    assert decode_key(data) == UnknownKey(number, b"\x00\x01gwhatever")
    assert decode_key(data).to_bytes() == data


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (
            OffsetCommitKey("g", "t", 0),
            OffsetCommitValue(42, 7, "m", 1000, topic_id=TOPIC_ID),
            "0004 000000000000002a 00000007 026d 00000000000003e8 01 00 10" + TOPIC_ID.hex(),
        ),
        (
            OffsetCommitKey("g", "t", 0),
            OffsetCommitValue(1, -1, "", 2),
            "0004 0000000000000001 ffffffff 01 0000000000000002 00",
        ),
        (
            OffsetCommitKey("g", "t", 0),
            OffsetCommitValue(1, -1, "m", 2, expire_timestamp=3),
            "0001 0000000000000001 00016d 0000000000000002 0000000000000003",
        ),
        (
            GroupMetadataKey("g"),
            GroupMetadataValue(
                "consumer",
                5,
                "range",
                "m-1",
                1000,
                (
                    MemberMetadata(
                        member_id="m-1",
                        client_id="c",
                        client_host="/h",
                        rebalance_timeout=60_000,
                        session_timeout=10_000,
                        subscription=b"\x01",
                        assignment=b"",
                    ),
                ),
            ),
            "0003 0008 636f6e73756d6572 00000005 0005 72616e6765 0003 6d2d31 00000000000003e8 00000001"
            "0003 6d2d31 ffff 0001 63 0002 2f68 0000ea60 00002710 00000001 01 00000000",
        ),
        (keys.ConsumerGroupMetadataKey("g"), consumer.ConsumerGroupMetadataValue(2), "0000 00000002 00"),
        (
            keys.ConsumerGroupMetadataKey("g"),
            consumer.ConsumerGroupMetadataValue(2, 3),
            "0000 00000002 01 00 08 0000000000000003",
        ),
        (
            keys.ConsumerGroupMemberMetadataKey("g", "m"),
            consumer.ConsumerGroupMemberMetadataValue(
                instance_id=None,
                rack_id="r",
                client_id="c",
                client_host="/h",
                subscribed_topic_names=("t",),
                subscribed_topic_regex="",
                rebalance_timeout_ms=5,
                server_assignor=None,
                classic_member_metadata=None,
            ),
            "0000 00 0272 0263 032f68 02 0274 01 00000005 00 01 00 01 00",
        ),
        (
            keys.ConsumerGroupTargetAssignmentMemberKey("g", "m"),
            consumer.ConsumerGroupTargetAssignmentMemberValue.of({TOPIC_ID: frozenset({1, 0})}),
            "0000 02" + TOPIC_ID.hex() + "03 00000000 00000001 00 00",
        ),
        (
            keys.ConsumerGroupCurrentMemberAssignmentKey("g", "m"),
            consumer.ConsumerGroupCurrentMemberAssignmentValue(2, 1, 0, consumer.held_rows({TOPIC_ID: {0: 2}}), ()),
            "0000 00000002 00000001 00 02" + TOPIC_ID.hex() + "02 00000000 01 00 05 02 00000002 01 00",
        ),
        (
            keys.ConsumerGroupRegularExpressionKey("g", "r"),
            consumer.ConsumerGroupRegularExpressionValue(("t",), 3, 4),
            "0000 02 0274 0000000000000003 0000000000000004 00",
        ),
        (
            keys.ShareGroupStatePartitionMetadataKey("g"),
            share.ShareGroupStatePartitionMetadataValue(
                (share.TopicPartitionsInfo(TOPIC_ID, "t", (1,)),), (), (share.TopicInfo(TOPIC_ID, "t"),)
            ),
            f"0000 02 {TOPIC_ID.hex()} 0274 02 00000001 00 01 02 {TOPIC_ID.hex()} 0274 00 00",
        ),
    ],
)
def test_values_have_the_bytes_of_kafka_in_the_version_that_it_writes(
    key: keys.KnownKey, value: GroupValue, expected: str
) -> None:
    data = bytes.fromhex(expected)
    assert value.to_bytes() == data
    assert decode_value(key, data) == value


def test_a_member_with_the_classic_protocol_has_its_protocols() -> None:
    classic = consumer.ClassicMemberMetadata(7, (consumer.ClassicProtocol("range", b"\x01"),))
    head = "0000 00 00 0263 032f68 01 00 00000005 00"
    for tags, expected in (
        ("01 00 10 01 00000007 02 0672616e6765 0201 00 00", classic),
        ("01 00 01 00", None),
        ("00", consumer.NO_CLASSIC),
    ):
        value = consumer.ConsumerGroupMemberMetadataValue.from_bytes(data := bytes.fromhex(head + tags))
        assert value.classic_member_metadata == expected
        assert value.to_bytes() == data
    assert (classic.names, classic.metadata_of("range")) == (["range"], b"\x01")


@pytest.mark.parametrize("epochs", [None, (), (7,)])
def test_partitions_without_epochs_have_the_members_epoch(epochs: tuple[int, ...] | None) -> None:
    rows = (consumer.HeldPartitions(TOPIC_ID, (0, 1), epochs),)
    for epoch, expected in ((3, 3), (-2, 0)):
        value = consumer.ConsumerGroupCurrentMemberAssignmentValue(epoch, 1, 0, rows, ())
        assert value.epochs_of(rows) == {TOPIC_ID: {0: expected, 1: expected}}
    rows = (consumer.HeldPartitions(TOPIC_ID, (0, 1), (4, 5)),)
    assert value.epochs_of(rows) == {TOPIC_ID: {0: 4, 1: 5}}


@pytest.mark.parametrize(
    "data",
    [
        *(
            key + tail
            for key in (b"\0\1\0\5g", b"\0\1\0\1g\0\1t\0\0\0", b"\0\2\0\1\xff", b"\xff\xff")
            for tail in (b"",)
        ),
        b"",
        b"\0",
        b"\0\1\0\1g\0\1t\0\0\0\0\0",
        b"\0\3\xff\xff",
    ],
)
def test_a_key_that_is_not_whole_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_key(data)


@pytest.mark.parametrize("key", [OffsetCommitKey("g", "t", 0), GroupMetadataKey("g"), keys.ShareGroupMetadataKey("g")])
@pytest.mark.parametrize("version", [-1, 5])
def test_a_value_of_an_unknown_version_is_refused(key: keys.KnownKey, version: int) -> None:
    data = version.to_bytes(2, "big", signed=True) + bytes(40)
    with pytest.raises(DecodeError, match=f"version {version}, the newest known is"):
        decode_value(key, data)
    for short in (b"", b"\0"):
        with pytest.raises(DecodeError):
            decode_value(key, short)


def test_a_string_that_does_not_fit_is_a_value_error() -> None:
    for key in (OffsetCommitKey("x" * 32_768, "t", 0), OffsetCommitKey("g", "x" * 32_768, 0)):
        with pytest.raises(ValueError, match=r"group|topic"):
            key.to_bytes()
