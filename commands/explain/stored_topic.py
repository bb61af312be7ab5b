"""The retention of a topic, explained from the directories of a stopped broker. Nothing is written or locked."""

from __future__ import annotations

import time
from collections.abc import Mapping

from barnabas.broker.metadata.directories.adoption import adopted_configs
from barnabas.broker.storage.cleaning.cleaner_facts import CleanerFacts, facts_without_cleaner
from barnabas.broker.storage.explanation.topic_explanation import deciding_settings, explain_partitions
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.read_only.log_manager import ReadOnlyLogManager
from barnabas.commands.explain.stored_copies import continued_copy, stored_copies
from barnabas.commands.failures import CommandFailure
from barnabas.commands.stopped_broker import Directories, stored_broker_config, stored_image
from barnabas.config import BrokerConfig
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.topics.explain_topic import ExplainedCopy, ExplainTopicResponse


def read_stored_topic(directories: Directories, topic: str, partition: int | None) -> ExplainTopicResponse:
    """Explain all partitions that the directories have, or one. Raises CommandFailure, OSError."""
    image = stored_image(directories)
    try:
        config = stored_broker_config(directories, image)
        configs = image.topic_configs(topic) if topic in image.topics else adopted_configs(topic)
        return _read(config, configs, topic, partition)
    except DecodeError as error:
        raise CommandFailure(str(error)) from error
    except StorageError as error:
        raise CommandFailure(f"{error.path}: {error.message}") from error


def _read(
    config: BrokerConfig, overrides: Mapping[str, str], topic: str, partition: int | None
) -> ExplainTopicResponse:
    log_config = config.log_config.with_overrides(overrides)
    is_enabled = config.get_bool("log.cleaner.enable")
    manager = ReadOnlyLogManager(config)
    try:
        manager.open_directories()
        manager.load_logs(lambda _: log_config, topic=topic)
        now_ms = time.time_ns() // 1_000_000
        logs = [each for each in manager.logs() if partition in (None, each.topic_partition.partition)]
        copies = stored_copies(config.log_dirs, topic)

        def copy_of(log: ReadableLog) -> ExplainedCopy | None:
            return continued_copy(copies.get(log.topic_partition, ()), log.log_dir)

        def cleaner(log: ReadableLog) -> CleanerFacts:
            facts = facts_without_cleaner(log, is_enabled=is_enabled)
            return facts if copy_of(log) is None else facts._replace(state="paused")

        partitions = explain_partitions(logs, config, cleaner, now_ms, copy_of=copy_of)
    finally:
        manager.shutdown()
    if not partitions:
        what = topic if partition is None else f"{topic}-{partition}"
        waiting = [
            f"; a move has left a copy of {each} in {copy.log_dir}, which a start serves if the metadata log names "
            "that directory, and else sets aside"
            for each, found in copies.items()
            for copy in found
            if partition in (None, each.partition)
        ]
        where = ", ".join(map(str, config.log_dirs))
        raise CommandFailure(f"no readable log of {what} in {where}{''.join(waiting)}")
    return ExplainTopicResponse(now_ms=now_ms, settings=deciding_settings(config, overrides), partitions=partitions)
