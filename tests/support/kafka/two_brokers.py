"""The same requests for two brokers, over Kafka's protocol, and comparison of the files that they write.

The bytes of a request are the same for both, so any difference in the files is caused by the brokers.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.broker.storage.files.checkpoint_file import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from barnabas.broker.storage.files.file_names import LOG_SUFFIX
from barnabas.broker.storage.files.leader_epoch import LEADER_EPOCH_CHECKPOINT
from barnabas.protocol.records.batch import iter_batches
from barnabas.protocol.records.errors import UnsupportedMagicError
from tests.support.compacted_topic import active_base, clean_offset
from tests.support.kafka.kafka_wire import KafkaWire, schema

CHECKPOINTS = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_CHECKPOINT,
)
WAIT_S = 30.0
_POLL_INTERVAL_S = 0.02
_TIMEOUT = timedelta(seconds=30)
_NOT_YET = (3, 5, 6)
"""Kafka's error codes for a new topic's partition until its leader is ready."""
_TOPIC_ID = re.compile(rb"(?<=^version: 0\n)topic_id: \S{22}$")
_SET = 0
_TOPIC_RESOURCE = 2


class Batch(NamedTuple):
    """One produce request."""

    topic: str
    partition: int
    data: bytes


class Topic(NamedTuple):
    """Definition of a topic."""

    partitions: int
    configs: Mapping[str, str]


def create_topics(wire: KafkaWire, topics: Mapping[str, Topic]) -> None:
    """Create topics, each with one replica."""
    kio = schema("create_topics", 5, "request")
    entries = tuple(
        kio.CreatableTopic(
            name=name,
            num_partitions=topic.partitions,
            replication_factor=1,
            assignments=(),
            configs=tuple(kio.CreatableTopicConfig(name=key, value=value) for key, value in topic.configs.items()),
        )
        for name, topic in topics.items()
    )
    for made in wire.call("create_topics", 5, topics=entries, timeout=_TIMEOUT).topics:
        assert made.error_code == 0, made


def feed(wire: KafkaWire, batches: Iterable[Batch]) -> None:
    """Produce the batches one by one, each acknowledged before the next."""
    for batch in batches:
        answer = _once_led(wire.produce, 9, batch.topic, batch.data, partition=batch.partition)
        assert answer.error_code == 0, (batch.topic, answer)


def _once_led(ask: Callable[..., Any], *arguments: object, **settings: object) -> Any:
    """Repeat a request until the partition has a leader; return the partition's response."""
    deadline = time.monotonic() + WAIT_S
    while (answer := ask(*arguments, **settings)).error_code in _NOT_YET:
        assert time.monotonic() < deadline, answer
        time.sleep(_POLL_INTERVAL_S)  # polling another process with a deadline
    return answer


def delete_records(wire: KafkaWire, topic: str, partition: int, offset: int) -> None:
    """Move a partition's log start offset."""
    kio = schema("delete_records", 2, "request")
    entry = kio.DeleteRecordsPartition(partition_index=partition, offset=offset)
    topics = (kio.DeleteRecordsTopic(name=topic, partitions=(entry,)),)
    (answer,) = wire.call("delete_records", 2, topics=topics, timeout=_TIMEOUT).topics
    assert answer.partitions[0].error_code == 0, answer


def set_config(wire: KafkaWire, topic: str, name: str, value: str) -> None:
    """Change one config of a topic."""
    kio = schema("incremental_alter_configs", 1, "request")
    config = kio.AlterableConfig(name=name, config_operation=_SET, value=value)
    resource = kio.AlterConfigsResource(resource_type=_TOPIC_RESOURCE, resource_name=topic, configs=(config,))
    (answer,) = wire.call("incremental_alter_configs", 1, resources=(resource,), validate_only=False).responses
    assert answer.error_code == 0, answer


def stored_batches(host: str, port: int, topic: str, partition: int) -> bytes:
    """Return all batches of a partition as sent over Kafka's protocol, which is how they are stored."""
    found = bytearray()
    offset = 0
    with KafkaWire(host, port) as wire:
        while records := _once_led(wire.fetch, 11, topic, offset, partition=partition).records:
            for batch in iter_batches(records):
                found += records[batch.position : batch.position + batch.size_bytes]
                offset = batch.next_offset
    return bytes(found)


def await_clean(data: Path, topic: str) -> None:
    """Wait until all but the active segment of partition 0 is clean, and the old segments are deleted."""
    deadline = time.monotonic() + WAIT_S
    directory = data / f"{topic}-0"
    while clean_offset(data, topic) != active_base(data, topic) or any(directory.glob("*.deleted")):
        assert time.monotonic() < deadline, f"{directory} was not cleaned: {sorted(map(str, directory.iterdir()))}"
        time.sleep(_POLL_INTERVAL_S)


def files_of(data: Path, topics: Mapping[str, Topic]) -> dict[str, bytes]:
    """Return the content of every file in the topics' partition directories, by `<topic>-<partition>/<name>`."""
    directories = [data / f"{name}-{number}" for name, topic in topics.items() for number in range(topic.partitions)]
    return {
        f"{directory.name}/{path.name}": path.read_bytes() for directory in directories for path in directory.iterdir()
    }


def checkpoints_of(data: Path) -> dict[str, list[str]]:
    """Return the lines of a data directory's checkpoint files by file name."""
    return {name: (data / name).read_text().splitlines() for name in CHECKPOINTS if (data / name).exists()}


def differences(ours: Mapping[str, bytes], theirs: Mapping[str, bytes]) -> list[str]:
    """Return the differences between two directories, a line each."""
    found = [f"only we have {name}" for name in sorted(set(ours) - set(theirs))]
    found += [f"only Kafka has {name}" for name in sorted(set(theirs) - set(ours))]
    for name in sorted(set(ours) & set(theirs)):
        if ours[name] != theirs[name]:
            found.append(f"{name}: {first_difference(ours[name], theirs[name])}")
    return found


def first_difference(ours: Sequence[int], theirs: Sequence[int]) -> str:
    """Describe where two different contents differ first."""
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    here, there = bytes(ours[at : at + 24]), bytes(theirs[at : at + 24])
    return f"{len(ours)} and {len(theirs)} bytes, from position {at} on {here.hex()} and {there.hex()}"


def without_topic_ids(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Mask the topic id in partition.metadata, which each broker generates."""
    return {name: _TOPIC_ID.sub(b"topic_id: *", content) for name, content in files.items()}


def without_epochs(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Remove leader epochs: leader-epoch-checkpoint, and the field in every batch, which the CRC does not cover.

    A restart of Kafka raises the epoch by 0, 1 or 2, due to a race between its registration and its controller;
    Barnabas raises it by 1 after an unclean stop.
    """
    kept = {}
    for name, content in files.items():
        if name.endswith(LOG_SUFFIX):
            stamped = bytearray(content)
            with suppress(UnsupportedMagicError):  # messages of format 0 and 1 have no epoch
                for batch in iter_batches(stamped):
                    batch.stamp_offset_and_epoch(batch.base_offset, 0)
            kept[name] = bytes(stamped)
        elif not name.endswith(LEADER_EPOCH_CHECKPOINT):
            kept[name] = content
    return kept
