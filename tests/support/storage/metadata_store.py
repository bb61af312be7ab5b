"""A metadata store on a test's directories, in the state after the daemon's start, and the files that it wrote.

with opened(tmp_path) as first:
    first.create(NewTopic("orders", 2))
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas.broker.metadata.directories.reconcile import create_log
from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.log.batches import decode_batches, encode_change
from barnabas.broker.metadata.log.log_replay import replay_metadata_directory
from barnabas.broker.metadata.placement import Placement
from barnabas.broker.metadata.store import open_metadata
from barnabas.broker.metadata.topics import plan_create_topics
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log_manager import LogManager
from barnabas.broker.storage.services.clock import Clock, SystemClock
from barnabas.broker.storage.services.scheduler import Scheduler
from barnabas.config import BrokerConfig, LogConfig, Setting
from barnabas.protocol.messages.topics.topics import CreatableTopicResult, NewTopic
from barnabas.protocol.metadata.records import (
    MetadataRecord,
)
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.storage.bench import ManualClock, StepScheduler

SEGMENT = "__cluster_metadata-0/00000000000000000000.log"


class Opened:
    """A store with its log manager, in the state after the daemon's start."""

    def __init__(self, config: BrokerConfig, *, clock: Clock | None = None, scheduler: Scheduler | None = None) -> None:
        self.config = config
        self.log_manager = LogManager(config, clock=clock, scheduler=scheduler)
        self.log_manager.open_directories()
        try:
            self.store = open_metadata(config, self.log_manager, clock or SystemClock())
            self.log_manager.load_logs(self.log_config_of, self.store.is_stray, self._assign)
            self.store.reconcile(self.log_manager)
        except (MetadataError, StorageError):
            release(self.log_manager)
            raise

    def log_config_of(self, topic: str) -> LogConfig:
        """Return the configuration of a topic's logs; a subclass may use values that Kafka's limits exclude."""
        return self.config.log_config.with_overrides(self.store.image.topic_configs(topic))

    def _assign(self, log: PartitionLog, log_dir: Path) -> None:
        """Look `store.assign` up at each call, so that a test can replace it."""
        self.store.assign(log, log_dir)

    def create(self, *topics: NewTopic) -> list[CreatableTopicResult]:
        before = self.store.image
        results = self.store.change(
            lambda image: plan_create_topics(
                image,
                topics,
                config=self.config,
                placement=Placement(self.store.node_id, list(self.store.directory_ids.values()), image),
            )
        )
        after, ids = self.store.image, self.store.directory_ids
        for name, topic in after.topics.items():
            for number in topic.partitions:
                if before.partition(name, number) is None:
                    create_log(topic, TopicPartition(name, number), self.log_manager, ids, is_new=True)
        return results

    def close(self) -> None:
        self.log_manager.shutdown(self.store.broker_epoch)
        self.store.close()

    def crash(self, to: Path) -> Path:
        """Copy the only log directory as a kill -9 would leave it; return the copy."""
        left = shutil.copytree(self.config.metadata_log_dir, to, ignore=shutil.ignore_patterns(".lock"))
        self.close()
        return left


def release(log_manager: LogManager) -> None:
    """Unlock the directories without a write, as the end of a process does."""
    for directory in log_manager.directories:
        directory.unlock()


@contextmanager
def opened(*directories: Path, **settings: str) -> Iterator[Opened]:
    """Open a store on `directories`, and close it cleanly at the end."""
    found = open_store(*directories, **settings)
    yield found
    found.close()


def open_store(*directories: Path, **settings: str) -> Opened:
    """Open a store on `directories`; settings have `_` for `.`."""
    return Opened(_configuration(directories, settings))


def stepped_store(directory: Path, clock: ManualClock, scheduler: StepScheduler, **settings: str) -> Opened:
    """Open a store whose background work the test runs step by step, with snapshots as in a serving broker."""
    store = Opened(_configuration((directory,), settings), clock=clock, scheduler=scheduler)
    store.store.start_snapshots(scheduler)
    return store


def _configuration(directories: tuple[Path, ...], settings: dict[str, str]) -> BrokerConfig:
    texts = {
        "log.dirs": ",".join(map(str, directories)),
        "offsets.topic.num.partitions": "1",
        "initial.features": "transaction.version=0",  # every Kafka opens a directory without other features
        **{n.replace("_", "."): v for n, v in settings.items()},
    }
    return BrokerConfig.of({name: Setting(text, "the test") for name, text in texts.items()})


def tree(directory: Path) -> dict[str, bytes]:
    """Return every file below `directory` with its bytes."""
    files = (path for path in directory.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def append(directory: Path, *records: MetadataRecord, level: int = 19, epoch: int = 1) -> None:
    """Append one change to the metadata log, as another program would."""
    path = directory / SEGMENT
    path.parent.mkdir(parents=True, exist_ok=True)
    end_offset = replay_metadata_directory(path.parent).image.end_offset
    data, _ = encode_change(records, level=level, base_offset=end_offset, leader_epoch=epoch, timestamp_ms=1)
    with path.open("ab") as file:
        file.write(data)


def records_of(directory: Path) -> list[object]:
    return list(decode_batches((directory / SEGMENT).read_bytes()))
