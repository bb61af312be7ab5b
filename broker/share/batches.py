"""Merging of state batches: the newer, or higher, delivery of overlapping offsets wins.

A batch with a higher delivery count wins; with equal counts, the one with the higher state. Neighbours in the same
state become one batch. Source: Kafka's PersisterStateBatchCombiner, step by step, because its result is stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from barnabas.protocol.share.state_records import UNINITIALIZED, StateBatch

_Sorted = tuple[int, int, int, int]
"""First offset, last offset, delivery count, state: the order of Kafka's PersisterStateBatch."""


def combine(before: Iterable[StateBatch], added: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """Return batches in the order of offsets that do not overlap, without what is below `start_offset` (-1: all)."""
    batches = [each for each in (*before, *added) if start_offset == UNINITIALIZED or each.last_offset >= start_offset]
    if start_offset != UNINITIALIZED:
        batches = [each.replaced(first_offset=max(each.first_offset, start_offset)) for each in batches]
    if len(batches) < 2:
        return tuple(batches)
    heap = [(each.first_offset, each.last_offset, each.delivery_count, each.delivery_state) for each in batches]
    heapify(heap)
    combined = []
    previous = heappop(heap)
    while heap:
        candidate = heappop(heap)
        contiguous = previous[1] + 1 == candidate[0] and previous[2:] == candidate[2:]
        if candidate[0] <= previous[1] or contiguous:
            for part in _merged(previous, candidate):
                heappush(heap, part)
            previous = heappop(heap)
        else:
            combined.append(previous)
            previous = candidate
    combined.append(previous)
    return tuple(StateBatch(first, last, state, count) for first, last, count, state in combined)


def _merged(previous: _Sorted, candidate: _Sorted) -> list[_Sorted]:
    """Return what is left of two batches that overlap, or that follow each other in the same state."""
    first, last = previous[:2]
    candidate_first, candidate_last = candidate[:2]
    if previous[2:] == candidate[2:]:
        return [(first, max(last, candidate_last), *previous[2:])]
    if candidate[2:] < previous[2:]:
        parts = [previous]
        if candidate_last > last:
            parts.append((last + 1, candidate_last, *candidate[2:]))
        return parts
    parts = [candidate]
    if first < candidate_first:
        parts.append((first, candidate_first - 1, *previous[2:]))
        if candidate_last < last:
            parts.append((candidate_last + 1, last, *previous[2:]))
    return parts
