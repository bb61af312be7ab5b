"""Deletion of segments: files are renamed `.deleted` immediately and removed after file.delete.delay.ms.

Readers that already use a segment may finish meanwhile. Before, the caller has removed the segments from the log's map
and raised the log start offset. Source: Kafka LocalLog.deleteSegmentFiles.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from barnabas.broker.storage.files.file_names import DELETED_SUFFIX
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.services.services import StorageServices

DELETE_FILE_TASK = "delete-file"


def delete_later(
    segments: Sequence[LogSegment],
    snapshots: Iterable[Path],
    log_dir: Path,
    services: StorageServices,
    delay_ms: int,
) -> None:
    """Rename the segments' files, and schedule their removal and that of `snapshots`. Raises OSError."""
    for segment in segments:
        if not segment.stage:
            segment.change_stage(DELETED_SUFFIX)
    doomed_snapshots = list(snapshots)

    def remove() -> None:
        try:
            remove_now(segments, doomed_snapshots)
        except OSError as error:
            services.failures.report(log_dir, "cannot remove deleted segments", error)

    if segments or doomed_snapshots:
        services.scheduler.schedule(DELETE_FILE_TASK, remove, delay_ms=delay_ms)


def remove_now(segments: Iterable[LogSegment], snapshots: Iterable[Path]) -> None:
    """Remove the files; missing files are ignored. Raises OSError."""
    for segment in segments:
        segment.delete_files()
    for path in snapshots:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
