"""A broker's storage and metadata without its network, whose operations note what they promise.

Small segments and index intervals, below Kafka's limits, so that a few appends roll and index. Clock and background
work are the workload's, so a workload with the same seed makes the same recording.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from barnabas.broker.metadata.topics import plan_delete_topics
from barnabas.broker.storage.log.append import AppendOrigin
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.config import BrokerConfig, LogConfig, Setting
from barnabas.protocol.messages.topics.topics import NewTopic, TopicReference
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.storage.acknowledged import holding
from tests.support.storage.bench import NEVER, START_MS, ManualClock, StepScheduler, batch
from tests.support.storage.metadata_store import Opened
from tests.torture.crash_states.promises import (
    Appending,
    Begin,
    Changed,
    Changing,
    Compacting,
    Durable,
    LogId,
    Produced,
    Recovered,
    StartMoving,
    Stored,
    log_id,
    stored_records,
)
from tests.torture.crash_states.recording import Recorder

SMALL_SEGMENTS = {
    "segment_bytes": 1200,
    "index_interval_bytes": 150,
    "segment_index_bytes": 1200,
    "file_delete_delay_ms": 1000,
    "timestamp_before_max_ms": NEVER,
    "timestamp_after_max_ms": NEVER,
}


FEATURES = "transaction.version=0"
"""Those of a new directory: every version of Apache Kafka opens it."""


class JumpingClock(ManualClock):
    """A clock whose wall time also jumps, while its monotonic time goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.jumped_ms = 0
        """How far the wall time is ahead."""

    def wall_ms(self) -> int:
        return self.now_ms + self.jumped_ms


class SmallStore(Opened):
    """A store whose logs have small segments."""

    def __init__(self, config: BrokerConfig, changes: Mapping[str, Any], clock: ManualClock) -> None:
        self._changes = {**SMALL_SEGMENTS, **changes}
        super().__init__(config, clock=clock, scheduler=StepScheduler(clock))

    def log_config_of(self, topic: str) -> LogConfig:
        return replace(super().log_config_of(topic), **self._changes)


def start(
    root: Path,
    *,
    changes: Mapping[str, Any] | None = None,
    clock: ManualClock | None = None,
    features: str = FEATURES,
) -> SmallStore:
    """Start on the log directories below `root`. Raises MetadataError, StorageError."""
    return SmallStore(_config(root, features), changes or {}, clock or ManualClock())


@lru_cache(maxsize=4)
def _config(root: Path, features: str = FEATURES) -> BrokerConfig:
    texts = {
        "log.dirs": f"{root}/one,{root}/two",
        "initial.features": features,
        "num.recovery.threads.per.data.dir": "1",
        "log.cleaner.enable": "false",
        "metadata.max.retention.bytes": "1",
        "share.coordinator.snapshot.update.records.per.snapshot": "3",
    }
    return BrokerConfig.of({name: Setting(text, "the campaign") for name, text in texts.items()})


class Workbench:
    """The running broker of a workload."""

    def __init__(
        self,
        recorder: Recorder,
        *,
        changes: Mapping[str, Any] | None = None,
        begins: bool = True,
        count: int = 0,
        features: str = FEATURES,
    ) -> None:
        """Start it. `changes` are fields of the logs' LogConfig; `begins`: power cuts are explored from now on.

        `count`: number of records that earlier runs have appended. `features`: levels of a new directory.
        """
        self.clock = JumpingClock()
        self.recorder = recorder
        self._count = count
        recorder.note(Changing())
        self.opened = start(recorder.root, changes=changes, clock=self.clock, features=features)
        self._changed()
        if begins:
            self.begin()

    def begin(self) -> None:
        """Explore power cuts from now on."""
        self.recorder.note(Begin())

    @property
    def scheduler(self) -> StepScheduler:
        """The background work."""
        scheduler = self.opened.log_manager.scheduler
        assert isinstance(scheduler, StepScheduler)
        return scheduler

    def create(self, topic: str, partitions: int = 1) -> TopicPartition:
        """Create a topic, as its request does; return its first partition."""
        self.recorder.note(Changing())
        self.opened.create(NewTopic(name=topic, partitions=partitions))
        self._changed()
        return TopicPartition(topic, 0)

    def delete(self, topic: str) -> None:
        """Delete a topic, as its request does: the metadata first."""
        store = self.opened.store
        partitions = [TopicPartition(topic, number) for number in store.image.topics[topic].partitions]
        self.recorder.note(Changing())
        store.change(lambda image: plan_delete_topics(image, [TopicReference(name=topic)], config=self.opened.config))
        self._changed()
        self.opened.log_manager.delete(partitions)

    def log(self, topic_partition: TopicPartition) -> PartitionLog:
        """Return a partition's log."""
        log = self.opened.log_manager.get(topic_partition)
        assert log is not None, f"{topic_partition} has no log"
        return log

    def id_of(self, topic_partition: TopicPartition) -> LogId:
        """Return the identity of a partition's log."""
        return log_id(self.opened, topic_partition)

    def append(
        self,
        topic_partition: TopicPartition,
        keys: Sequence[bytes] = (b"a", b"b"),
        *,
        size: int = 60,
        value: bytes | None = b"",
        **header: Any,
    ) -> int:
        """Append a batch with one record for each key and a value that never repeats; return its base offset."""
        log = self.log(topic_partition)
        rows = []
        for key in keys:
            self._count += 1
            content = None if value is None else f"{self._count}".encode().ljust(size, b".")
            rows.append((START_MS + self._count // 3 * 10, key, content))
        epoch = max(log.latest_leader_epoch, 0)
        start = log.log_end_offset
        records = {start + index: Stored(key, value, at) for index, (at, key, value) in enumerate(rows)}
        self.recorder.note(Appending(self.id_of(topic_partition), records, epoch))
        origin = AppendOrigin.TRANSACTION if header.get("is_transactional") else AppendOrigin.CLIENT
        data = batch(*rows, **header)
        if "producer_id" in header and origin is AppendOrigin.CLIENT:
            self.recorder.note(Produced(self.id_of(topic_partition), header["producer_id"], start, bytes(data)))
        return log.append_as_leader(data, leader_epoch=epoch, origin=origin).base_offset

    def flush(self, topic_partition: TopicPartition) -> None:
        """Sync a log, as the group commit does, and acknowledge its records."""
        end_offset = self.log(topic_partition).log_end_offset
        self.log(topic_partition).flush()
        self.durable(topic_partition, end_offset)

    def durable(self, topic_partition: TopicPartition, end_offset: int) -> None:
        """Note that records below an offset were acknowledged."""
        self.recorder.note(Durable(self.id_of(topic_partition), end_offset))

    def move(self, topic_partition: TopicPartition) -> None:
        """Begin to move a log to the other log directory."""
        (other,) = set(self.opened.log_manager.live_directories) - {self.log(topic_partition).log_dir}
        assert self.opened.log_manager.move(topic_partition, other)

    def allow_start(self, topic_partition: TopicPartition, offset: int) -> None:
        """Note that records below an offset may go from now on."""
        self.recorder.note(StartMoving(self.id_of(topic_partition), offset))

    def allow_compaction(self, topic_partition: TopicPartition) -> None:
        """Note that all but the last record of each key may go from now on."""
        self.recorder.note(Compacting(self.id_of(topic_partition)))

    def note_written(self, topic_partition: TopicPartition, records: dict[int, Stored]) -> None:
        """Note records that another program has written and synced."""
        self.recorder.note(Appending(self.id_of(topic_partition), records, 0))
        self.durable(topic_partition, max(records) + 1)

    def note_recovered(self) -> None:
        """Note what the start has found in each log."""
        for log in self.opened.log_manager.logs():
            self.recorder.note(Recovered(self.id_of(log.topic_partition), stored_records(log)))

    def run_background(self, milliseconds: int = 0) -> None:
        """Advance the clock, and run what is due."""
        self.scheduler.advance(milliseconds)

    def checkpoint(self) -> None:
        """Write all checkpoints, as their tasks do."""
        maintenance = self.opened.log_manager.maintenance
        maintenance.checkpoint_recovery_points()
        maintenance.checkpoint_log_starts()
        maintenance.checkpoint_high_watermarks()

    def close(self) -> None:
        """Stop cleanly: everything appended is durable afterwards."""
        ends = {log.topic_partition: log.log_end_offset for log in self.opened.log_manager.logs()}
        self.opened.close()
        for topic_partition, end_offset in ends.items():
            self.durable(topic_partition, end_offset)

    def abandon(self) -> None:
        """End without writing anything, as the end of the process does."""
        abandon(self.opened)

    def _changed(self) -> None:
        self.recorder.note(Changed(holding(self.opened.store.image)))


def abandon(opened: Opened) -> None:
    """Release all files and locks of a store without a write."""
    manager = opened.log_manager
    for log in manager.logs_and_copies():
        log.go_offline()
    if manager.metadata_log is not None:
        manager.metadata_log.go_offline()
    for directory in manager.directories:
        directory.unlock()
