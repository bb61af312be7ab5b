"""Deletion of segments: files are renamed `.deleted` immediately and removed after file.delete.delay.ms.

Readers that already use a segment may finish meanwhile. Before, the caller has removed the segments from the log's map
and raised the log start offset. Source: Kafka LocalLog.deleteSegmentFiles.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from barnabas.broker.storage.files.file_names import DELETED_SUFFIX
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.services.log_dir_failure import is_shortage
from barnabas.broker.storage.services.services import StorageServices

logger = logging.getLogger(__name__)

DELETE_FILE_TASK = "delete-file"

RETRY_MS = 1000
"""Least pause before a removal that lacked room is tried again."""


def delete_later(
    segments: Sequence[LogSegment],
    snapshots: Iterable[Path],
    log_dir: Path,
    services: StorageServices,
    delay_ms: int,
) -> None:
    """Rename the segments' files, and schedule their removal and that of `snapshots`. Raises OSError.

    On a full disk, where some file systems need room for a removal, it is tried again later.
    """
    for segment in segments:
        if not segment.stage:
            segment.change_stage(DELETED_SUFFIX)
    doomed_snapshots = list(snapshots)

    def remove() -> None:
        try:
            remove_now(segments, doomed_snapshots)
        except OSError as error:
            if not is_shortage(error):
                services.failures.report(log_dir, "cannot remove deleted segments", error)
                return
            logger.warning("deleted segments in %s are removed later: %s", log_dir, error)
            services.scheduler.schedule(DELETE_FILE_TASK, remove, delay_ms=max(delay_ms, RETRY_MS))

    if segments or doomed_snapshots:
        services.scheduler.schedule(DELETE_FILE_TASK, remove, delay_ms=delay_ms)


def remove_now(segments: Iterable[LogSegment], snapshots: Iterable[Path]) -> None:
    """Remove the files; missing files are ignored. Raises OSError."""
    for segment in segments:
        segment.delete_files()
    for path in snapshots:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
