"""Where a copy and its source begin to differ, when no leader epoch tells: their batches are compared.

Both have the same batches up to some offset and others after it, so a binary search over the copy's batches needs few
requests: one entry's header of each side is compared: offsets, size, CRC and leader epoch. The epoch matters, because a
producer may have sent the same batch to both sides of a split, and it may have got the same offset behind others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.mirrors.source import FetchFrom
from barnabas.broker.mirrors.stored_entries import Entry, iter_entries
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.mirrors.mirrored_partition import MirroredPartition
    from barnabas.broker.mirrors.source import SourceNode

_FETCH_BYTES: Final = 1
"""An answer contains at least one whole batch."""


class CommonEnd(NamedTuple):
    """Offset up to which the batches of both are the same, and the source's end."""

    offset: int
    source_end: int


async def find_common_end(node: SourceNode, partition: MirroredPartition) -> CommonEnd | ErrorCode:
    """Return the offset up to which the batches of both are the same, or the source's error.

    Records that one side has deleted cannot be compared and count as common. Raises ClientError, and BrokerError if the
    copy cannot be read.
    """
    log = partition.log
    bounds = (await node.offset_ranges([partition.key]))[partition.key]
    if bounds.error is not ErrorCode.NONE:
        return bounds.error
    low = max(log.start, min(bounds.start, log.end))
    high = min(log.end, max(bounds.end, low))
    try:
        if low < high and await _is_same(node, partition, high - 1):
            return CommonEnd(high, bounds.end)  # as for every copy that is up to date
        # Everything below `low` is common, nothing from `high` on.
        while low < high:
            middle = (low + high) // 2
            mine = log.entry_at(middle)
            if mine is None:  # a hole up to the end
                high = middle
                continue
            theirs = await _entry_at(node, partition, mine.base_offset)
            if _are_same(mine, theirs):
                low = mine.last_offset + 1
            else:
                high = min(middle, max(low, mine.base_offset))
    except _FetchRefused as refused:
        return refused.error
    return CommonEnd(low, bounds.end)


class _FetchRefused(Exception):
    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.error = error


async def _is_same(node: SourceNode, partition: MirroredPartition, offset: int) -> bool:
    """Return whether both have the same entry that ends at `offset`."""
    mine = partition.log.entry_at(offset)
    if mine is None or mine.last_offset != offset:
        return False
    return _are_same(mine, await _entry_at(node, partition, mine.base_offset))


def _are_same(mine: Entry, theirs: Entry | None) -> bool:
    return theirs is not None and theirs[1:] == mine[1:]  # not the position in what was read


async def _entry_at(node: SourceNode, partition: MirroredPartition, offset: int) -> Entry | None:
    """Return the source's entry that contains `offset`, or the next one. Raises _FetchRefused."""
    request = FetchFrom(partition.topic_id, max(offset, 0), partition.leader_epoch, -1, _FETCH_BYTES)
    answers = await node.fetch({partition.key: request}, max_wait_ms=0, max_bytes=_FETCH_BYTES, compares=True)
    answer = answers.get(partition.key)
    if answer is None:  # the fetch session was refused
        raise _FetchRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    if answer.error is ErrorCode.OFFSET_OUT_OF_RANGE:
        return None
    if answer.error is not ErrorCode.NONE:
        raise _FetchRefused(answer.error)
    return next((each for each in iter_entries(answer.records) if each.last_offset >= offset), None)
