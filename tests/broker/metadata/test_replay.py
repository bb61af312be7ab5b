"""Replay of the metadata log: transactions, snapshots, torn tails, and rejected logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.broker.metadata.errors import MetadataError, UnsupportedMetadataError
from barnabas.broker.metadata.log.batches import encode_control_batch
from barnabas.broker.metadata.log.log_replay import replay_metadata_directory
from barnabas.protocol.metadata.control import LeaderChange, Voter
from barnabas.protocol.metadata.levels import METADATA_VERSION
from barnabas.protocol.metadata.partition_state import PartitionDelta, PartitionState
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

if TYPE_CHECKING:
    from tests.broker.metadata.conftest import LogDirectory

LEVEL = FeatureLevelRecord(METADATA_VERSION, 19)
ID_A, ID_B = bytes([1] * 16), bytes([2] * 16)
STATE = PartitionState((1,), (1,), 1, directories=(bytes([9] * 16),))


def topic(name: str, topic_id: bytes, partitions: int = 1) -> list[MetadataRecord]:
    return [TopicRecord(name, topic_id), *(PartitionRecord(number, topic_id, STATE) for number in range(partitions))]


def test_a_directory_that_is_not_there_is_an_empty_log(tmp_path: Path) -> None:
    replayed = replay_metadata_directory(tmp_path / "__cluster_metadata-0")
    assert (replayed.exists, replayed.image.end_offset, replayed.last_epoch) == (False, 0, -1)


def test_records_give_topics_partitions_configs_levels_and_producer_ids(metadata_log: LogDirectory) -> None:
    metadata_log.append(LEVEL, ProducerIdsRecord(1, 0, 3000))
    metadata_log.append(*topic("a", ID_A, 2), ConfigRecord(2, "a", "segment.bytes", "2048"), epoch=4)
    dynamic = [ConfigRecord(4, "", "log.retention.ms", "5"), ConfigRecord(4, "1", "log.retention.ms", "6")]
    metadata_log.append(*dynamic, epoch=4)
    metadata_log.append(PartitionChangeRecord(1, ID_A, PartitionDelta(leader=-1)), epoch=4)
    replayed = replay_metadata_directory(metadata_log.path)
    image = replayed.image
    assert image.level == 19
    assert image.next_producer_id == 3000
    assert image.topics["a"].topic_id == ID_A
    assert image.topic_by_id(ID_A) is image.topics["a"]
    assert image.partition("a", 0) == STATE
    changed = image.partition("a", 1)
    assert changed is not None
    assert (changed.leader, changed.leader_epoch) == (-1, 1)
    assert image.topic_configs("a") == {"segment.bytes": "2048"}
    assert image.default_broker_configs() == {"log.retention.ms": "5"}
    assert image.broker_configs(1) == {"log.retention.ms": "6"}
    assert (image.end_offset, replayed.last_epoch, replayed.exists) == (metadata_log.next_offset, 4, True)


def test_removing_a_topic_takes_its_configs_along_and_frees_its_name(metadata_log: LogDirectory) -> None:
    metadata_log.append(LEVEL, *topic("a", ID_A), ConfigRecord(2, "a", "segment.bytes", "2048"))
    metadata_log.append(RemoveTopicRecord(ID_A), *topic("a", ID_B))
    image = replay_metadata_directory(metadata_log.path).image
    assert image.topics["a"].topic_id == ID_B
    assert image.topic_configs("a") == {}
    assert image.topic_by_id(ID_A) is None


def test_a_config_set_to_null_is_deleted(metadata_log: LogDirectory) -> None:
    metadata_log.append(LEVEL, ConfigRecord(4, "", "x", "1"), ConfigRecord(4, "", "x", None))
    assert replay_metadata_directory(metadata_log.path).image.configs == {}


@pytest.mark.parametrize(
    ("end", "applied", "open_at_end"),
    [([EndTransactionRecord()], True, False), ([AbortTransactionRecord()], False, False), ([], False, True)],
)
def test_a_transaction_applies_when_it_ends_or_not_at_all(
    metadata_log: LogDirectory, end: list[MetadataRecord], applied: bool, open_at_end: bool
) -> None:
    metadata_log.append(LEVEL, BeginTransactionRecord("t"))
    metadata_log.append(*topic("a", ID_A))
    metadata_log.append(*end, UnknownRecord(20, 0, b"\x00"))
    replayed = replay_metadata_directory(metadata_log.path)
    assert ("a" in replayed.image.topics) is applied
    assert replayed.in_transaction is open_at_end


def test_a_change_of_several_batches_cut_anywhere_is_not_applied(metadata_log: LogDirectory) -> None:
    metadata_log.append(LEVEL)
    start = metadata_log.append(*topic("a", ID_A, 50), size=1000)
    whole = metadata_log.segment.read_bytes()
    assert len(replay_metadata_directory(metadata_log.path).image.topics["a"].partitions) == 50
    for size in range(start, len(whole), 97):
        metadata_log.segment.write_bytes(whole[:size])
        image = replay_metadata_directory(metadata_log.path).image
        assert (image.level, dict(image.topics)) == (19, {})


def test_a_log_torn_at_every_byte_of_its_last_batch_opens_without_it(metadata_log: LogDirectory) -> None:
    metadata_log.append(LEVEL, *topic("a", ID_A))
    end_offset = metadata_log.next_offset
    start = metadata_log.append(*topic("b", ID_B))
    whole = metadata_log.segment.read_bytes()
    for size in range(start, len(whole)):
        for tail in (b"", bytes(len(whole) - size)):  # truncated, or filled with zero pages
            metadata_log.segment.write_bytes(whole[:size] + tail)
            image = replay_metadata_directory(metadata_log.path).image
            if whole[size:] == tail:  # the last bytes were zero already
                continue
            assert list(image.topics) == ["a"]
            assert image.end_offset == end_offset
            assert metadata_log.segment.read_bytes() == whole[:size] + tail


def test_damage_before_whole_records_is_refused_and_nothing_is_cut(metadata_log: LogDirectory) -> None:
    metadata_log.append(LEVEL)
    start = metadata_log.append(*topic("a", ID_A))
    metadata_log.append(*topic("b", ID_B))
    damaged = bytearray(metadata_log.segment.read_bytes())
    damaged[start + 70] ^= 1
    metadata_log.segment.write_bytes(damaged)
    with pytest.raises(MetadataError, match=f"damaged at position {start}"):
        replay_metadata_directory(metadata_log.path)
    assert metadata_log.segment.read_bytes() == damaged


def test_a_snapshot_covers_the_records_below_its_end(metadata_log: LogDirectory) -> None:
    metadata_log.write_snapshot(10, LEVEL, *topic("a", ID_A), epoch=3)
    metadata_log.begin_at(8)
    metadata_log.append(TopicRecord("ignored", ID_B), TopicRecord("ignored too", ID_A))
    metadata_log.append(*topic("b", ID_B))
    replayed = replay_metadata_directory(metadata_log.path)
    assert sorted(replayed.image.topics) == ["a", "b"]
    assert (replayed.image.end_offset, replayed.last_epoch) == (12, 3)


def test_a_snapshot_may_end_within_a_batch(metadata_log: LogDirectory) -> None:
    metadata_log.write_snapshot(1, LEVEL, TopicRecord("a", ID_A))
    metadata_log.append(TopicRecord("a", ID_A), TopicRecord("b", ID_B))
    assert sorted(replay_metadata_directory(metadata_log.path).image.topics) == ["a", "b"]


def test_of_two_snapshots_the_newest_whole_one_is_used(metadata_log: LogDirectory) -> None:
    metadata_log.write_snapshot(10, LEVEL, *topic("a", ID_A))
    metadata_log.write_snapshot(20, LEVEL, *topic("torn", ID_B), footer=False)
    (metadata_log.path / f"{30:020d}-{1:010d}.checkpoint.part").write_bytes(b"half")
    metadata_log.begin_at(10)
    metadata_log.append(*topic("b", ID_B))
    assert sorted(replay_metadata_directory(metadata_log.path).image.topics) == ["a", "b"]


def test_a_log_that_begins_after_its_snapshots_is_refused(metadata_log: LogDirectory) -> None:
    metadata_log.write_snapshot(20, LEVEL, *topic("torn", ID_B), footer=False)
    metadata_log.begin_at(10)
    metadata_log.append(*topic("b", ID_B))
    with pytest.raises(MetadataError, match="has no records from offset 0 to 10"):
        replay_metadata_directory(metadata_log.path)


def test_records_of_unknown_keys_are_carried_and_stay_in_the_log(metadata_log: LogDirectory) -> None:
    metadata_log.append(LEVEL, UnknownRecord(27, 5, b"a"), UnknownRecord(27, 5, b"a"), UnknownRecord(200, 0, b""))
    before = metadata_log.segment.read_bytes()
    assert replay_metadata_directory(metadata_log.path).image.carried.counts() == {27: 2, 200: 1}
    assert metadata_log.segment.read_bytes() == before


def test_a_newer_version_of_a_known_record_is_refused(metadata_log: LogDirectory) -> None:
    metadata_log.append(LEVEL, UnknownRecord(3, 7, bytes(40)))
    with pytest.raises(UnsupportedMetadataError, match="newer Kafka: Partition record has version 7"):
        replay_metadata_directory(metadata_log.path)


@pytest.mark.parametrize("level", [1, 6, 31, 99])
def test_a_level_that_is_not_known_is_refused(metadata_log: LogDirectory, level: int) -> None:
    metadata_log.append(FeatureLevelRecord(METADATA_VERSION, level))
    with pytest.raises(UnsupportedMetadataError, match=f"metadata.version {level}; this program knows 7 to 30"):
        replay_metadata_directory(metadata_log.path)


@pytest.mark.parametrize(
    "records",
    [
        [PartitionRecord(0, ID_A, STATE)],
        [*topic("a", ID_A), TopicRecord("a", ID_B)],
        [*topic("a", ID_A), PartitionChangeRecord(1, ID_A, PartitionDelta(leader=1))],
        [RemoveTopicRecord(ID_A)],
        [EndTransactionRecord()],
        [AbortTransactionRecord()],
        [BeginTransactionRecord(), BeginTransactionRecord()],
    ],
)
def test_records_that_contradict_what_came_before_are_refused(
    metadata_log: LogDirectory, records: list[MetadataRecord]
) -> None:
    metadata_log.append(LEVEL, *records)
    with pytest.raises(MetadataError, match="cannot be read at offset"):
        replay_metadata_directory(metadata_log.path)


def test_control_records_of_raft_are_skipped(metadata_log: LogDirectory) -> None:
    change = LeaderChange(1, (Voter(1),), (Voter(1),))
    metadata_log.append_bytes(encode_control_batch([change], base_offset=0, leader_epoch=6, timestamp_ms=1))
    metadata_log.next_offset = 1
    metadata_log.append(LEVEL, epoch=6)
    replayed = replay_metadata_directory(metadata_log.path)
    assert (replayed.image.end_offset, replayed.last_epoch) == (2, 6)


@pytest.mark.parametrize(("quorum_epoch", "led_by_kafka"), [(5, True), (6, True), (4, False)])
def test_kafka_led_last_unless_our_epoch_is_above_its_own(
    metadata_log: LogDirectory, quorum_epoch: int, led_by_kafka: bool
) -> None:
    metadata_log.append(LEVEL, epoch=5)
    state = f'{{"leaderId":1,"leaderEpoch":{quorum_epoch},"votedId":-1,"data_version":1}}'
    (metadata_log.path / "quorum-state").write_text(state)
    assert replay_metadata_directory(metadata_log.path).led_by_kafka is led_by_kafka


def test_a_quorum_state_without_an_epoch_is_refused(metadata_log: LogDirectory) -> None:
    metadata_log.append(LEVEL)
    (metadata_log.path / "quorum-state").write_text('{"data_version":1}')
    with pytest.raises(MetadataError, match="has no leaderEpoch"):
        replay_metadata_directory(metadata_log.path)


def test_a_decreasing_leader_epoch_is_damage(metadata_log: LogDirectory) -> None:
    metadata_log.append(LEVEL, epoch=4)
    metadata_log.append(*topic("a", ID_A), epoch=3)
    with pytest.raises(MetadataError, match="a batch has offset 1 and leader epoch 3 after offset 0 and epoch 4"):
        replay_metadata_directory(metadata_log.path)
