"""Which segments become one: as many in a row as one segment may hold, so that cleaned segments do not dwindle.

Together they stay within segment.bytes and, each of their indexes, within segment.index.bytes; and their offsets lie so
near to the first base offset that an index can hold the distance. Source: Kafka Cleaner.groupSegmentsBySize.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from barnabas.broker.storage.segment.log_segment import MAX_RELATIVE_OFFSET, LogSegment


def group_segments(
    segments: Sequence[LogSegment], *, max_bytes: int, max_index_bytes: int, first_uncleanable_offset: int
) -> list[list[LogSegment]]:
    """The segments, which ascend, in groups. One that is too large for the limits is a group alone. Raises OSError."""
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
    """Of an index of a sealed segment, which is trimmed; one that was never needed has none."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
