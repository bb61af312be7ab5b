"""Grouping of segments to clean into one, so that cleaned segments do not become ever smaller.

A group is a sequence of segments whose logs together fit into segment.bytes, whose indexes each fit into
segment.index.bytes, and whose offsets are within 2^31 - 1 of the first base offset.
Source: Kafka Cleaner.groupSegmentsBySize.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from barnabas.broker.storage.segment.log_segment import MAX_RELATIVE_OFFSET, LogSegment


def group_segments(
    segments: Sequence[LogSegment], *, max_bytes: int, max_index_bytes: int, first_uncleanable_offset: int
) -> list[list[LogSegment]]:
    """Group ascending segments; one that exceeds the limits alone is a group of its own. Raises OSError."""
    groups: list[list[LogSegment]] = []
    room = (0, 0, 0)
    for index, segment in enumerate(segments):
        sizes = (segment.size_bytes, _size_of(segment.offset_index.path), _size_of(segment.time_index.path))
        # The next one's base offset bounds the last offset without a scan.
        follows = index + 1 < len(segments)
        last_offset = (segments[index + 1].base_offset if follows else first_uncleanable_offset) - 1
        fits = groups and all(size <= left for size, left in zip(sizes, room, strict=True))
        if fits and (not segment.size_bytes or last_offset - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET):
            groups[-1].append(segment)
        else:
            groups.append([segment])
            room = (max_bytes, max_index_bytes, max_index_bytes)
        room = (room[0] - sizes[0], room[1] - sizes[1], room[2] - sizes[2])
    return groups


def _size_of(path: str) -> int:
    """Return the size of a sealed segment's index, which is trimmed; 0 without a file."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
