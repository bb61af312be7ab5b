"""SegmentReplacer: creates the cleaner's new segments and replaces the old segments of one log by them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from barnabas.broker.storage.log.core import STRETCH_SEGMENTS, LogCore
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.segment.deletion import delete_later
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.replacement import Replacement, SegmentsChangedError, remove_staged
from barnabas.broker.storage.services.log_dir_failure import is_shortage


class SegmentReplacer:
    """Replaces segments of one log. A dry run of the cleaner uses one that only counts."""

    __slots__ = ("_core",)

    def __init__(self, core: LogCore) -> None:
        self._core = core

    def create_segment(self, base_offset: int, stage: str) -> LogSegment:
        """Create a segment that is not in the log's map yet; files of an earlier attempt go. Raises OSError."""
        core = self._core
        remove_staged(core.directory, base_offset, stage)
        segment = LogSegment.create(
            os.fspath(core.directory),
            base_offset,
            core.config,
            core.services.clock,
            core.services.open_files,
            stage=stage,
        )
        segment.open_indexes()
        return segment

    def replace_segments(self, new: Sequence[LogSegment], old: Sequence[LogSegment]) -> None:
        """Replace the `old` segments by sealed, synced `.cleaned` ones; the steps are in segment/replacement.py.

        Reads go on meanwhile. Raises SegmentsChangedError when an old segment is not in the log any more; OSError,
        after which nothing is replaced (a shortage) or the directory is offline.
        """
        core = self._core
        stage = Replacement(core.directory, new, old)
        try:
            stage.prepare()
            with core.lock:
                if core.state is not LogState.ONLINE or not stage.is_due(core.segments.view, core.active):
                    stage.undo()
                    raise SegmentsChangedError(f"{core.topic_partition}: segments went while they were cleaned")
                stage.swap_in(core.segments)
                replaced = set(old)
                core.unsynced_sealed = [segment for segment in core.unsynced_sealed if segment not in replaced]
            # Released for the renames and the sync: appends go on.
            stage.retire(core.log_dir, core.services, core.config.file_delete_delay_ms)
            snapshots: list[Path] = []
            for first in range(0, len(stage.gone), STRETCH_SEGMENTS):
                with core.lock:
                    snapshots += core.mark_snapshots_deleted(stage.gone[first : first + STRETCH_SEGMENTS])
            with core.lock:
                stage.strip()
            delete_later([], snapshots, core.log_dir, core.services, core.config.file_delete_delay_ms)
            stage.finish()
        except OSError as error:
            if stage.is_begun or not is_shortage(error):
                core.fail("cannot replace segments", error)
            else:
                stage.undo()
            raise
        finally:
            stage.close()
