"""Detection of log directories that the metadata log names but log.dirs lacks: an unmounted disk, a forgotten path.

Without this check their partitions would be created again, empty, in the other directories, and producers would write
from offset 0, while the records are on the missing disk. Apache Kafka leaves these partitions without a leader.
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
    """Yield a problem for each missing directory.id that holds partitions of this node."""
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
