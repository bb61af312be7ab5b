"""Snapshots by Barnabas: content, schedule, trimming of the log, and crashes."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.image_builder import ImageBuilder
from barnabas.broker.metadata.log import snapshotter
from barnabas.broker.metadata.log.batches import decode_batches
from barnabas.broker.metadata.log.log_replay import replay_metadata_directory
from barnabas.broker.metadata.log.metadata_log import MetadataLog
from barnabas.broker.metadata.log.snapshot_file import RaftState, encode_snapshot, snapshot_records, write_snapshot
from barnabas.broker.metadata.log.snapshots import SnapshotId, list_snapshots
from barnabas.broker.metadata.log.snapshotter import Snapshotter
from barnabas.broker.metadata.log.trimming import KeptSnapshot, snapshots_to_drop
from barnabas.broker.metadata.topics import plan_delete_topics
from barnabas.protocol.messages.topics.topics import NewTopic, TopicReference, config_rows
from barnabas.protocol.metadata.control import (
    ControlRecord,
    Endpoint,
    KRaftVersion,
    KRaftVoter,
    KRaftVoters,
    SnapshotFooter,
    SnapshotHeader,
)
from barnabas.protocol.metadata.partition_state import PartitionState
from barnabas.protocol.metadata.records import (
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    TopicRecord,
    UnknownRecord,
)
from tests.support.storage.bench import ManualClock, StepScheduler
from tests.support.storage.metadata_store import Opened, stepped_store
from tests.support.storage.security_records import acl_record, quota_record, scram_record, token_record

HOUR_MS = 60 * 60 * 1000
TOPIC_ID = bytes([7] * 16)
STATE = PartitionState((1,), (1,), 1, leader_epoch=3, partition_epoch=4, directories=(bytes([9] * 16),))
ELR_STATE = STATE._replace(eligible_leaders=(2,), last_known_eligible=(3,))


class Bench:
    """A directory that is opened repeatedly, with a clock and scheduler that the test advances."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clock = ManualClock()
        self.scheduler = StepScheduler(self.clock)
        self.metadata = directory / "__cluster_metadata-0"

    def open(self, **settings: str) -> Opened:
        return stepped_store(self.directory, self.clock, self.scheduler, **settings)

    def replay(self) -> MetadataImage:
        return replay_metadata_directory(self.metadata).image

    def names(self, suffix: str) -> list[str]:
        return sorted(path.name for path in self.metadata.iterdir() if path.name.endswith(suffix))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "data")


def image_of(*records: MetadataRecord) -> MetadataImage:
    builder = ImageBuilder(MetadataImage())
    for record in records:
        builder.apply(record)
    return builder.build()


def everything(level: int) -> MetadataImage:
    state = ELR_STATE if level >= 23 else STATE if level >= 17 else STATE._replace(directories=())
    return image_of(
        FeatureLevelRecord("group.version", 1),
        FeatureLevelRecord("metadata.version", level),
        TopicRecord("orders", TOPIC_ID),
        *(PartitionRecord(number, TOPIC_ID, state) for number in range(3)),
        ConfigRecord(2, "orders", "retention.ms", "-1"),
        ConfigRecord(4, "", "log.retention.ms", "5"),
        ConfigRecord(32, "a-group", "consumer.session.timeout.ms", "45000"),
        ProducerIdsRecord(1, 5, 4000),
        acl_record(),
        scram_record(),
        token_record(),
        quota_record(user="alice", client_id=None),
        UnknownRecord(99, 3, b"of the future"),
    )


@pytest.mark.parametrize("level", [7, 13, 17, 19, 21, 23, 30])
def test_a_snapshot_rebuilds_the_image_at_every_level(level: int) -> None:
    image = everything(level)
    raw = encode_snapshot(image, epoch=4, last_timestamp_ms=17, raft=RaftState())
    records = list(decode_batches(raw))
    assert records[0] == SnapshotHeader(17)
    assert records[1] == FeatureLevelRecord("metadata.version", level)
    assert records[-1] == SnapshotFooter()
    assert image_of(*(each for each in records if not isinstance(each, ControlRecord))) == image


def test_a_large_snapshot_needs_no_transaction() -> None:
    image = image_of(
        FeatureLevelRecord("metadata.version", 7),
        TopicRecord("large", TOPIC_ID),
        *(PartitionRecord(number, TOPIC_ID, STATE) for number in range(60_000)),
    )
    records = list(decode_batches(encode_snapshot(image, epoch=1, last_timestamp_ms=1, raft=RaftState())))
    assert len(records) == 2 + 2 + 60_000
    assert {type(each).__name__ for each in records[1:-1]} == {"FeatureLevelRecord", "TopicRecord", "PartitionRecord"}


def test_voters_in_the_log_are_in_its_snapshots() -> None:
    voters = KRaftVoters((KRaftVoter(1, bytes(16), (Endpoint("CONTROLLER", "localhost", 9093),), (0, 1)),))
    raw = encode_snapshot(everything(21), epoch=4, last_timestamp_ms=17, raft=RaftState(1, voters))
    assert list(decode_batches(raw))[:3] == [SnapshotHeader(17), KRaftVersion(1), voters]


def test_cleared_eligible_leaders_are_cleared_in_the_image() -> None:
    image = image_of(TopicRecord("orders", TOPIC_ID), PartitionRecord(0, TOPIC_ID, ELR_STATE), ClearElrRecord(""))
    state = image.partition("orders", 0)
    assert state is not None
    assert (state.eligible_leaders, state.last_known_eligible) == ((), ())
    assert state.partition_epoch == ELR_STATE.partition_epoch + 1


def test_a_snapshot_is_written_an_hour_after_the_first_change(bench: Bench) -> None:
    store = bench.open()
    bench.scheduler.advance(HOUR_MS)
    first = bench.names(".checkpoint")
    assert len(first) == 1  # written at opening
    bench.scheduler.advance(3 * HOUR_MS)
    assert bench.names(".checkpoint") == first
    store.create(
        NewTopic(name="orders", partitions=3, replication_factor=1, configs=config_rows({"retention.ms": "-1"}))
    )
    bench.scheduler.advance(HOUR_MS - 1)
    assert bench.names(".checkpoint") == first
    bench.scheduler.advance(1)
    image = store.store.image
    assert bench.names(".checkpoint")[1:] == [f"{image.end_offset:020d}-0000000001.checkpoint"]
    assert bench.names(".log")[-1] == f"{image.end_offset:020d}.log"
    store.close()
    assert bench.replay() == image


def test_a_snapshot_is_written_immediately_above_the_byte_limit(bench: Bench) -> None:
    store = bench.open(**{"metadata.log.max.record.bytes.between.snapshots": "2000"})
    for number in range(30):
        store.create(NewTopic(name=f"topic-{number}", partitions=1))
        bench.scheduler.run_due()
    store.close()
    written = bench.names(".checkpoint")
    assert 2 <= len(written) <= 6
    assert bench.replay() == store.store.image


def delete(store: Opened, name: str) -> None:
    store.store.change(lambda image: plan_delete_topics(image, [TopicReference(name=name)], config=store.config))


def test_the_log_is_trimmed_before_the_oldest_kept_snapshot(bench: Bench) -> None:
    store = bench.open(**{"metadata.max.retention.ms": str(2 * HOUR_MS)})
    for number in range(6):
        store.create(NewTopic(name=f"topic-{number}", partitions=2))
        delete(store, f"topic-{number - 1}")
        bench.scheduler.advance(HOUR_MS)
    image = store.store.image
    store.close()
    snapshots = list_snapshots(bench.metadata)
    assert 2 <= len(snapshots) <= 4
    oldest = snapshots[-1].end_offset
    assert bench.names(".log")[0] == f"{oldest:020d}.log"
    assert bench.replay() == image
    again = bench.open()
    assert again.store.image == image
    again.create(NewTopic(name="later", partitions=1))
    again.close()
    assert set(bench.replay().topics) == {"topic-5", "later"}


def test_a_damaged_snapshot_loses_nothing_while_an_older_one_exists(bench: Bench) -> None:
    store = bench.open()
    for name in ("a", "b"):
        store.create(NewTopic(name=name, partitions=1))
        bench.scheduler.advance(HOUR_MS)
    image = store.store.image
    store.close()
    newest = bench.metadata / bench.names(".checkpoint")[-1]
    newest.write_bytes(newest.read_bytes()[:-10])
    again = bench.open()
    assert again.store.image == image
    again.close()


def test_without_any_whole_snapshot_a_trimmed_log_is_refused(bench: Bench) -> None:
    store = bench.open(**{"metadata.max.retention.bytes": "0"})
    store.create(NewTopic(name="a", partitions=1))
    bench.scheduler.advance(HOUR_MS)
    store.create(NewTopic(name="b", partitions=1))
    bench.scheduler.advance(HOUR_MS)
    store.close()
    (only,) = bench.names(".checkpoint")
    (bench.metadata / only).unlink()
    with pytest.raises(MetadataError, match="a snapshot or a segment is missing"):
        bench.replay()


def test_a_crash_at_any_step_of_a_snapshot_leaves_the_same_image(bench: Bench, tmp_path: Path) -> None:
    store = bench.open(**{"metadata.max.retention.bytes": "0"})
    store.create(NewTopic(name="a", partitions=2))
    bench.scheduler.advance(HOUR_MS)
    store.create(NewTopic(name="b", partitions=2))
    before = shutil.copytree(bench.metadata, tmp_path / "before")
    bench.scheduler.advance(HOUR_MS)
    image = store.store.image
    store.close()
    (snapshot,) = bench.names(".checkpoint")
    rolled = f"{image.end_offset:020d}.log"

    (before / rolled).touch()
    assert replay_metadata_directory(before).image == image  # a new segment without a snapshot
    whole = (bench.metadata / snapshot).read_bytes()
    (before / f"{snapshot}.part").write_bytes(whole[:100])
    assert replay_metadata_directory(before).image == image  # half of a snapshot
    (before / snapshot).write_bytes(whole)
    assert replay_metadata_directory(before).image == image  # before trimming
    for path in sorted(before.glob("*.checkpoint"))[:-1]:
        path.unlink()
    assert replay_metadata_directory(before).image == image  # the old snapshot is deleted
    for path in sorted(before.glob("*.log"))[:-1]:
        path.unlink()
    assert replay_metadata_directory(before).image == image


def test_a_snapshot_that_cannot_be_written_is_tried_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    store = bench.open()
    bench.scheduler.advance(HOUR_MS)

    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    store.create(NewTopic(name="a", partitions=1))
    with monkeypatch.context() as patched:
        patched.setattr("barnabas.broker.metadata.log.snapshot_file.write_durably", full_disk)
        bench.scheduler.advance(HOUR_MS)
    assert len(bench.names(".checkpoint")) == 1
    store.create(NewTopic(name="b", partitions=1))
    bench.scheduler.advance(HOUR_MS)
    assert len(bench.names(".checkpoint")) == 2
    store.close()
    assert bench.replay() == store.store.image


def test_a_change_that_is_appended_while_a_snapshot_is_written_is_in_the_next_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, changed = write_snapshot, Snapshotter._changed
    late: list[tuple[Snapshotter, MetadataImage, MetadataImage]] = []
    writes = 0

    def write_beside_a_change(*args: Any, **kwargs: Any) -> Path:
        nonlocal writes
        writes += 1
        path = write(*args, **kwargs)
        if writes == 2:  # the first one is written at opening
            store.create(NewTopic(name="beside", partitions=1))
        return path

    def told(follower: Snapshotter, before: MetadataImage, after: MetadataImage) -> None:
        if "beside" in after.topics and "beside" not in before.topics:
            late.append((follower, before, after))  # the writer's thread appends, and tells it a moment later
        else:
            changed(follower, before, after)

    monkeypatch.setattr(snapshotter, "write_snapshot", write_beside_a_change)
    monkeypatch.setattr(Snapshotter, "_changed", told)
    store = bench.open(**{"metadata.log.max.record.bytes.between.snapshots": "1"})
    bench.scheduler.run_due()
    store.create(NewTopic(name="first", partitions=1))
    bench.scheduler.run_due()
    assert (writes, len(late)) == (2, 1)
    changed(*late[0])
    bench.scheduler.run_due()
    image = store.store.image
    store.close()
    assert bench.names(".checkpoint")[-1] == f"{image.end_offset:020d}-0000000001.checkpoint"


def test_a_change_while_the_log_is_trimmed_begins_the_next_snapshot(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    trim_to = MetadataLog.trim_to
    changes: list[threading.Thread] = []

    def trim_beside_a_change(log: MetadataLog, offset: int) -> int:
        segments = trim_to(log, offset)
        if not changes:
            changes.append(threading.Thread(target=store.create, args=(NewTopic(name="beside", partitions=1),)))
            changes[0].start()
            changes[0].join(0.5)  # it may end now, or after the trim
        return segments

    monkeypatch.setattr(MetadataLog, "trim_to", trim_beside_a_change)
    store = bench.open(**{"metadata.log.max.record.bytes.between.snapshots": "1", "metadata.max.retention.bytes": "1"})
    bench.scheduler.run_due()
    while not changes:
        store.create(NewTopic(name=f"topic-{store.store.image.end_offset}", partitions=1))
        bench.scheduler.run_due()
    changes[0].join()
    bench.scheduler.run_due()
    image = store.store.image
    store.close()
    assert bench.names(".checkpoint")[-1] == f"{image.end_offset:020d}-0000000001.checkpoint"


def test_the_next_snapshot_removes_the_part_file_of_a_crash(bench: Bench) -> None:
    bench.open().close()
    part = bench.metadata / f"{1:020d}-{1:010d}.checkpoint.part"
    part.write_bytes(b"half")
    store = bench.open()
    store.create(NewTopic(name="a", partitions=1))
    bench.scheduler.advance(HOUR_MS)
    assert not part.exists()
    store.close()


def kept(*sizes_and_times: tuple[int, int]) -> list[KeptSnapshot]:
    return [KeptSnapshot(SnapshotId(index, 1), size, ms) for index, (size, ms) in enumerate(sizes_and_times, 1)]


@pytest.mark.parametrize(
    ("retention_ms", "retention_bytes", "dropped"),
    [
        (-1, -1, 0),
        (5, -1, 2),
        (0, -1, 2),
        (10, -1, 0),
        (9, -1, 1),
        (-1, 0, 2),
        (-1, 100, 1),
        (-1, 110, 0),
        (-1, 109, 1),
    ],
)
def test_the_oldest_snapshots_are_deleted_by_age_and_by_size(
    retention_ms: int, retention_bytes: int, dropped: int
) -> None:
    snapshots = kept((10, 0), (20, 4), (30, 9))
    found = snapshots_to_drop(
        snapshots, log_bytes=50, now_ms=10, retention_ms=retention_ms, retention_bytes=retention_bytes
    )
    assert found == snapshots[:dropped]


def test_a_snapshot_has_one_record_per_object() -> None:
    records = list(snapshot_records(everything(30)))
    assert len(records) == len({repr(record) for record in records}) == 15
