"""Types of the files in a data directory, by name."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.storage.files.checkpoint_file import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from barnabas.broker.storage.files.clean_shutdown import CLEAN_SHUTDOWN_FILE
from barnabas.broker.storage.files.file_names import FileKind, parse_file_name
from barnabas.broker.storage.files.leader_epoch import LEADER_EPOCH_CHECKPOINT
from barnabas.broker.storage.files.partition_metadata_file import PARTITION_METADATA_FILE

OFFSET_CHECKPOINTS = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_CHECKPOINT,
)
"""The `topic partition offset` files of a data directory."""

META_PROPERTIES_FILE = "meta.properties"
BOOTSTRAP_CHECKPOINT_FILE = "bootstrap.checkpoint"

_METADATA_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint(\.deleted)?")


class FileType(Enum):
    """Type of a file; the value is used in JSON output."""

    LOG = "log"
    OFFSET_INDEX = "index"
    TIME_INDEX = "timeindex"
    TRANSACTION_INDEX = "txnindex"
    PRODUCER_SNAPSHOT = "snapshot"
    METADATA_SNAPSHOT = "metadata-snapshot"
    OFFSET_CHECKPOINT = "checkpoint"
    EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
    PARTITION_METADATA = "partition.metadata"
    META_PROPERTIES = "meta.properties"
    CLEAN_SHUTDOWN = "clean-shutdown"


class KnownFile(NamedTuple):
    """A file of a known type. `offset` is the base offset, or the offset in a snapshot's name, or -1.

    `stage` is `.deleted`, `.cleaned`, `.swap` or "".
    """

    path: Path
    type: FileType
    offset: int = -1
    stage: str = ""


_BY_NAME = {
    **dict.fromkeys(OFFSET_CHECKPOINTS, FileType.OFFSET_CHECKPOINT),
    LEADER_EPOCH_CHECKPOINT: FileType.EPOCH_CHECKPOINT,
    PARTITION_METADATA_FILE: FileType.PARTITION_METADATA,
    META_PROPERTIES_FILE: FileType.META_PROPERTIES,
    BOOTSTRAP_CHECKPOINT_FILE: FileType.METADATA_SNAPSHOT,
    CLEAN_SHUTDOWN_FILE: FileType.CLEAN_SHUTDOWN,
}
_BY_KIND = {
    FileKind.LOG: FileType.LOG,
    FileKind.OFFSET_INDEX: FileType.OFFSET_INDEX,
    FileKind.TIME_INDEX: FileType.TIME_INDEX,
    FileKind.TRANSACTION_INDEX: FileType.TRANSACTION_INDEX,
    FileKind.SNAPSHOT: FileType.PRODUCER_SNAPSHOT,
}


def identify(path: Path) -> KnownFile | None:
    """Return the file's type by its name, or None."""
    parsed = parse_file_name(path.name)
    if parsed is not None:
        return KnownFile(path, _BY_KIND[parsed.kind], parsed.offset, parsed.stage)
    snapshot = _METADATA_SNAPSHOT.fullmatch(path.name)
    if snapshot is not None:
        return KnownFile(path, FileType.METADATA_SNAPSHOT, int(snapshot[1]), snapshot[2] or "")
    named = _BY_NAME.get(path.name)
    return None if named is None else KnownFile(path, named)


def known_files(directory: Path) -> list[KnownFile]:
    """List the known files of a partition or data directory: by segment, then the small files. Raises OSError."""
    order = list(FileType)
    found = [known for path in directory.iterdir() if path.is_file() and (known := identify(path)) is not None]
    return sorted(found, key=lambda known: (known.offset < 0, known.offset, order.index(known.type), known.path.name))
