"""The retention of a topic, explained from the directories of a stopped broker. Nothing is written or locked."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from barnabas.broker.storage.explanation.retention_facts import LogFacts, check_interval_ms, read_log_facts
from barnabas.broker.storage.explanation.retention_findings import SegmentFinding, explain_retention
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.read_only.log_manager import ReadOnlyLogManager
from barnabas.commands.explain.stored_config import stored_broker_config
from barnabas.commands.failures import CommandFailure
from barnabas.commands.stopped_broker import Directories, stored_image
from barnabas.config import BrokerConfig
from barnabas.config.topic_config import describe_topic
from barnabas.config.value import ConfigValue
from barnabas.protocol.errors import DecodeError

SETTINGS = ("cleanup.policy", "retention.ms", "retention.bytes", "segment.ms", "segment.bytes", "file.delete.delay.ms")
"""The topic properties that decide."""


@dataclass(frozen=True, slots=True)
class ExplainedPartition:
    """One partition: what is there, and what happens to each segment."""

    partition: int
    log_dir: Path
    log: LogFacts
    segments: tuple[SegmentFinding, ...]


@dataclass(frozen=True, slots=True)
class ExplainedTopic:
    """A topic at `now_ms`; `settings` has the values of SETTINGS with their sources."""

    topic: str
    now_ms: int
    settings: Mapping[str, ConfigValue]
    partitions: tuple[ExplainedPartition, ...]


def read_stored_topic(directories: Directories, topic: str, partition: int | None) -> ExplainedTopic:
    """Explain all partitions that the directories have, or one. Raises CommandFailure, OSError."""
    image = stored_image(directories)
    try:
        config = stored_broker_config(directories, image)
        return _read(config, image.topic_configs(topic), topic, partition)
    except DecodeError as error:
        raise CommandFailure(str(error)) from error
    except StorageError as error:
        raise CommandFailure(f"{error.path}: {error.message}") from error


def _read(config: BrokerConfig, overrides: Mapping[str, str], topic: str, partition: int | None) -> ExplainedTopic:
    log_config = config.log_config.with_overrides(overrides)
    manager = ReadOnlyLogManager(config)
    try:
        manager.open_directories()
        manager.load_logs(lambda _: log_config, topic=topic)
        now_ms = time.time_ns() // 1_000_000
        partitions = []
        for log in sorted(manager.logs(), key=lambda each: each.topic_partition.partition):
            if partition is None or log.topic_partition.partition == partition:
                facts = read_log_facts(log, check_interval_ms(log_config, config))
                findings = explain_retention(facts, now_ms=now_ms)
                number = log.topic_partition.partition
                partitions.append(ExplainedPartition(number, log.log_dir, facts, findings))
    finally:
        manager.shutdown()
    if not partitions:
        what = topic if partition is None else f"{topic}-{partition}"
        raise CommandFailure(f"no readable log of {what} in {', '.join(map(str, config.log_dirs))}")
    described = {known.name: value for known, value in describe_topic(config, overrides)}
    return ExplainedTopic(topic, now_ms, {name: described[name] for name in SETTINGS}, tuple(partitions))
