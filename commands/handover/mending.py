"""Changes of the metadata log with which a version of Apache Kafka starts on the directories.

    small-segments        a topic's segment.bytes below 1 MiB is raised
    transaction-version   transaction.version is lowered to 0, and a snapshot written: Kafka 3.x stops at a record of a
                          higher level, so it must not replay it. Its coordinator reads the states of finished
                          transactions at any level; unfinished ones are refused
    share-version         share.version is lowered to 0, and a snapshot written. Kafka ignores the records of share
                          groups, and keeps `__share_group_state` as any topic
    streams-version       streams.version is lowered to 0 in the same way, for Kafka before 4.2: it skips the records of
                          streams groups
    earlier-level         a snapshot is written after a level that was lowered before

A topic's flush.acks.all is removed for every version: Kafka starts with it, and refuses to change the topic's configs.

Records are appended durably by the broker's own writer. Nothing else is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.broker.metadata.directories.kafka_limits import (
    EARLIER_LEVEL_PROBLEM,
    SHARE_VERSION_PROBLEM,
    STREAMS_VERSION_PROBLEM,
    TRANSACTION_VERSION_PROBLEM,
)
from barnabas.broker.metadata.directories.report import DirectoryReport, Problem
from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.store import open_metadata
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.inspection.transaction_decisions import transaction_decisions
from barnabas.broker.storage.log_manager import LogManager
from barnabas.broker.storage.services.clock import SystemClock
from barnabas.commands.failures import CommandFailure
from barnabas.commands.handover.properties import LEAST_SEGMENT_BYTES
from barnabas.config import BrokerConfig
from barnabas.config.tables.topic_properties import FLUSH_ACKS_ALL
from barnabas.config.value import Setting
from barnabas.protocol.errors import BrokerError, DecodeError
from barnabas.protocol.metadata.levels import SHARE_VERSION, STREAMS_VERSION, TRANSACTION_VERSION
from barnabas.protocol.metadata.records import TOPIC_RESOURCE, ConfigRecord, FeatureLevelRecord, MetadataRecord

_SMALL_SEGMENTS_PROBLEM = "small-segments"
_GROUP_FEATURES = {SHARE_VERSION_PROBLEM: SHARE_VERSION, STREAMS_VERSION_PROBLEM: STREAMS_VERSION}
"""Features of groups, which are lowered without a further check."""

_LEVEL_PROBLEMS = {TRANSACTION_VERSION_PROBLEM, *_GROUP_FEATURES, EARLIER_LEVEL_PROBLEM}
"""Those that a snapshot ends."""

_MENDED_PROBLEMS = {_SMALL_SEGMENTS_PROBLEM, *_LEVEL_PROBLEMS}


class Mending(NamedTuple):
    """Planned changes, in words for the user and as records, and the problems that stay."""

    sentences: list[str]
    records: list[MetadataRecord]
    needs_snapshot: bool
    refusals: tuple[Problem, ...]


def plan_mending(report: DirectoryReport, stopping: Sequence[Problem], kafka_name: str) -> Mending:
    """Plan the changes for the problems that stop a version of Kafka. Reads only. Raises CommandFailure, OSError."""
    codes = {each.code for each in stopping}
    sentences: list[str] = []
    records: list[MetadataRecord] = []
    refusals = [each for each in stopping if each.code not in _MENDED_PROBLEMS]
    if _SMALL_SEGMENTS_PROBLEM in codes:
        for topic, before in _small_segments(report):
            sentences.append(
                f"topic {topic}: segment.bytes {before} -> {LEAST_SEGMENT_BYTES} (required by {kafka_name})"
            )
            records.append(ConfigRecord(TOPIC_RESOURCE, topic, "segment.bytes", str(LEAST_SEGMENT_BYTES)))
    for topic in report.image.topics:
        value = report.image.topic_configs(topic).get(FLUSH_ACKS_ALL)
        if value is not None:
            sentences.append(
                f"topic {topic}: {FLUSH_ACKS_ALL}={value} is removed (unknown to Apache Kafka, which would refuse to "
                "change the topic's configs)"
            )
            records.append(ConfigRecord(TOPIC_RESOURCE, topic, FLUSH_ACKS_ALL, None))
    if TRANSACTION_VERSION_PROBLEM in codes:
        unfinished = _unfinished_transactions(report)
        if unfinished:
            refusals += [_refusal(each, unfinished) for each in stopping if each.code == TRANSACTION_VERSION_PROBLEM]
        else:
            level = report.image.features.get(TRANSACTION_VERSION, 0)
            sentences.append(f"{TRANSACTION_VERSION} {level} -> 0 (required by {kafka_name})")
            records.append(FeatureLevelRecord(TRANSACTION_VERSION, 0))
    for code, feature in _GROUP_FEATURES.items():
        if code in codes:
            level = report.image.features.get(feature, 0)
            sentences.append(f"{feature} {level} -> 0 (required by {kafka_name})")
            records.append(FeatureLevelRecord(feature, 0))
    needs_snapshot = not codes.isdisjoint(_LEVEL_PROBLEMS)
    if needs_snapshot:
        sentences.append("a snapshot of the metadata, so that Kafka replays no earlier level")
    return Mending(sentences, records, needs_snapshot, tuple(refusals))


def mend(report: DirectoryReport, mending: Mending) -> None:
    """Make the changes. Raises CommandFailure."""
    settings = {
        "log.dirs": ",".join(str(each.path) for each in report.directories if each.is_log_dir),
        "metadata.log.dir": str(report.metadata_log_dir),
        "ignore.security": "true",
    }
    origin = "barnabas handover"
    config = BrokerConfig.of({name: Setting(value, origin) for name, value in settings.items()})
    manager = LogManager(config)
    try:
        manager.open_directories()
        store = open_metadata(config, manager, SystemClock())
        store.commit(mending.records)
        if mending.needs_snapshot and not store.take_snapshot():
            raise CommandFailure(f"no snapshot of the metadata in {report.metadata_log_dir} could be written")
    except (MetadataError, StorageError, BrokerError) as error:
        raise CommandFailure(str(error)) from error
    finally:
        manager.shutdown()  # the logs were not loaded: markers and checkpoints stay as they are


def _refusal(problem: Problem, unfinished: Sequence[str]) -> Problem:
    return Problem(
        problem.code,
        f"{problem.sentence}, and it cannot be lowered while transactions are unfinished: {', '.join(unfinished)}",
        "start Barnabas on the directory until they have ended: prepared ones end immediately, open ones by their "
        "producer, their timeout or `barnabas transaction abort`",
        problem.stops,
    )


def _unfinished_transactions(report: DirectoryReport) -> list[str]:
    """Return the transactional ids with open or prepared transactions, with their states."""
    directories = [each.path for each in report.directories if each.is_log_dir and each.exists]
    try:
        decisions = transaction_decisions(directories).values()
    except DecodeError as error:
        raise CommandFailure(f"the coordinator's decisions cannot be read: {error}") from error
    unfinished = [each for each in decisions if each.is_unfinished]
    return sorted(f"{each.transactional_id} ({each.status_name})" for each in unfinished)


def _small_segments(report: DirectoryReport) -> list[tuple[str, str]]:
    """Return the topics with a segment.bytes that is too small for Kafka 4.1 and later, and its value."""
    found = []
    for name in report.image.topics:
        text = report.image.topic_configs(name).get("segment.bytes", "")
        if text.isdigit() and int(text) < LEAST_SEGMENT_BYTES:
            found.append((name, text))
    return found
