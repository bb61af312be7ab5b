"""Control records of the metadata log and of snapshots."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.metadata.control import (
    ControlRecord,
    Endpoint,
    KRaftVersion,
    KRaftVoter,
    KRaftVoters,
    LeaderChange,
    SnapshotFooter,
    SnapshotHeader,
    UnknownControl,
    Voter,
    decode_control,
    encode_control,
)

DIRECTORY = bytes(range(16))

CONTROLS: list[ControlRecord] = [
    LeaderChange(1, (Voter(1),), (Voter(1),)),
    LeaderChange(2, (Voter(1, DIRECTORY), Voter(2, DIRECTORY)), (), version=1),
    SnapshotHeader(1_700_000_000_000),
    SnapshotFooter(),
    KRaftVersion(1),
    KRaftVoters((KRaftVoter(1, DIRECTORY, (Endpoint("CONTROLLER", "127.0.0.1", 9093),), (0, 1)),)),
    UnknownControl(9, b"\x00\x01"),
]


@pytest.mark.parametrize("record", CONTROLS, ids=lambda record: type(record).__name__)
def test_a_control_record_comes_back_from_its_key_and_value(record: ControlRecord) -> None:
    assert decode_control(*encode_control(record)) == record


def test_control_records_have_the_bytes_of_the_format() -> None:
    assert [part.hex(" ") for part in encode_control(CONTROLS[0])] == [
        "00 00 00 02",
        "00 00 00 00 00 01 02 00 00 00 01 00 02 00 00 00 01 00 00",
    ]
    assert [part.hex(" ") for part in encode_control(CONTROLS[3])] == ["00 00 00 04", "00 00 00"]
    assert [part.hex(" ") for part in encode_control(CONTROLS[4])] == ["00 00 00 05", "00 00 00 01 00"]


@pytest.mark.parametrize(("key", "value"), [(None, b""), (b"\x00", b""), (b"\xff\xff\x00\x02", b""), (bytes(4), None)])
def test_a_broken_control_record_is_a_decode_error(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(DecodeError):
        decode_control(key, value)


def test_a_newer_version_of_a_control_record_is_refused() -> None:
    with pytest.raises(DecodeError, match="version 2, the newest known is 1"):
        decode_control(bytes.fromhex("00000002"), bytes.fromhex("0002") + bytes(20))


@given(st.integers(0, 7), st.binary(max_size=80))
def test_any_control_value_decodes_or_raises_a_decode_error(control_type: int, value: bytes) -> None:
    try:
        decode_control(bytes([0, 0, 0, control_type]), value)
    except DecodeError:
        pass
