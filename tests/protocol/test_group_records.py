"""Records of `__consumer_offsets`: golden bytes, every version both ways, only DecodeError on hostile bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.groups import keys, offsets
from barnabas.protocol.groups.keys import GroupMetadataKey, OffsetCommitKey, UnknownKey, decode_key, encode_key
from barnabas.protocol.groups.metadata import (
    GroupMetadataValue,
    MemberMetadata,
    decode_group_metadata,
    encode_group_metadata,
)
from barnabas.protocol.groups.offsets import OffsetCommitValue, decode_offset_commit, encode_offset_commit
from barnabas.protocol.uuids import ZERO_UUID

TOPIC_ID = bytes(range(1, 17))
TEXT = st.text(max_size=40)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)

OFFSETS = st.builds(
    OffsetCommitValue,
    INT64,
    INT32,
    TEXT,
    INT64,
    INT64,
    st.one_of(st.just(ZERO_UUID), st.binary(min_size=16, max_size=16)),
)
MEMBERS = st.builds(
    MemberMetadata, TEXT, st.none() | TEXT, TEXT, TEXT, INT32, INT32, st.binary(max_size=60), st.binary(max_size=60)
)
GROUPS = st.builds(
    GroupMetadataValue, TEXT, INT32, st.none() | TEXT, st.none() | TEXT, INT64, st.lists(MEMBERS, max_size=3).map(tuple)
)


def test_keys_have_the_bytes_of_kafka() -> None:
    assert encode_key(OffsetCommitKey("g", "topic", 3)).hex() == "0001" + "0001" + b"g".hex() + "0005" + (
        b"topic".hex() + "00000003"
    )
    assert encode_key(GroupMetadataKey("group")).hex() == "0002" + "0005" + b"group".hex()


def test_the_oldest_key_of_an_offset_means_the_same() -> None:
    assert decode_key(bytes.fromhex("0000" + "000167" + "000174" + "00000000")) == OffsetCommitKey("g", "t", 0)


@pytest.mark.parametrize("version", [9, 18, 24, 32767])
def test_a_key_of_a_newer_protocol_is_kept_as_it_is(version: int) -> None:
    data = version.to_bytes(2, "big") + b"\x00\x01gwhatever"
    assert decode_key(data) == UnknownKey(version, b"\x00\x01gwhatever")
    assert encode_key(decode_key(data)) == data


def test_an_offset_is_written_as_kafka_writes_it() -> None:
    value = OffsetCommitValue(42, 7, "m", 1000, topic_id=TOPIC_ID)
    golden = (
        "0004" + "000000000000002a" + "00000007" + "026d" + "00000000000003e8" + "01" + "00" + "10" + TOPIC_ID.hex()
    )
    assert encode_offset_commit(value).hex() == golden
    assert decode_offset_commit(bytes.fromhex(golden)) == value


def test_an_offset_without_a_topic_id_has_no_tag() -> None:
    assert encode_offset_commit(OffsetCommitValue(1, -1, "", 2)).hex() == (
        "0004" + "0000000000000001" + "ffffffff" + "01" + "0000000000000002" + "00"
    )


def test_an_offset_with_a_retention_of_its_own_is_written_in_version_1() -> None:
    value = OffsetCommitValue(1, -1, "m", 2, expire_timestamp=3)
    golden = "0001" + "0000000000000001" + "00016d" + "0000000000000002" + "0000000000000003"
    assert encode_offset_commit(value).hex() == golden
    assert decode_offset_commit(bytes.fromhex(golden)) == value


def test_group_metadata_is_written_in_version_3() -> None:
    member = MemberMetadata("m-1", None, "c", "/h", 60000, 10000, b"\x01", b"")
    value = GroupMetadataValue("consumer", 5, "range", "m-1", 1000, (member,))
    golden = (
        "0003"
        + ("0008" + b"consumer".hex())
        + "00000005"
        + ("0005" + b"range".hex())
        + ("0003" + b"m-1".hex())
        + "00000000000003e8"
        + "00000001"
        + ("0003" + b"m-1".hex())
        + "ffff"
        + "000163"
        + ("0002" + b"/h".hex())
        + "0000ea60"
        + "00002710"
        + "0000000101"
        + "00000000"
    )
    assert encode_group_metadata(value).hex() == golden
    assert decode_group_metadata(bytes.fromhex(golden)) == value


@given(OFFSETS, st.integers(0, 4))
def test_an_offset_survives_every_version_but_for_what_the_version_lacks(
    value: OffsetCommitValue, version: int
) -> None:
    kept = value._replace(
        leader_epoch=value.leader_epoch if version >= 3 else -1,
        expire_timestamp=value.expire_timestamp if version == 1 else -1,
        topic_id=value.topic_id if version == 4 else ZERO_UUID,
    )
    assert decode_offset_commit(encode_offset_commit(value, version)) == kept


@given(GROUPS, st.integers(0, 4))
def test_a_group_survives_every_version_but_for_what_the_version_lacks(value: GroupMetadataValue, version: int) -> None:
    kept = value._replace(
        current_state_timestamp=value.current_state_timestamp if version >= 2 else -1,
        members=tuple(
            member._replace(
                group_instance_id=member.group_instance_id if version >= 3 else None,
                rebalance_timeout_ms=member.rebalance_timeout_ms if version >= 1 else member.session_timeout_ms,
            )
            for member in value.members
        ),
    )
    assert decode_group_metadata(encode_group_metadata(value, version)) == kept


@pytest.mark.parametrize("decode", [decode_key, decode_offset_commit, decode_group_metadata])
@given(data=st.binary(max_size=80), version=st.integers(-1, 6))
def test_hostile_bytes_raise_decode_errors_only(decode: object, data: bytes, version: int) -> None:
    assert callable(decode)
    for hostile in (data, version.to_bytes(2, "big", signed=True) + data):
        try:
            decode(hostile)
        except DecodeError:
            continue


@given(GROUPS, OFFSETS, st.data())
def test_whatever_is_cut_off_or_follows_is_refused(
    group: GroupMetadataValue, offset: OffsetCommitValue, data: st.DataObject
) -> None:
    for decode, whole in (
        (decode_group_metadata, encode_group_metadata(group)),
        (decode_offset_commit, encode_offset_commit(offset)),
        (decode_key, encode_key(OffsetCommitKey("group", "topic", 1))),
    ):
        end = data.draw(st.integers(0, len(whole) - 1))
        with pytest.raises(DecodeError):
            decode(whole[:end])
        with pytest.raises(DecodeError):
            decode(whole + b"\x00")


@pytest.mark.parametrize("version", [-1, 5])
def test_a_value_of_an_unknown_version_is_refused(version: int) -> None:
    data = version.to_bytes(2, "big", signed=True) + bytes(40)
    with pytest.raises(DecodeError, match=f"version {version} "):
        decode_offset_commit(data)
    with pytest.raises(DecodeError, match=f"version {version} "):
        decode_group_metadata(data)


@given(
    OFFSETS.map(encode_offset_commit),
    st.builds(OffsetCommitKey, TEXT, TEXT, INT32).map(encode_key),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=2),
)
def test_the_quick_ways_of_reading_say_what_the_reader_says(
    value: bytes, key: bytes, changes: list[tuple[int, int]]
) -> None:
    for decode, module, quick, whole in (
        (decode_offset_commit, offsets, "_decode_newest", value),
        (decode_key, keys, "_decode_offset_commit", key),
    ):
        data = bytearray(whole)
        for position, byte in changes:
            data[position % len(data)] = byte
        with pytest.MonkeyPatch.context() as patch:
            found = outcome(decode, bytes(data))
            patch.setattr(module, quick, lambda _: None)
            assert found == outcome(decode, bytes(data))


def outcome(decode: Callable[[bytes], object], data: bytes) -> object:
    """What was read, or None for a DecodeError."""
    try:
        return decode(data)
    except DecodeError:
        return None


def test_a_string_that_does_not_fit_is_a_value_error() -> None:
    for key in (OffsetCommitKey("x" * 32_768, "t", 0), OffsetCommitKey("g", "x" * 32_768, 0)):
        with pytest.raises(ValueError, match="32768"):
            encode_key(key)
