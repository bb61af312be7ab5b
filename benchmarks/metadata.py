"""Benchmarks of the metadata log, without a broker: `python -m benchmarks.metadata`.

    replay       10,000 partitions in 1,000 topics, from a log in which each topic was created, deleted and created
                 again (so that there is a history), and from a snapshot with an empty log after it
    examine      what a start reads before it writes: the replay, and partition.metadata of 10,000 directories
    creation     one topic of one partition: milliseconds, syncs of files and directories, bytes in the metadata log
    planning     one CreateTopics request of 10,000 topics of one partition, and one of 1,000 after it; without a disk

Reports CPU seconds, because a start is CPU-bound. Each measurement runs in its own process; the first is not counted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from barnabas.broker.metadata.directories.examine import examine
from barnabas.broker.metadata.directories.meta_properties import write_meta_properties
from barnabas.broker.metadata.directories.reconcile import create_log
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.image_builder import ImageBuilder
from barnabas.broker.metadata.log.batches import encode_change
from barnabas.broker.metadata.log.log_replay import METADATA_DIRECTORY, replay_metadata_directory
from barnabas.broker.metadata.log.snapshot_file import RaftState, write_snapshot
from barnabas.broker.metadata.placement import Placement
from barnabas.broker.metadata.store import open_metadata
from barnabas.broker.metadata.topics import plan_create_topics
from barnabas.broker.storage.log_manager import LogManager
from barnabas.broker.storage.services.clock import SystemClock
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.value import Setting
from barnabas.protocol.messages.topics.topics import NewTopic
from barnabas.protocol.metadata.levels import INITIAL_LEVEL, METADATA_VERSION
from barnabas.protocol.metadata.partition_state import PartitionState
from barnabas.protocol.metadata.records import (
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.uuids import random_uuid, uuid_text
from benchmarks.runs.result_files import add_json_option, write_result
from benchmarks.runs.side_by_side import Columns, Samples

PARTITIONS_EACH = 10
CREATIONS = 50
FIRST_CREATIONS = 5
"""Those that are not counted."""
PLANNED_TOPICS = 10_000
"""Topics in one request: Kafka's maximum."""
PLANNED_BESIDE = 1_000


def replay_once(log_dir: str) -> None:
    """Measure a replay (run in its own process); print its CPU seconds and the number of partitions."""
    started = time.process_time()
    replayed = replay_metadata_directory(Path(log_dir) / METADATA_DIRECTORY)
    print(time.process_time() - started, replayed.image.partition_count())


def examine_once(log_dir: str) -> None:
    """Measure an examination (run in its own process); print its CPU seconds and the number of partitions."""
    started = time.process_time()
    report = examine([Path(log_dir)])
    assert not report.problems, report.problems[0].sentence
    print(time.process_time() - started, len(report.directories[0].partitions))


def plan_once(beside: str) -> None:
    """Measure planning one CreateTopics request (run in its own process); print its CPU seconds and topic count.

    `beside` "yes" plans PLANNED_BESIDE topics on an image that already has PLANNED_TOPICS.
    """
    config = BrokerConfig.of({"log.dirs": Setting("unused", "benchmark")})
    image = MetadataImage()

    def plan(prefix: str, count: int) -> list[MetadataRecord]:
        # Names with "_" can collide with names with ".": the expensive case.
        topics = [NewTopic(name=f"{prefix}_{number}", partitions=1) for number in range(count)]
        placement = Placement(1, [random_uuid()], image)
        return plan_create_topics(image, topics, config=config, placement=placement).records

    started = time.process_time()
    records = plan("topic", PLANNED_TOPICS)
    if beside == "yes":
        builder = ImageBuilder(image)
        for record in records:
            builder.apply(record)
        image = builder.build()
        started = time.process_time()
        records = plan("more", PLANNED_BESIDE)
    print(time.process_time() - started, sum(isinstance(record, TopicRecord) for record in records))


def write_history(log_dir: Path, topics: int) -> None:
    """Write a metadata log in which every topic was created, deleted and created again, change by change."""
    directory = log_dir / METADATA_DIRECTORY
    directory.mkdir(parents=True)
    directory_id = random_uuid()
    write_meta_properties(log_dir, node_id=1, cluster_id=uuid_text(random_uuid()), directory_id=directory_id)
    state = PartitionState((1,), (1,), 1, directories=(directory_id,))
    offset = 0
    with (directory / f"{0:020d}.log").open("wb") as file:

        def append(*records: MetadataRecord) -> None:
            nonlocal offset
            data, offset = encode_change(
                records, level=INITIAL_LEVEL, base_offset=offset, leader_epoch=1, timestamp_ms=1
            )
            file.write(data)

        append(FeatureLevelRecord(METADATA_VERSION, INITIAL_LEVEL))
        for number in range(topics):
            for is_last in (False, True):
                topic_id = random_uuid()
                partitions = (PartitionRecord(index, topic_id, state) for index in range(PARTITIONS_EACH))
                append(TopicRecord(f"topic-{number}", topic_id), *partitions)
                if not is_last:
                    append(RemoveTopicRecord(topic_id))


def make_directories(log_dir: Path) -> None:
    """Create the partition directories listed in the metadata, each with its partition.metadata."""
    image = replay_metadata_directory(log_dir / METADATA_DIRECTORY).image
    for topic in image.topics.values():
        for number in topic.partitions:
            directory = log_dir / f"{topic.name}-{number}"
            directory.mkdir()
            (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {uuid_text(topic.topic_id)}")


def snapshot_and_trim(log_dir: Path) -> None:
    """Write the same state as a snapshot, with an empty log after it."""
    directory = log_dir / METADATA_DIRECTORY
    image = replay_metadata_directory(directory).image
    write_snapshot(directory, image, epoch=1, last_timestamp_ms=1, raft=RaftState())
    (directory / f"{0:020d}.log").unlink()
    (directory / f"{image.end_offset:020d}.log").touch()


def measure(function: str, argument: Path | str, rounds: int, expected: int) -> list[float]:
    """Return the CPU seconds of each round."""
    code = f"from benchmarks.metadata import {function}; {function}({str(argument)!r})"
    samples = []
    for number in range(rounds + 1):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        seconds, count = done.stdout.split()
        assert int(count) == expected, f"{count} instead of {expected}"
        if number:
            samples.append(float(seconds))
    return samples


def creations(log_dir: Path) -> list[Columns]:
    """Create topics of one partition one after the other, as the broker does."""
    settings = {"log.dirs": str(log_dir)}
    config = BrokerConfig.of({name: Setting(value, "benchmark") for name, value in settings.items()})
    manager = LogManager(config)
    manager.open_directories()
    store = open_metadata(config, manager, SystemClock())
    manager.load_logs(lambda _: config.log_config)
    syncs = _count_syncs()
    segment = log_dir / METADATA_DIRECTORY / f"{0:020d}.log"
    samples: list[Columns] = []
    for number in range(CREATIONS):
        before, size, started = syncs(), segment.stat().st_size, time.perf_counter()
        topic = NewTopic(name=f"topic-{number:04d}", partitions=1)
        store.change(
            lambda image, topic=topic: plan_create_topics(  # type: ignore[misc]
                image,
                [topic],
                config=config,
                placement=Placement(1, list(store.directory_ids.values()), image),
            )
        )
        created = store.image.topics[topic.name]
        create_log(created, TopicPartition(topic.name, 0), manager, store.directory_ids, is_new=True)
        milliseconds = (time.perf_counter() - started) * 1000
        grown = segment.stat().st_size - size
        samples.append({"milliseconds": milliseconds, "syncs": syncs() - before, "metadata_bytes": grown})
    manager.shutdown()
    return samples


def _count_syncs() -> Callable[[], int]:
    """Count this process's syncs of files and directories from now on."""
    count = 0

    def counted(real: Callable[[int], None]) -> Callable[[int], None]:
        def sync(descriptor: int) -> None:
            nonlocal count
            count += 1
            real(descriptor)

        return sync

    os.fsync, os.fdatasync = counted(os.fsync), counted(os.fdatasync)  # type: ignore[assignment]
    return lambda: count


def main() -> None:
    """Print one line per measurement: the median of the rounds, and every round."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metadata", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--topics", type=int, default=1000, help="of ten partitions each")
    parser.add_argument("--directory", help="where the data is written (default: the system's temporary directory)")
    add_json_option(parser, "metadata")
    options = parser.parse_args()
    lines: Samples = {}

    def keep(name: str, values: list[float]) -> None:
        lines[name] = [{"cpu_s": value} for value in values]
        _print(f"{name}, CPU s", values)

    home = Path(tempfile.mkdtemp(prefix="barnabas-metadata-", dir=options.directory))
    partitions = options.topics * PARTITIONS_EACH
    try:
        log_dir = home / "history"
        write_history(log_dir, options.topics)
        size = (log_dir / METADATA_DIRECTORY / f"{0:020d}.log").stat().st_size
        print(f"metadata log: {size:,} bytes, {partitions} partitions")
        keep("replay of the log", measure("replay_once", log_dir, options.rounds, partitions))
        make_directories(log_dir)
        keep("examine, log", measure("examine_once", log_dir, options.rounds, partitions))
        snapshot_and_trim(log_dir)
        (snapshot,) = (log_dir / METADATA_DIRECTORY).glob("*.checkpoint")
        print(f"snapshot: {snapshot.stat().st_size:,} bytes")
        keep("replay of a snapshot", measure("replay_once", log_dir, options.rounds, partitions))
        keep("examine, snapshot", measure("examine_once", log_dir, options.rounds, partitions))
        keep("planning 10,000 topics", measure("plan_once", "no", options.rounds, PLANNED_TOPICS))
        keep("planning 1,000 beside them", measure("plan_once", "yes", options.rounds, PLANNED_BESIDE))
        created = lines["creation of a topic"] = creations(home / "creations")[FIRST_CREATIONS:]
        for name in created[0]:
            _print(f"creation of a topic, {name}", [each[name] for each in created], show_all=False)
    finally:
        shutil.rmtree(home)
    write_result(options.json, "benchmarks.metadata", options, lines)


def _print(name: str, values: list[float], *, show_all: bool = True) -> None:
    rounds = f"   [{', '.join(f'{value:.3f}' for value in values)}]" if show_all else ""
    print(f"{name:40} {median(values):10.3f}{rounds}")


if __name__ == "__main__":
    main()
