"""The aborted transactions that a read_committed consumer needs to skip their records in a slice.

They are the ones that overlap the offsets of the slice, from the transaction indexes of the first offset's segment and
of later ones: an end marker may be segments after its data. The search ends at the first row after which no open
transaction reaches back into the range. The end of the range comes from the offset index, not from the batches, so it
may be some batches too far: one transaction too many is harmless, because the consumer skips records that it does not
get anyway. Markers count as data: a consumer takes a transaction from the list before it looks at a batch, and of a
transaction that began before the slice the marker may be the only batch in it. Source: Kafka
LocalLog.addAbortedTransactions, LogSegment.fetchUpperBoundOffset.
"""

from __future__ import annotations

from barnabas.broker.storage.index.transaction_index import AbortedTxn
from barnabas.broker.storage.segment.log_segments import SegmentsView


def aborted_transactions(view: SegmentsView, start_offset: int, upper_bound: int) -> list[AbortedTxn]:
    """Return those that overlap [start_offset, upper_bound), in the order of their markers. Raises OSError."""
    found: list[AbortedTxn] = []
    for segment in view.segments[max(view.floor_index(start_offset), 0) :]:
        rows, is_complete = segment.transaction_index.collect(start_offset, upper_bound)
        found += rows
        if is_complete:
            break
    return found


def has_aborted_transactions(view: SegmentsView, start_offset: int) -> bool:
    """Return whether any transaction index from that offset on has a row; usually none has, which ends the lookup."""
    return any(
        segment.transaction_index.size_bytes for segment in view.segments[max(view.floor_index(start_offset), 0) :]
    )


def upper_bound_of(view: SegmentsView, end_offset: int, start_offset: int, size_bytes: int) -> int:
    """Return an offset above all batches of a slice of `size_bytes` read at `start_offset`; at most `end_offset`.

    Raises CorruptRecordError, CorruptFileError, OSError.
    """
    index = max(view.floor_index(start_offset), 0)
    for position, segment in enumerate(view.segments[index:], index):
        found = segment.find_batch(start_offset, segment.size_bytes)
        if found is None:
            continue  # a hole: the slice is in the next segment
        bound = segment.offset_from_position(found.position + size_bytes)
        if bound is not None:
            return bound
        return view.segments[position + 1].base_offset if position + 1 < len(view.segments) else end_offset
    return end_offset
