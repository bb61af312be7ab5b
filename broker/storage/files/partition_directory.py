"""Names of partition directories: `<topic>-<partition>`, and three special kinds.

    <topic>-<partition>.<32 hex>-delete    waits for its removal
    <topic>-<partition>.<32 hex>-stray     not in the metadata log; kept, never served
    <topic>-<partition>.<32 hex>-future    the copy that a move to another log directory fills

File names are limited to 255 bytes, so -delete and -stray names may contain only the beginning of the topic.
Source: Kafka LocalLog. Kafka reads anything in the place of the 32 digits that both write: a foreign directory
`photos-2024.old-delete` would be removed.
"""

from __future__ import annotations

import os
import re
from enum import Enum
from typing import NamedTuple

from barnabas.protocol.topic_partition import TopicPartition

MAX_NAME_BYTES = 255
IGNORED_DIRECTORIES = frozenset({"lost+found", "remote-log-index-cache"})
"""Other directories that a data directory may contain."""
_MAX_PARTITION = 2**31 - 1


class DirectoryKind(Enum):
    """Kind of a partition directory; the value is the end of its name."""

    CURRENT = ""
    DELETE = "-delete"
    STRAY = "-stray"
    FUTURE = "-future"


class ParsedDirectoryName(NamedTuple):
    """Partition and kind of a partition directory."""

    topic_partition: TopicPartition
    kind: DirectoryKind


_NAME = re.compile(r"(?P<topic>\S+)-(?P<partition>\d{1,10})(?:\.[0-9a-f]{32}(?P<kind>-delete|-stray|-future))?")


def parse_directory_name(name: str) -> ParsedDirectoryName | None:
    """Split a partition directory's name; return None for any other name."""
    match = _NAME.fullmatch(name)
    if match is None or int(match["partition"]) > _MAX_PARTITION:
        return None
    if match["kind"] is None and name.endswith(("-delete", "-stray", "-future")):
        return None
    topic_partition = TopicPartition(match["topic"], int(match["partition"]))
    return ParsedDirectoryName(topic_partition, DirectoryKind(match["kind"] or ""))


def directory_name(topic_partition: TopicPartition) -> str:
    """Return the name of the partition's current directory."""
    return f"{topic_partition.topic}-{topic_partition.partition}"


def delete_directory_name(topic_partition: TopicPartition) -> str:
    """Return a new, unique name for a directory that waits for its removal."""
    return _cut_name(topic_partition, DirectoryKind.DELETE)


def stray_directory_name(topic_partition: TopicPartition) -> str:
    """Return a new, unique name for a directory that is not in the metadata."""
    return _cut_name(topic_partition, DirectoryKind.STRAY)


def future_directory_name(topic_partition: TopicPartition) -> str:
    """Return a new, unique name for a move's copy. It is never cut: the topic is parsed from it at the next start."""
    return f"{directory_name(topic_partition)}.{os.urandom(16).hex()}{DirectoryKind.FUTURE.value}"


def _cut_name(topic_partition: TopicPartition, kind: DirectoryKind) -> str:
    end = f"-{topic_partition.partition}.{os.urandom(16).hex()}{kind.value}"
    return topic_partition.topic[: MAX_NAME_BYTES - len(end)] + end
