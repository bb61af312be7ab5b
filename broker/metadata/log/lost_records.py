"""Detection of lost records: files beside the segments show that a metadata log was longer.

    after a clean stop   <offset>.snapshot, which Kafka and Barnabas write when they close the log, has the end offset.
                         Records missing below it were acknowledged and synced; only the last batch may be torn
    otherwise            an index without its segment, at or after the end of the segments: a segment is created before
                         its indexes and removed before them, and never at the end of the log

Without this evidence a log that lacks whole batches looks like one that stopped earlier. Kafka checks neither and goes
on without the records. Source: Kafka's ProducerStateManager and UnifiedLog.close.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.storage.files.clean_shutdown import CLEAN_SHUTDOWN_FILE
from barnabas.broker.storage.files.file_names import SNAPSHOT_SUFFIX, parse_file_name
from barnabas.protocol.records.layout import LOG_OVERHEAD

_INDEX_SUFFIXES = (".index", ".timeindex")
_DELTA_POSITION = 23
_DELTA_END = 27


def ensure_nothing_is_lost(
    directory: Path, segments: Sequence[int], *, end_offset: int, log_end_offset: int, was_closed: bool, tail: bytes
) -> None:
    """Raise MetadataError with a remedy if records after `end_offset` were lost.

    segments         base offsets of the existing segments
    end_offset       end offset of the replay, snapshot included
    log_end_offset   end offset of the segments
    tail             bytes after the last complete batch
    """
    files = [parsed for path in directory.iterdir() if (parsed := parse_file_name(path.name)) and not parsed.stage]
    closed_at = max((each.offset for each in files if each.kind.value == SNAPSHOT_SUFFIX), default=None)
    if was_closed and closed_at is not None:
        if end_offset < closed_at and not _may_end_at(closed_at, tail):
            raise MetadataError(
                f"{directory} ends at offset {end_offset}, but the last stop was clean and left it at offset "
                f"{closed_at}",
                remedy="restore its segments, or give up the records in between by removing "
                f"{directory.parent / CLEAN_SHUTDOWN_FILE}",
            )
        return
    indexes = {each.offset for each in files if each.kind.value in _INDEX_SUFFIXES}
    orphans = sorted(base for base in indexes.difference(segments) if base >= log_end_offset or not segments)
    if orphans:
        raise MetadataError(
            f"{directory} has the index of a segment that begins at offset {orphans[0]}, but not the segment",
            remedy=f"restore it, or give up its records by removing the files {orphans[0]:020d}.*",
        )


def _may_end_at(offset: int, tail: bytes) -> bool:
    """Return whether `tail` may be the start of one batch that ends at `offset`, possibly without a full header."""
    if len(tail) < _DELTA_END:
        return bool(tail)
    base_offset = int.from_bytes(tail[:8], "big")
    is_cut_off = int.from_bytes(tail[8:LOG_OVERHEAD], "big") + LOG_OVERHEAD > len(tail)
    return is_cut_off and base_offset + int.from_bytes(tail[_DELTA_POSITION:_DELTA_END], "big") + 1 == offset
