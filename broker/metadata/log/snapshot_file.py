"""Writing of a metadata image as a snapshot file.

    control batch   SnapshotHeader; also KRaftVersion and KRaftVoters if the voters are in the log
    batches         levels first (they decide the versions of the records), then the carried records, topics with their
                    partitions, configs, client quotas, producer ids, ACLs, SCRAM credentials, delegation tokens
    control batch   SnapshotFooter

Offsets count from 0. Written as `.checkpoint.part`, synced, renamed: a crash leaves no file or a complete one.
Source: Kafka's MetadataImage.write, RecordsSnapshotWriter, FileRawSnapshotWriter.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.log.batches import encode_control_batch, encode_records
from barnabas.broker.metadata.log.bootstrap_checkpoint import feature_records
from barnabas.broker.metadata.log.snapshots import SnapshotId, snapshot_path
from barnabas.broker.metadata.security.snapshot import access_records, quota_records
from barnabas.broker.storage.files.durable_files import write_durably
from barnabas.protocol.metadata.control import ControlRecord, KRaftVersion, KRaftVoters, SnapshotFooter, SnapshotHeader
from barnabas.protocol.metadata.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    TopicRecord,
)

PART_SUFFIX = ".part"

_NO_BROKER, _NO_BROKER_EPOCH = -1, -1


class RaftState(NamedTuple):
    """Raft's own state in the log: 0 and None if the voters are in the configuration."""

    kraft_version: int = 0
    voters: KRaftVoters | None = None


def write_snapshot(
    directory: Path, image: MetadataImage, *, epoch: int, last_timestamp_ms: int, raft: RaftState
) -> Path:
    """Write the snapshot of `image` into the metadata log's directory, durably; return its path. Raises OSError.

    `epoch` and `last_timestamp_ms` belong to the last record that it covers.
    """
    path = snapshot_path(directory, SnapshotId(image.end_offset, epoch))
    content = encode_snapshot(image, epoch=epoch, last_timestamp_ms=last_timestamp_ms, raft=raft)
    write_durably(path, content, temporary_suffix=PART_SUFFIX)
    return path


def encode_snapshot(image: MetadataImage, *, epoch: int, last_timestamp_ms: int, raft: RaftState) -> bytes:
    """Return the content of the snapshot file."""
    level = image.level
    assert level is not None, "a served image has a level"
    head: list[ControlRecord] = [SnapshotHeader(last_timestamp_ms)]
    if raft.kraft_version:
        head.append(KRaftVersion(raft.kraft_version))
        if raft.voters is not None:
            head.append(raft.voters)
    header = encode_control_batch(head, base_offset=0, leader_epoch=epoch, timestamp_ms=last_timestamp_ms)
    batches, end_offset = encode_records(
        list(snapshot_records(image)),
        level=level,
        base_offset=len(head),
        leader_epoch=epoch,
        timestamp_ms=last_timestamp_ms,
    )
    footer = encode_control_batch(
        [SnapshotFooter()], base_offset=end_offset, leader_epoch=epoch, timestamp_ms=last_timestamp_ms
    )
    return header + batches + footer


def snapshot_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Yield the records that rebuild `image`."""
    yield from feature_records(image.features)
    yield from image.carried
    for topic in image.topics.values():
        yield TopicRecord(topic.name, topic.topic_id)
        for number, state in topic.partitions.items():
            yield PartitionRecord(number, topic.topic_id, state)
    for (resource_type, resource_name), values in image.configs.items():
        for name, value in values.items():
            yield ConfigRecord(resource_type, resource_name, name, value)
    yield from image.mirrors.records()
    yield from quota_records(image.security)
    if image.next_producer_id:
        yield ProducerIdsRecord(_NO_BROKER, _NO_BROKER_EPOCH, image.next_producer_id)
    yield from access_records(image.security)
