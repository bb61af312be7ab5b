"""Which aborted transactions a read_committed consumer must know of for what it reads.

Those that overlap with the offsets read, from the transaction indexes of the segment of the first offset and of later
ones: a marker may lie segments behind its data. The search ends with the first row after which no open transaction
reached back into the range. The range's end is looked up in the offset index, not read from the batches, so it may be
some batches too far: a consumer that gets a transaction too many skips what it does not see anyway.
Source: Kafka LocalLog.addAbortedTransactions, LogSegment.fetchUpperBoundOffset.
"""

from __future__ import annotations

from barnabas.broker.storage.index.transaction_index import AbortedTxn
from barnabas.broker.storage.segment.log_segments import SegmentsView


def aborted_transactions(view: SegmentsView, start_offset: int, upper_bound: int) -> list[AbortedTxn]:
    """Those that overlap with [start_offset, upper_bound), in the order of their markers. Raises OSError."""
    found: list[AbortedTxn] = []
    for segment in view.segments[max(view.floor_index(start_offset), 0) :]:
        rows, is_complete = segment.transaction_index.collect(start_offset, upper_bound)
        found += rows
        if is_complete:
            break
    return found


def has_aborted_transactions(view: SegmentsView, start_offset: int) -> bool:
    """Whether there is any from that offset on: mostly there is none, and nothing else is to be looked up."""
    return any(
        segment.transaction_index.size_bytes for segment in view.segments[max(view.floor_index(start_offset), 0) :]
    )


def upper_bound_of(view: SegmentsView, end_offset: int, start_offset: int, size_bytes: int) -> int:
    """An offset above all in a slice of that size that was read from `start_offset`; at most `end_offset`, the log's.

    Raises CorruptRecordError, CorruptFileError, OSError.
    """
    index = max(view.floor_index(start_offset), 0)
    for position, segment in enumerate(view.segments[index:], index):
        found = segment.find_batch(start_offset, segment.size_bytes)
        if found is None:
            continue  # a hole: what was read lies in the next segment
        bound = segment.offset_from_position(found.position + size_bytes)
        if bound is not None:
            return bound
        return view.segments[position + 1].base_offset if position + 1 < len(view.segments) else end_offset
    return end_offset
