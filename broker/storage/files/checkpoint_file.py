"""Checkpoint files: a few lines of text, always replaced as a whole.

    0                               version
    2                               number of entries
    <entry>                         one line each; every line ends in a newline
    <entry>

An entry is `topic partition offset` in the files of a data directory (recovery-point-offset-checkpoint,
log-start-offset-checkpoint, replication-offset-checkpoint, cleaner-offset-checkpoint), and `epoch start_offset` in a
partition's leader-epoch-checkpoint. A missing file and a 0-byte file (Kafka creates those) have no entries. A write
goes to a temporary file, which is synced and renamed over the old one.
Source: Kafka CheckpointFile, OffsetCheckpointFile.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from barnabas.broker.storage.files.checkpoint_order import DEFAULT_BUCKETS, PRESIZED_BUCKETS, in_kafkas_order
from barnabas.broker.storage.files.durable_files import write_durably
from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.protocol.topic_partition import TopicPartition

VERSION = 0

RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"

CORRUPT_SUFFIX = ".corrupt"

_LEAST_BUCKETS = {RECOVERY_POINT_CHECKPOINT: PRESIZED_BUCKETS, LOG_START_OFFSET_CHECKPOINT: DEFAULT_BUCKETS}
"""Files whose rows are in the order of Kafka's hash map; the rows of all other files are sorted."""

logger = logging.getLogger(__name__)


def read_checkpoint_lines(path: Path) -> list[str]:
    """Return the entry lines. Raises CorruptFileError for a wrong version, count or encoding, OSError from the disk."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    if not content:
        return []
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise CorruptFileError(path, f"checkpoint is not UTF-8: {error}") from error
    if lines[-1] == "":
        lines.pop()
    version = _number(path, lines[0], "version")
    if version != VERSION:
        raise CorruptFileError(path, f"checkpoint has version {version}, only {VERSION} is supported")
    if len(lines) == 1:
        return []
    count = _number(path, lines[1], "count")
    entries = lines[2:]
    if count != len(entries):
        raise CorruptFileError(path, f"checkpoint should have {count} entries and has {len(entries)}")
    return entries


def checkpoint_content(lines: Iterable[str]) -> bytes:
    """Return a checkpoint file's bytes."""
    entries = list(lines)
    return "".join(f"{line}\n" for line in (str(VERSION), str(len(entries)), *entries)).encode("utf-8")


def set_aside(path: Path, error: CorruptFileError, consequence: str) -> None:
    """Rename an unreadable checkpoint to `<name>.corrupt`, so that it can be inspected, and log the consequence."""
    kept = path.with_name(path.name + CORRUPT_SUFFIX)
    os.replace(path, kept)
    logger.warning("unreadable checkpoint kept as %s, %s: %s", kept, consequence, error)


class OffsetCheckpointFile:
    """One `topic partition offset` file of a data directory. Thread-safe."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._last_content: bytes | None = None

    def read(self) -> dict[TopicPartition, int]:
        """Return the offsets. Raises CorruptFileError for a line that is not an entry, OSError from the disk."""
        offsets: dict[TopicPartition, int] = {}
        for line in read_checkpoint_lines(self.path):
            parts = line.split()
            if len(parts) != 3:
                raise CorruptFileError(self.path, f"checkpoint line {line!r} is not `topic partition offset`")
            partition = _number(self.path, parts[1], "partition")
            offsets[TopicPartition(parts[0], partition)] = _number(self.path, parts[2], "offset")
        return offsets

    def read_or_set_aside(self, consequence: str) -> dict[TopicPartition, int]:
        """Return the offsets; rename an unreadable file to `.corrupt`, warn and return none. Raises OSError."""
        try:
            return self.read()
        except CorruptFileError as error:
            set_aside(self.path, error, consequence)
            return {}

    def write(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Replace the file durably; return False if it was not written because nothing changed. Raises OSError."""
        least_buckets = _LEAST_BUCKETS.get(self.path.name)
        order = sorted(offsets) if least_buckets is None else in_kafkas_order(offsets, least_buckets)
        content = checkpoint_content(f"{tp.topic} {tp.partition} {offsets[tp]}" for tp in order)
        with self._lock:
            if content == self._last_content:
                # An idle broker must not sync three files every few seconds.
                return False
            write_durably(self.path, content)
            self._last_content = content
        return True


def _number(path: Path, text: str, field: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise CorruptFileError(path, f"checkpoint {field} {text!r} is not a number") from error
