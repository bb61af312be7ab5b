"""Reconciliation of the logs on disk with the metadata, at start and after a change.

The metadata decides: a partition that is missing on disk is created; a log that is missing in the metadata, or belongs
to another topic of the same name, is renamed `-stray` and kept.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.protocol.errors import BrokerError
from barnabas.protocol.topic_name import is_internal
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.metadata.image import MetadataImage, TopicImage
    from barnabas.broker.storage.log.future_log import FutureLog
    from barnabas.broker.storage.log.partition_log import PartitionLog
    from barnabas.broker.storage.log_manager import LogManager

logger = logging.getLogger(__name__)


def is_stray(image: MetadataImage, topic_partition: TopicPartition, topic_id: bytes | None) -> bool:
    """Return whether the metadata lacks the partition. `topic_id` None: the directory has none, its name decides."""
    topic = image.topics.get(topic_partition.topic)
    if topic is None or topic_partition.partition not in topic.partitions:
        return True
    return topic_id is not None and topic_id != topic.topic_id


def settle_futures(image: MetadataImage, log_manager: LogManager, directory_ids: Mapping[Path, bytes]) -> None:
    """Decide at start about the copies of unfinished moves.

    A copy continues if its log exists. Otherwise it replaces the log if the metadata names the copy's directory (a
    crash came between the renames); it waits if a directory is offline; else it becomes stray, because it may be the
    only copy left.
    """
    seen: dict[TopicPartition, FutureLog] = {}
    for future in sorted(log_manager.found_futures, key=lambda each: each.log.log_end_offset, reverse=True):
        topic_partition = future.topic_partition
        current = log_manager.get(topic_partition)
        if topic_partition in seen or (current is not None and current.log_dir == future.log.log_dir):
            logger.info("deleting the unused copy of a move: %s", future.log.directory)
            log_manager.moves.discard(future)
            continue
        seen[topic_partition] = future
        state = image.partition(*topic_partition)
        named = state is not None and directory_ids.get(future.log.log_dir) in state.directories
        if current is not None or (log_manager.failures.offline and not named):
            log_manager.moves.adopt(current, future)
        elif named:
            log_manager.promote(future)
        else:
            log_manager.moves.set_aside(future)
    log_manager.found_futures = ()


def reconcile_logs(image: MetadataImage, log_manager: LogManager, directory_ids: Mapping[Path, bytes]) -> None:
    """Reconcile at start, once all logs are loaded. A log that cannot be created (disk offline or full) is logged."""
    for log in log_manager.logs():
        if is_stray(image, log.topic_partition, log.topic_id):
            log_manager.set_aside_stray(log.topic_partition)
        elif log.topic_id is None:
            _write_topic_id(log, image.topics[log.topic_partition.topic].topic_id)
    settle_futures(image, log_manager, directory_ids)
    for topic in image.topics.values():
        _make_missing(topic, log_manager, directory_ids)


def create_log(
    topic: TopicImage,
    topic_partition: TopicPartition,
    log_manager: LogManager,
    directory_ids: Mapping[Path, bytes],
    *,
    is_new: bool,
) -> PartitionLog:
    """Create the partition's log in the directory that the metadata names. Raises BrokerError KAFKA_STORAGE_ERROR."""
    directories = topic.partitions[topic_partition.partition].directories
    named = next((path for path, directory_id in directory_ids.items() if directory_id in directories), None)
    log_dir = named if named in log_manager.live_directories else None
    return log_manager.get_or_create(topic_partition, topic.topic_id, is_new=is_new, log_dir=log_dir)


def _write_topic_id(log: PartitionLog, topic_id: bytes) -> None:
    """Write a missing partition.metadata. On a full disk the next start tries again."""
    try:
        log.assign_topic_id(topic_id)
    except OSError as error:
        logger.error("cannot write partition.metadata, directory=%s: %s", log.directory, error)


def _make_missing(topic: TopicImage, log_manager: LogManager, directory_ids: Mapping[Path, bytes]) -> None:
    """Create the topic's missing logs, and log them in one line, those that cannot be created in another one.

    Those of an internal topic are no loss as a rule: they are created in the background after the topic's first use,
    and a kill may come before.
    """
    created: list[int] = []
    failed: dict[int, str] = {}
    for number in topic.partitions:
        topic_partition = TopicPartition(topic.name, number)
        if log_manager.get(topic_partition) is not None:
            continue
        try:
            create_log(topic, topic_partition, log_manager, directory_ids, is_new=False)
        except BrokerError as error:
            failed[number] = error.message
        else:
            created.append(number)
    if failed:
        logger.error(
            "logs of %s are missing and cannot be created, their partitions are not served: count=%d partitions=%s: %s",
            topic.name,
            len(failed),
            ",".join(map(str, sorted(failed))),
            failed[min(failed)],
        )
    if created and is_internal(topic.name):
        logger.info("logs of %s were missing, created empty ones: count=%d", topic.name, len(created))
    elif created:
        logger.warning(
            "logs of %s were missing, created empty ones: count=%d partitions=%s",
            topic.name,
            len(created),
            ",".join(map(str, sorted(created))),
        )
