"""Records written or read at opening: bootstrap.checkpoint, leadership, and directories from the ZooKeeper era."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.broker.metadata.directories.adoption import PartitionDirectories, adoption_records
from barnabas.broker.metadata.directories.contents import list_log_directory
from barnabas.broker.metadata.directories.examine import partitions_by_topic
from barnabas.broker.metadata.directories.leadership import (
    MAX_EPOCH,
    TAKEOVER_EPOCHS,
    ensure_single_node,
    leadership_records,
)
from barnabas.broker.metadata.errors import MetadataError, UnsupportedMetadataError
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.image_builder import ImageBuilder
from barnabas.broker.metadata.log.batches import decode_batches, encode_change
from barnabas.broker.metadata.log.bootstrap_checkpoint import read_bootstrap_records, write_bootstrap_checkpoint
from barnabas.protocol.metadata.control import SnapshotFooter, SnapshotHeader
from barnabas.protocol.metadata.partition_state import PartitionState
from barnabas.protocol.metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    TopicRecord,
    UnknownRecord,
)
from barnabas.protocol.uuids import uuid_text
from tests.support.storage.security_records import scram_record

ID, DIRECTORY = bytes([1] * 16), bytes([7] * 16)
LED = PartitionState((1,), (1,), 1, leader_epoch=4, directories=(DIRECTORY,))
LEFT = PartitionState((1,), (1,), -1, leader_epoch=4, directories=(DIRECTORY,))
LEFT_WITH_ELR = PartitionState(
    (1,), (), -1, leader_epoch=4, directories=(DIRECTORY,), eligible_leaders=(1,), last_known_eligible=(1,)
)
ImageOf = Callable[[list[MetadataRecord]], MetadataImage]


def test_the_bootstrap_checkpoint_is_a_snapshot_with_the_levels(tmp_path: Path) -> None:
    features = {"transaction.version": 2, "a": 0, "metadata.version": 19}
    write_bootstrap_checkpoint(tmp_path, features, timestamp_ms=5)
    records = list(decode_batches((tmp_path / "bootstrap.checkpoint").read_bytes()))
    levels = [FeatureLevelRecord("metadata.version", 19), FeatureLevelRecord("transaction.version", 2)]
    assert records == [SnapshotHeader(0), *levels, SnapshotFooter()]
    assert read_bootstrap_records(tmp_path) == levels


def test_records_of_kafka_in_the_bootstrap_checkpoint_are_kept(tmp_path: Path) -> None:
    assert read_bootstrap_records(tmp_path) is None
    kept: list[MetadataRecord] = [
        FeatureLevelRecord("metadata.version", 21),
        UnknownRecord(99, 0, b"raw"),
        scram_record(),
    ]
    data, _ = encode_change(kept, level=21, base_offset=0, leader_epoch=0, timestamp_ms=1)
    (tmp_path / "bootstrap.checkpoint").write_bytes(data)
    assert read_bootstrap_records(tmp_path) == kept


@pytest.mark.parametrize(
    ("record", "error"),
    [
        (FeatureLevelRecord("metadata.version", 31), UnsupportedMetadataError),
        (FeatureLevelRecord("group.version", 1), MetadataError),
    ],
)
def test_a_bootstrap_checkpoint_without_a_known_level_is_refused(
    tmp_path: Path, record: MetadataRecord, error: type[Exception]
) -> None:
    data, _ = encode_change([record], level=19, base_offset=0, leader_epoch=0, timestamp_ms=1)
    (tmp_path / "bootstrap.checkpoint").write_bytes(data)
    with pytest.raises(error, match=r"metadata\.version"):
        read_bootstrap_records(tmp_path)


@pytest.mark.parametrize(
    ("state", "raise_epochs", "epoch_after"),
    [(LED, False, 4), (LED, True, 5), (LEFT, False, 5), (LEFT_WITH_ELR, False, 5)],
)
def test_partitions_without_our_lead_get_it_with_the_next_epoch(
    image_of: ImageOf, state: PartitionState, raise_epochs: bool, epoch_after: int
) -> None:
    image = image_of([TopicRecord("a", ID), PartitionRecord(0, ID, state)])
    builder = ImageBuilder(image)
    for record in leadership_records(image, 1, raise_epochs=raise_epochs):
        builder.apply(record)
    after = builder.build().partition("a", 0)
    assert after is not None
    assert (after.leader, after.isr, after.leader_epoch) == (1, (1,), epoch_after)
    assert not after.eligible_leaders
    assert not after.last_known_eligible


@pytest.mark.parametrize(
    ("epoch", "epoch_after"), [(4, 4 + TAKEOVER_EPOCHS), (MAX_EPOCH - 1, MAX_EPOCH), (MAX_EPOCH, MAX_EPOCH)]
)
def test_a_takeover_begins_an_epoch_that_the_replaced_broker_does_not_reach_by_its_starts(
    image_of: ImageOf, epoch: int, epoch_after: int
) -> None:
    before = LEFT_WITH_ELR._replace(leader_epoch=epoch)
    image = image_of([TopicRecord("a", ID), PartitionRecord(0, ID, before)])
    builder = ImageBuilder(image)
    for record in leadership_records(image, 1, raise_epochs=True, takes_over=True):
        builder.apply(record)
    after = builder.build().partition("a", 0)
    assert after is not None
    assert (after.leader, after.isr, after.leader_epoch) == (1, (1,), epoch_after)
    assert after.partition_epoch == before.partition_epoch + 1
    assert not after.eligible_leaders


def test_a_directory_of_a_cluster_of_several_brokers_is_refused(image_of: ImageOf) -> None:
    shared = PartitionState((1, 2), (1,), 1)
    image = image_of([TopicRecord("a", ID), PartitionRecord(0, ID, LED), PartitionRecord(1, ID, shared)])
    with pytest.raises(MetadataError, match=r"partition a-1 has replicas \[1, 2\] and this is node 1"):
        ensure_single_node(image, 1, "/data")


def partition_directory(log_dir: Path, name: str, topic_id: bytes | None = None) -> None:
    (log_dir / name).mkdir(parents=True)
    (log_dir / name / "00000000000000000000.log").touch()
    if topic_id is not None:
        text = f"version: 0\ntopic_id: {uuid_text(topic_id)}"
        (log_dir / name / "partition.metadata").write_text(text)


def found_in(log_dir: Path) -> PartitionDirectories:
    found, _ = list_log_directory(log_dir, is_log_dir=True)
    return partitions_by_topic([found])


def test_directories_without_a_metadata_log_become_topics_that_keep_all_records(tmp_path: Path) -> None:
    partition_directory(tmp_path, "orders-0", ID)
    partition_directory(tmp_path, "orders-1")
    partition_directory(tmp_path, "__consumer_offsets-0")
    partition_directory(tmp_path, "__cluster_metadata-0")
    partition_directory(tmp_path, "gone-0.0123456789abcdef0123456789abcdef-delete")
    found = found_in(tmp_path)
    records = adoption_records(found, node_id=1, directory_ids={tmp_path: DIRECTORY})
    state = PartitionState((1,), (1,), 1, directories=(DIRECTORY,))
    offsets = records[0]
    assert isinstance(offsets, TopicRecord)
    assert records == [
        TopicRecord("__consumer_offsets", offsets.topic_id),
        PartitionRecord(0, offsets.topic_id, state),
        TopicRecord("orders", ID),
        ConfigRecord(2, "orders", "cleanup.policy", "delete"),
        ConfigRecord(2, "orders", "retention.bytes", "-1"),
        ConfigRecord(2, "orders", "retention.ms", "-1"),
        PartitionRecord(0, ID, state),
        PartitionRecord(1, ID, state),
    ]


def test_a_topic_with_a_missing_partition_is_refused(tmp_path: Path) -> None:
    partition_directory(tmp_path, "orders-2")
    partition_directory(tmp_path, "orders-0")
    with pytest.raises(MetadataError, match="orders without its partition 1"):
        adoption_records(found_in(tmp_path), node_id=1, directory_ids={tmp_path: DIRECTORY})


def test_partitions_of_two_topics_of_one_name_are_refused(tmp_path: Path) -> None:
    partition_directory(tmp_path, "orders-0", ID)
    partition_directory(tmp_path, "orders-1", DIRECTORY)
    with pytest.raises(MetadataError, match="different topics of the same name"):
        adoption_records(found_in(tmp_path), node_id=1, directory_ids={tmp_path: DIRECTORY})
