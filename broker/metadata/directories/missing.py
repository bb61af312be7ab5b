"""Log directories that the metadata log names and that were not given: a disk that is not mounted, a forgotten path.

The partitions on it would be made anew, empty, in the directories that are there, and producers would fill them from
offset 0: the records are on the disk that somebody mounts later. Apache Kafka leaves such partitions without a leader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from barnabas.broker.metadata.directories.meta_properties import NodeIdentity
from barnabas.broker.metadata.directories.report import WRITERS, LogDirectoryReport, Problem
from barnabas.broker.metadata.image import MetadataImage
from barnabas.protocol.metadata.partition_state import RESERVED_DIRECTORIES_BELOW
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.uuids import uuid_text


def missing_directories(
    directories: Sequence[LogDirectoryReport], image: MetadataImage, identity: NodeIdentity
) -> Iterator[Problem]:
    """One for each directory.id that holds this node's partitions and that none of `directories` has."""
    known = set(identity.directory_ids.values())
    found = {topic_partition for directory in directories for topic_partition in directory.partitions}
    missing: dict[bytes, list[TopicPartition]] = {}
    for topic in image.topics.values():
        for number, state in topic.partitions.items():
            topic_partition = TopicPartition(topic.name, number)
            if state.replicas != (identity.node_id,) or topic_partition in found:
                continue
            for directory_id in state.directories:
                if directory_id not in known and int.from_bytes(directory_id, "big") >= RESERVED_DIRECTORIES_BELOW:
                    missing.setdefault(directory_id, []).append(topic_partition)
    for directory_id, partitions in missing.items():
        text = uuid_text(directory_id)
        yield Problem(
            "missing-directory",
            f"{_counted(partitions)} in a log directory that is not among these: directory.id {text}",
            f"mount it, or name it in log.dirs; to give its records up, write directory.id={text} into the "
            "meta.properties of the one that takes its place",
            WRITERS,
        )


def _counted(partitions: Sequence[TopicPartition]) -> str:
    if len(partitions) == 1:
        return f"partition {partitions[0]} is"
    return f"{len(partitions)} partitions, {partitions[0]} among them, are"
