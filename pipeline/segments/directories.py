"""Finds the logs below a path, and their segments.

A path is a data directory (a log.dir), a partition's directory, or one `.log` file in a partition's directory. Deleted,
stray and future directories (-delete, -stray, -future) and deleted or unfinished files (.deleted, .cleaned) are left
out. A `.swap` file counts when the segment that it replaces is gone, as at a broker's start.
"""

from __future__ import annotations

import logging
import posixpath
from dataclasses import dataclass
from pathlib import Path

from barnabas.broker.storage.files.checkpoint_file import LOG_START_OFFSET_CHECKPOINT
from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.file_names import SWAP_SUFFIX, FileKind, ParsedFileName, parse_file_name
from barnabas.broker.storage.files.partition_directory import DirectoryKind, parse_directory_name
from barnabas.broker.storage.files.partition_metadata_file import PARTITION_METADATA_FILE, parse_partition_metadata
from barnabas.pipeline.errors import CorruptLogError, OptionError
from barnabas.pipeline.segments.files import Entry, FileSystem, file_system, read_all
from barnabas.pipeline.segments.index import SegmentFile
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.uuids import uuid_text

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class SegmentDirectory:
    """One partition's log. `root` is the user's path, `log_start_offset` comes from the data directory's checkpoint.

    `snapshots` are its producer snapshots by the offset up to which they apply.
    """

    topic_partition: TopicPartition
    system: FileSystem
    root: str
    path: str
    segments: list[SegmentFile]
    log_start_offset: int
    snapshots: dict[int, Entry]

    @property
    def earliest(self) -> int:
        """The log start offset: the checkpoint's, or the first segment's base offset if that is larger."""
        first = self.segments[0].base_offset if self.segments else 0
        return max(first, self.log_start_offset)

    def looked_at_again(self) -> SegmentDirectory:
        """List the directory again. Raises OSError."""
        entry = self.system.entry(self.path)
        return _directory(
            self.system, self.root, entry, self.topic_partition, {self.topic_partition: self.log_start_offset}
        )

    def topic_id(self) -> str | None:
        """Return the id in partition.metadata; None without that file. Raises CorruptLogError, OSError."""
        path = posixpath.join(self.path, PARTITION_METADATA_FILE)
        try:
            content = read_all(self.system, path, self.system.entry(path).size_bytes)
        except FileNotFoundError:
            return None
        try:
            return uuid_text(parse_partition_metadata(Path(path), content))
        except CorruptFileError as error:
            raise CorruptLogError(str(error)) from error


def find_directories(paths: tuple[str, ...]) -> dict[TopicPartition, SegmentDirectory]:
    """Return all logs below the paths. Raises OptionError for a path without logs, OSError."""
    found: dict[TopicPartition, SegmentDirectory] = {}
    for path in paths:
        below = _below(path)
        if not below:
            raise OptionError(
                f"path {path} holds no log: give a data directory (log.dirs), a directory <topic>-<partition>, "
                "or a .log file in one"
            )
        for each in below:
            other = found.get(each.topic_partition)
            if other is not None:
                raise OptionError(f"path {path}: {each.path} is the same partition as {other.path}")
            found[each.topic_partition] = each
    return found


def _below(path: str) -> list[SegmentDirectory]:
    system, inner = file_system(path)
    entry = system.entry(inner.rstrip("/") or "/")
    if not entry.is_directory:
        return _one_file(system, path, entry)
    topic_partition = _partition_of(entry.name)
    if topic_partition is not None:
        starts = _log_starts(system, posixpath.dirname(entry.path))
        return [_directory(system, path, entry, topic_partition, starts)]
    starts = _log_starts(system, entry.path)
    found = []
    for each in system.list(entry.path):
        topic_partition = _partition_of(each.name) if each.is_directory else None
        if topic_partition is not None:
            try:
                found.append(_directory(system, path, each, topic_partition, starts))
            except FileNotFoundError:
                logger.warning("%s was deleted while it was listed: left out", each.path)
    return found


def _one_file(system: FileSystem, root: str, entry: Entry) -> list[SegmentDirectory]:
    directory = posixpath.dirname(entry.path)
    topic_partition = _partition_of(posixpath.basename(directory))
    parsed = parse_file_name(entry.name)
    if topic_partition is None or parsed is None or parsed.kind is not FileKind.LOG:
        return []
    found = _directory(
        system,
        root,
        Entry(posixpath.basename(directory), directory, True, 0),
        topic_partition,
        _log_starts(system, posixpath.dirname(directory)),
    )
    found.segments = [segment for segment in found.segments if segment.path == entry.path]
    return [found] if found.segments else []


def _directory(
    system: FileSystem, root: str, entry: Entry, topic_partition: TopicPartition, starts: dict[TopicPartition, int]
) -> SegmentDirectory:
    files: dict[ParsedFileName, Entry] = {}
    for each in system.list(entry.path):
        parsed = parse_file_name(each.name)
        if parsed is not None:
            files[parsed] = each
    segments = []
    for (offset, kind, stage), file in files.items():
        if kind is not FileKind.LOG or stage not in ("", SWAP_SUFFIX):
            continue
        if stage and (offset, kind, "") in files:
            continue
        neighbours = {
            other: near for (at, other, near_stage), near in files.items() if (at, near_stage) == (offset, stage)
        }
        segments.append(SegmentFile(system, file.path, offset, file.size_bytes, neighbours))
    segments.sort(key=lambda segment: segment.base_offset)
    snapshots = {name.offset: file for name, file in files.items() if name[1:] == (FileKind.SNAPSHOT, "")}
    start = starts.get(topic_partition, 0)
    return SegmentDirectory(topic_partition, system, root, entry.path, segments, start, snapshots)


def _partition_of(name: str) -> TopicPartition | None:
    parsed = parse_directory_name(name)
    return parsed.topic_partition if parsed is not None and parsed.kind is DirectoryKind.CURRENT else None


def _log_starts(system: FileSystem, directory: str) -> dict[TopicPartition, int]:
    """Read the data directory's log start offset checkpoint. An unreadable one is logged and ignored, as at a start."""
    path = posixpath.join(directory, LOG_START_OFFSET_CHECKPOINT)
    try:
        content = read_all(system, path, system.entry(path).size_bytes)
    except FileNotFoundError:
        return {}
    try:
        lines = content.decode().splitlines()
        found = {}
        for line in lines[2:]:
            topic, partition, offset = line.split(" ")
            found[TopicPartition(topic, int(partition))] = int(offset)
        if lines and (int(lines[0]) != 0 or int(lines[1]) != len(found)):
            raise ValueError(f"version {lines[0]}, {lines[1]} entries announced, {len(found)} found")
    except (ValueError, IndexError) as error:
        logger.warning("%s is unreadable, every log is read from its first segment on: %s", path, error)
        return {}
    return found
