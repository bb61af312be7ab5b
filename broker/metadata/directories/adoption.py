"""Adoption of the topics of a directory without a metadata log, as a Kafka with ZooKeeper leaves it: adopt.topics.

Each partition directory becomes a partition; each topic gets the id of its `partition.metadata` or a new one. Its
configs are not in the directory, so it gets configs with which nothing is deleted or compacted until somebody sets
others. The configs of the broker's own topics are known, and every start adds those that are missing (own_topics).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.files.file_names import LOG_SUFFIX
from barnabas.broker.storage.files.partition_metadata_file import PARTITION_METADATA_FILE, read_partition_metadata
from barnabas.protocol.metadata.partition_state import PartitionState
from barnabas.protocol.metadata.records import (
    TOPIC_RESOURCE,
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    TopicRecord,
)
from barnabas.protocol.topic_name import is_internal, topic_name_fault
from barnabas.protocol.uuids import random_uuid, uuid_text

if TYPE_CHECKING:
    from barnabas.config import BrokerConfig

HELD_CONFIGS: Final = {"cleanup.policy": "delete", "retention.bytes": "-1", "retention.ms": "-1"}
"""Nothing is deleted or compacted with them, whatever the broker's defaults are."""

PartitionDirectories = Mapping[str, Mapping[int, Path]]
"""Topic -> partition -> directory."""


def adopted_configs(topic: str) -> Mapping[str, str]:
    """Return the configs that decide about deletion and compaction in a topic, once it is adopted."""
    from barnabas.broker.metadata.own_topics import OWN_TOPICS  # late: a start with a metadata log does not need it

    own = OWN_TOPICS.get(topic)
    return HELD_CONFIGS if own is None else own.fixed_configs


def ensure_all_own_partitions(found: PartitionDirectories, config: BrokerConfig) -> None:
    """Raise MetadataError if a topic of our own has fewer partitions than configured: the last ones may be missing.

    Its partition count decides where the state of a group or of a transactional id is. Of the topics of users nothing
    tells the count.
    """
    from barnabas.broker.metadata.own_topics import OWN_TOPICS

    for name in found.keys() & OWN_TOPICS:
        own, count = OWN_TOPICS[name], max(found[name]) + 1
        if count < own.partition_count(config):
            raise MetadataError(
                f"{next(iter(found[name].values())).parent} holds {count} partitions of {name}, and "
                f"{config.setting(own.partition_count_property)}: with another count than it had, its state is looked "
                "for in other partitions, and what was in missing ones is lost",
                remedy="name all of the node's directories in log.dirs, or, if the topic had no more, set "
                f"{own.partition_count_property}={count} for this start",
            )


def adoption_records(
    found: PartitionDirectories, *, node_id: int, directory_ids: Mapping[Path, bytes]
) -> list[MetadataRecord]:
    """Return the records that create the found partitions. Raises MetadataError for what is no whole topic."""
    records: list[MetadataRecord] = []
    owners: dict[bytes, Path] = {}
    for topic, partitions in found.items():
        _ensure_topic(topic, partitions.values())
        missing = set(range(max(partitions) + 1)) - set(partitions)
        if missing:
            raise MetadataError(
                f"{next(iter(partitions.values())).parent} holds topic {topic} without its partition {min(missing)}: "
                "it belongs to one of several brokers, and an incomplete topic is not served as a whole one",
                remedy="name all of the node's directories in log.dirs, or read what is here with read.only=true",
            )
        topic_id = _topic_id(partitions.values())
        path = next(iter(partitions.values()))
        if (other := owners.setdefault(topic_id, path)) != path:
            raise MetadataError(
                f"{other} and {path} have the same topic id {uuid_text(topic_id)}: one is a copy of the other",
                remedy="move the outdated one away",
            )
        records.append(TopicRecord(topic, topic_id))
        if not is_internal(topic):
            records += (ConfigRecord(TOPIC_RESOURCE, topic, name, text) for name, text in HELD_CONFIGS.items())
        for partition, path in sorted(partitions.items()):
            state = PartitionState((node_id,), (node_id,), node_id, directories=(directory_ids[path.parent],))
            records.append(PartitionRecord(partition, topic_id, state))
    return records


def _ensure_topic(topic: str, paths: Collection[Path]) -> None:
    """Raise MetadataError for directories that are only named like a topic's: a log would be made in them."""
    fault = topic_name_fault(topic)
    if fault is None and not any(map(_holds_log, paths)):
        fault = "it holds no log"
    if fault is not None:
        raise MetadataError(f"{next(iter(paths))} is not a partition's directory: {fault}", remedy="move it away")


def _holds_log(path: Path) -> bool:
    return any(each.suffix == LOG_SUFFIX or each.name == PARTITION_METADATA_FILE for each in path.iterdir())


def _topic_id(paths: Collection[Path]) -> bytes:
    ids: dict[bytes, Path] = {}
    for path in paths:
        try:
            topic_id = read_partition_metadata(path)
        except (OSError, StorageError) as error:
            remedy = "restore the file, or remove it: the topic's id is then that of its other partitions, or a new one"
            raise MetadataError(f"{path} cannot be adopted: {error}", remedy=remedy) from error
        if topic_id is not None:
            ids.setdefault(topic_id, path)
    if len(ids) > 1:
        one, other = list(ids.values())[:2]
        raise MetadataError(
            f"{one} and {other} belong to different topics of the same name", remedy="move the outdated one away"
        )
    return next(iter(ids), random_uuid())
