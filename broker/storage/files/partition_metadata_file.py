"""A partition's `partition.metadata`: the id of the topic that the directory belongs to.

    version: 0
    topic_id: <url-safe base64, 22 characters>        no newline at the end; 43 bytes

It is on disk before the first record, so that a directory is never mistaken for that of a newer topic of the same name.
Source: Kafka PartitionMetadataFile.
"""

from __future__ import annotations

import re
from pathlib import Path

from barnabas.broker.storage.files.durable_files import write_durably
from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.uuids import ZERO_UUID, parse_uuid, uuid_text

PARTITION_METADATA_FILE = "partition.metadata"
VERSION = 0

_CONTENT = re.compile(r"version: (\d+)\s+topic_id: (\S+)\s*")


def read_partition_metadata(directory: Path) -> bytes | None:
    """Return the topic id, or None if the file is missing. Raises CorruptFileError, OSError."""
    path = directory / PARTITION_METADATA_FILE
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    return parse_partition_metadata(path, content)


def parse_partition_metadata(path: Path, content: bytes) -> bytes:
    """Return the topic id from the file's content; `path` is for error messages. Raises CorruptFileError."""
    match = _CONTENT.fullmatch(content.decode("utf-8", errors="replace"))
    if match is None:
        raise CorruptFileError(path, "partition.metadata does not consist of `version:` and `topic_id:`")
    if int(match[1]) != VERSION:
        raise CorruptFileError(path, f"partition.metadata has version {match[1]}, only {VERSION} is supported")
    try:
        topic_id = parse_uuid(match[2])
    except DecodeError as error:
        raise CorruptFileError(path, f"partition.metadata has an invalid topic id: {error}") from error
    if topic_id == ZERO_UUID:
        raise CorruptFileError(path, "partition.metadata's topic id is the zero id")
    return topic_id


def partition_metadata_content(topic_id: bytes) -> bytes:
    """Return the file's bytes."""
    return f"version: {VERSION}\ntopic_id: {uuid_text(topic_id)}".encode("ascii")


def is_torn_partition_metadata(directory: Path, topic_id: bytes) -> bool:
    """Return whether the file is the beginning of that with `topic_id`, perhaps filled with zeros. Raises OSError.

    So it says nothing else, and may be written again as a missing one is.
    """
    content = (directory / PARTITION_METADATA_FILE).read_bytes().rstrip(b"\0")
    return partition_metadata_content(topic_id).startswith(content)


def write_partition_metadata(directory: Path, topic_id: bytes) -> None:
    """Write the file durably. Raises OSError."""
    write_durably(directory / PARTITION_METADATA_FILE, partition_metadata_content(topic_id))
