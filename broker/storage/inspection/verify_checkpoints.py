"""Check of a data directory's `topic partition offset` checkpoints against the extents of its logs.

An offset beyond a log's end is reported, except in the cleaner's file, whose entries a broker resets by itself, and
except while a broker is running, which does not write logs and checkpoints together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from barnabas.broker.storage.files.checkpoint_file import (
    CLEANER_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    OffsetCheckpointFile,
)
from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.inspection.file_types import OFFSET_CHECKPOINTS
from barnabas.broker.storage.inspection.findings import Circumstances, Finding, LogExtent
from barnabas.protocol.topic_partition import TopicPartition


def checkpoint_findings(
    log_dir: Path, extents: Mapping[TopicPartition, LogExtent], circumstances: Circumstances
) -> Iterator[Finding]:
    """Yield the findings of one data directory; a log without an extent is left out. Raises OSError."""
    for name in OFFSET_CHECKPOINTS:
        file = OffsetCheckpointFile(log_dir / name)
        try:
            offsets = file.read()
        except CorruptFileError as error:
            yield Finding(file.path, None, error.message)
            continue
        for topic_partition, offset in offsets.items():
            extent = extents.get(topic_partition)
            if extent is None or circumstances.is_in_use or name == CLEANER_CHECKPOINT:
                continue
            if offset > extent.log_end_offset:
                loss = ": a broker would drop the whole log" if name == LOG_START_OFFSET_CHECKPOINT else ""
                yield Finding(
                    file.path,
                    None,
                    f"{topic_partition} at offset {offset}, but the log ends at {extent.log_end_offset}{loss}",
                )
