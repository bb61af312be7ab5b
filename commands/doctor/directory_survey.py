"""Survey of a node's partition directories: sizes, committed offsets, open transactions.

`examine` reads the metadata; this reads the logs, as `read.only` does: recovered in memory, without taking a lock or
writing a byte. After an unclean stop it reads the data that a start would recover, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas.broker.groups.offsets.loader import load_offsets_partition
from barnabas.broker.metadata.directories.report import DirectoryReport
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.inspection.lock_probe import lock_holder
from barnabas.broker.storage.inspection.transaction_decisions import Decision, transaction_decisions
from barnabas.broker.storage.inspection.verify_directory import log_bytes
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.log.state import LoadState
from barnabas.broker.storage.read_only.log_manager import ReadOnlyLogManager
from barnabas.config import BrokerConfig
from barnabas.config.value import Setting
from barnabas.protocol.errors import BrokerError, DecodeError
from barnabas.protocol.records.batch import iter_batches
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.topic_name import OFFSETS_TOPIC
from barnabas.protocol.topic_partition import TopicPartition

_BUFFER_BYTES = 4 * 1024 * 1024
_NO_TRANSACTION = -1
_GROUP_EPOCH_KEY = (3).to_bytes(2, "big")
"""The key of ConsumerGroupMetadata: int16 3, then the group's id after its int16 size."""


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """A topic on disk. `topic_id` is None if the topic is not in the metadata log."""

    name: str
    topic_id: bytes | None
    partitions: int
    here: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """An open transaction: read_committed consumers stop before `first_offset`."""

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    first_offset: int


@dataclass(frozen=True, slots=True)
class Survey:
    """Contents of the logs.

    groups       group id -> number of partitions with committed offsets
    unfinished   open and prepared transactions of the coordinator, by producer id
    holders      log directory -> process id of the broker that has it open (0: unknown)
    notes        sentences about data that could not be read
    """

    topics: tuple[FoundTopic, ...]
    groups: Mapping[str, int]
    open_transactions: tuple[OpenTransaction, ...]
    unfinished: Mapping[int, Decision]
    holders: Mapping[Path, int]
    notes: tuple[str, ...]


def survey(report: DirectoryReport) -> Survey:
    """Read all logs. Raises OSError for a directory that cannot be listed."""
    directories = [each.path for each in report.directories if each.is_log_dir and each.exists]
    holders = {path: holder for path in directories if (holder := lock_holder(path)) is not None}
    notes: list[str] = []
    groups: dict[str, int] = {}
    transactions: list[OpenTransaction] = []
    unfinished: dict[int, Decision] = {}
    if holders:
        notes.append("a broker has the directories open: stop it to see groups and open transactions")
    elif directories:
        manager = _opened(directories)
        try:
            for log in manager.logs():
                transactions += _open_transactions(log)
                if log.topic_partition.topic == OFFSETS_TOPIC:
                    notes += _add_groups(log, groups)
            progress = manager.load_progress.items()
            notes += [f"{each} cannot be read" for each, how in progress if how.state is LoadState.FAILED]
        finally:
            manager.shutdown()
        try:
            decisions = transaction_decisions(directories)
            unfinished = {each: decision for each, decision in decisions.items() if decision.is_unfinished}
        except DecodeError as error:
            notes.append(f"the states of transactions cannot be read: {error}")
    sorted_groups = dict(sorted(groups.items()))
    return Survey(_topics(report), sorted_groups, tuple(transactions), unfinished, holders, tuple(notes))


def _opened(directories: Sequence[Path]) -> ReadOnlyLogManager:
    dirs = Setting(",".join(map(str, directories)), "the command line")
    config = BrokerConfig.of({"log.dirs": dirs, "log.cleaner.enable": Setting("false", "the command line")})
    manager = ReadOnlyLogManager(config)
    try:
        manager.open_directories()
        manager.load_logs(lambda _: config.log_config)
    except BaseException:
        manager.shutdown()
        raise
    return manager


def _topics(report: DirectoryReport) -> tuple[FoundTopic, ...]:
    sizes: dict[str, int] = {}
    here: dict[str, int] = {}
    for directory in report.directories:
        for (topic, _), path in directory.partitions.items():
            sizes[topic] = sizes.get(topic, 0) + log_bytes(path)
            here[topic] = here.get(topic, 0) + 1
    known = report.image.topics
    return tuple(
        FoundTopic(
            name,
            known[name].topic_id if name in known else None,
            len(known[name].partitions) if name in known else here[name],
            here.get(name, 0),
            sizes.get(name, 0),
        )
        for name in sorted(known.keys() | here.keys())
    )


def _open_transactions(log: ReadableLog) -> list[OpenTransaction]:
    return [
        OpenTransaction(log.topic_partition, producer.producer_id, producer.epoch, producer.transaction_start_offset)
        for producer in log.active_producers()
        if producer.transaction_start_offset != _NO_TRANSACTION
    ]


def _add_groups(log: ReadableLog, groups: dict[str, int]) -> list[str]:
    """Add the groups of one partition of the offsets topic. Returns notes."""
    try:
        loaded = load_offsets_partition(log, lambda _: True, _BUFFER_BYTES)
    except (DecodeError, BrokerError, StorageError, OSError) as error:
        return [f"the groups of {log.topic_partition} cannot be read: {error}"]
    for group_id in loaded.groups:
        groups.setdefault(group_id, 0)
    for record in loaded.pending:
        groups.setdefault(record.key.group, 0)
    for group_id, offsets in loaded.offsets.items():
        groups[group_id] = groups.get(group_id, 0) + len(offsets)
    modern = _groups_of_new_protocols(log)
    if not modern:
        return []
    return [
        f"groups of the new protocol (KIP-848) in {log.topic_partition}: {', '.join(sorted(modern))}; Apache Kafka"
        " serves their members from 4.0 on, with group.version 1; their offsets are kept in any version"
    ]


def _groups_of_new_protocols(log: ReadableLog) -> set[str]:
    """Groups with a group epoch (key 3) and no tombstone for it. Called after a load of the log, so it cannot fail."""
    found: set[str] = set()
    offset = log.log_start_offset
    while part := log.read(offset, _BUFFER_BYTES, upper_bound=log.high_watermark, at_least_one_batch=True):
        for batch in iter_batches(part.read()):
            offset = batch.next_offset
            for record in () if batch.is_control else read_records(batch):
                key = record.key or b""
                if key[:2] == _GROUP_EPOCH_KEY:
                    group_id = key[4:].decode("utf-8", "replace")
                    found.discard(group_id) if record.value is None else found.add(group_id)
    return found
