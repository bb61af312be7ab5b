"""The names of partition directories: `<topic>-<partition>`, and three kinds that are on their way.

    <topic>-<partition>.<32 hex>-delete    waits for its removal
    <topic>-<partition>.<32 hex>-stray     the metadata log does not know it; kept, never served
    <topic>-<partition>.<32 hex>-future    the copy that a move to another log directory fills

A file system takes 255 bytes in a name, so the topic of a -delete or -stray name is cut; such a name no longer tells
the whole topic. Source: Kafka LocalLog.
"""

from __future__ import annotations

import os
import re
from enum import Enum
from typing import NamedTuple

from barnabas.protocol.topic_partition import TopicPartition

MAX_NAME_BYTES = 255
_MAX_PARTITION = 2**31 - 1


class DirectoryKind(Enum):
    """What a partition directory is for; the value is the end of its name."""

    CURRENT = ""
    DELETE = "-delete"
    STRAY = "-stray"
    FUTURE = "-future"


class ParsedDirectoryName(NamedTuple):
    """The log that a directory holds, and what the directory is for."""

    topic_partition: TopicPartition
    kind: DirectoryKind


_NAME = re.compile(r"(?P<topic>\S+)-(?P<partition>\d{1,10})(?:\.[^\s.]+(?P<kind>-delete|-stray|-future))?")


def parse_directory_name(name: str) -> ParsedDirectoryName | None:
    """The parts of a partition directory's name, or None when it is none."""
    match = _NAME.fullmatch(name)
    if match is None or int(match["partition"]) > _MAX_PARTITION:
        return None
    if match["kind"] is None and name.endswith(("-delete", "-stray", "-future")):
        return None
    topic_partition = TopicPartition(match["topic"], int(match["partition"]))
    return ParsedDirectoryName(topic_partition, DirectoryKind(match["kind"] or ""))


def directory_name(topic_partition: TopicPartition) -> str:
    """The name of the partition's current directory."""
    return f"{topic_partition.topic}-{topic_partition.partition}"


def delete_directory_name(topic_partition: TopicPartition) -> str:
    """A new, unique name for a directory that waits for its removal."""
    return _cut_name(topic_partition, DirectoryKind.DELETE)


def stray_directory_name(topic_partition: TopicPartition) -> str:
    """A new, unique name for a directory that nobody knows."""
    return _cut_name(topic_partition, DirectoryKind.STRAY)


def future_directory_name(topic_partition: TopicPartition) -> str:
    """A new, unique name for a copy that is being filled. Not cut: the topic must be read back from it."""
    return f"{directory_name(topic_partition)}.{os.urandom(16).hex()}{DirectoryKind.FUTURE.value}"


def _cut_name(topic_partition: TopicPartition, kind: DirectoryKind) -> str:
    end = f"-{topic_partition.partition}.{os.urandom(16).hex()}{kind.value}"
    return topic_partition.topic[: MAX_NAME_BYTES - len(end)] + end
