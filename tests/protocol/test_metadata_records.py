"""The metadata log's records: their bytes, what comes back, and what hostile bytes do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.metadata.frame import UnsupportedRecordError, decode_frame, encode_frame
from barnabas.protocol.metadata.levels import INITIAL_LEVEL, has_transactions, is_known_level
from barnabas.protocol.metadata.partition_state import DIRECTORY_MIGRATING, PartitionDelta, PartitionState
from barnabas.protocol.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnknownRecord,
)
from barnabas.protocol.metadata.security_records import (
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
)
from tests.support.storage.security_records import SCRAM_SECRETS, acl_record, quota_record, scram_record, token_record

TOPIC_ID = bytes(range(16))
DIRECTORY = bytes(range(16, 32))
ONE_REPLICA = PartitionState(replicas=(1,), isr=(1,), leader=1, directories=(DIRECTORY,))

RECORDS: list[MetadataRecord] = [
    TopicRecord("orders", TOPIC_ID),
    PartitionRecord(3, TOPIC_ID, ONE_REPLICA),
    ConfigRecord(2, "orders", "segment.bytes", "16384"),
    ConfigRecord(4, "", "log.retention.ms", None),
    PartitionChangeRecord(3, TOPIC_ID, PartitionDelta(leader=1)),
    PartitionChangeRecord(0, TOPIC_ID, PartitionDelta(isr=(1, 2), replicas=(1, 2), adding=(2,), removing=())),
    PartitionChangeRecord(0, TOPIC_ID, PartitionDelta(leader_recovery_state=0, directories=(DIRECTORY,))),
    RemoveTopicRecord(TOPIC_ID),
    FeatureLevelRecord("metadata.version", 19),
    ProducerIdsRecord(1, 7, 2000),
    BeginTransactionRecord("Bootstrap records"),
    BeginTransactionRecord(),
    EndTransactionRecord(),
    AbortTransactionRecord("controller failover"),
    UnknownRecord(20, 0, b"\x00"),
    acl_record(),
    RemoveAccessControlEntryRecord(TOPIC_ID),
    scram_record(),
    RemoveUserScramCredentialRecord("alice", 2),
    quota_record(),
    quota_record(remove=True, user=None, client_id="c"),
    token_record(),
    RemoveDelegationTokenRecord("token"),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_comes_back_from_its_frame(record: MetadataRecord) -> None:
    assert decode_frame(encode_frame(record, INITIAL_LEVEL)) == record


def test_frames_have_the_bytes_of_the_format() -> None:
    ids = TOPIC_ID.hex()
    golden = {
        RECORDS[0]: "01 02 00" + "07 6f7264657273" + ids + "00",
        RECORDS[1]: "01 03 01 00000003" + ids + "02 00000001 02 00000001 01 01 00000001 00000000 00000000"
        "02" + DIRECTORY.hex() + "00",
        RECORDS[2]: "01 04 00 02 07 6f7264657273 0e 7365676d656e742e6279746573 06 3136333834 00",
        RECORDS[3]: "01 04 00 04 01 11 6c6f672e726574656e74696f6e2e6d73 00 00",
        RECORDS[4]: "01 05 01 00000003" + ids + "01 01 04 00000001",
        RECORDS[7]: "01 09 00" + ids + "00",
        RECORDS[8]: "01 0c 00 11 6d657461646174612e76657273696f6e 0013 00",
        RECORDS[9]: "01 0f 00 00000001 0000000000000007 00000000000007d0 00",
        RECORDS[11]: "01 17 00 00",
        RECORDS[12]: "01 18 00 00",
        RECORDS[14]: "01 14 00 00",
    }
    for record, expected in golden.items():
        assert encode_frame(record, INITIAL_LEVEL).hex() == expected.replace(" ", "")


@pytest.mark.parametrize(("level", "version"), [(7, 0), (16, 0), (17, 1), (22, 1), (23, 2), (30, 2)])
def test_partition_records_take_the_version_of_the_level(level: int, version: int) -> None:
    state = PartitionState(
        replicas=(1, 2), isr=(1,), leader=1, directories=(DIRECTORY, DIRECTORY), eligible_leaders=(2,),
        leader_recovery_state=1,
    )  # fmt: skip
    frame = encode_frame(PartitionRecord(0, TOPIC_ID, state), level)
    read = decode_frame(frame)
    assert frame[2] == version
    assert isinstance(read, PartitionRecord)
    assert read.state.directories == (state.directories if version >= 1 else ())
    assert read.state.eligible_leaders == (state.eligible_leaders if version >= 2 else None)
    assert read.state.leader_recovery_state == 1


def test_security_records_have_the_bytes_of_the_format() -> None:
    golden: dict[MetadataRecord, str] = {
        acl_record(): "01 12 00" + "00" * 15 + "01 02 07 6f7264657273 03 0b 557365723a616c696365 02 2a 03 03 00",
        scram_record(): "01 0b 00 06 616c696365 01 07 612073616c74 0d 612073746f726564206b6579"
        "0d 6120736572766572206b6579 00001000 00",
        quota_record(user=None): "01 0e 00 02 05 75736572 00 00 13 70726f64756365725f627974655f72617465"
        "4090000000000000 00 00",
        token_record(): "01 0a 00 0b 557365723a616c696365 09 557365723a626f62 02 0b 557365723a6361726f6c"
        "00000000000003e8 0000000000002328 00000000000007d0 06 746f6b656e 00",
        RemoveAccessControlEntryRecord(TOPIC_ID): "01 13 00" + TOPIC_ID.hex() + "00",
        RemoveUserScramCredentialRecord("a", 2): "01 16 00 02 61 02 00",
        RemoveDelegationTokenRecord("a"): "01 1a 00 02 61 00",
    }
    for record, expected in golden.items():
        assert encode_frame(record, INITIAL_LEVEL).hex() == expected.replace(" ", "")


def test_a_credential_shows_no_secret_in_its_text() -> None:
    assert not any(secret.decode() in repr(scram_record()) for secret in SCRAM_SECRETS)


def test_unknown_tagged_fields_are_skipped() -> None:
    frame = bytes.fromhex("010900") + TOPIC_ID + bytes.fromhex("01 0a 02 beef")
    assert decode_frame(frame) == RemoveTopicRecord(TOPIC_ID)


def test_an_unknown_key_is_kept_byte_for_byte_in_any_version() -> None:
    frame = bytes.fromhex("01 7f 63 00 01 02 ff")
    record = decode_frame(frame)
    assert record == UnknownRecord(0x7F, 0x63, bytes.fromhex("000102ff"))
    assert encode_frame(record, INITIAL_LEVEL) == frame


def test_a_newer_version_of_a_known_record_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedRecordError, match="Partition record has version 3, the newest known is 2"):
        decode_frame(bytes.fromhex("010303") + bytes(64))


@pytest.mark.parametrize("frame", ["", "00", "02 02 00", "01", "01 02", "01 02 00", "01 0c 00 05 61"])
def test_a_broken_frame_is_a_decode_error(frame: str) -> None:
    with pytest.raises(DecodeError):
        decode_frame(bytes.fromhex(frame))


def test_bytes_after_a_record_are_refused() -> None:
    with pytest.raises(DecodeError, match="left over"):
        decode_frame(encode_frame(RECORDS[0], INITIAL_LEVEL) + b"\x00")


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_raise_a_decode_error(data: bytes) -> None:
    for key in (b"", *(bytes([1, key, version]) for key in (2, 3, 4, 5, 9, 12, 15, 23) for version in (0, 1, 2))):
        try:
            decode_frame(key + data)
        except DecodeError:
            pass


def test_a_given_leader_raises_the_leader_epoch_and_any_change_the_partition_epoch() -> None:
    again = ONE_REPLICA.changed_by(PartitionDelta(leader=1))
    assert (again.leader, again.leader_epoch, again.partition_epoch) == (1, 1, 1)
    gone = again.changed_by(PartitionDelta(leader=-1))
    assert (gone.leader, gone.leader_epoch, gone.partition_epoch) == (-1, 2, 2)
    shrunk = gone.changed_by(PartitionDelta(isr=()))
    assert (shrunk.leader, shrunk.leader_epoch, shrunk.partition_epoch, shrunk.isr) == (-1, 2, 3, ())


def test_directories_that_no_longer_fit_the_replicas_become_migrating() -> None:
    moved = ONE_REPLICA.changed_by(PartitionDelta(replicas=(1, 2)))
    assert moved.directories == (DIRECTORY_MIGRATING, DIRECTORY_MIGRATING)


def test_levels_that_kafka_4_does_not_read_and_levels_of_the_future_are_unknown() -> None:
    assert [level for level in (0, 6, 7, 19, 30, 31) if is_known_level(level)] == [7, 19, 30]
    assert [level for level in (12, 13) if has_transactions(level)] == [13]
