"""The open transactions of one log, the oldest first. They bound the last stable offset.

Appends come in the order of their offsets and each transaction is added with its first one, so the dict's own order is
that of the first offsets; a load sorts.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.broker.storage.producers.entry import NO_OFFSET, ProducerEntry


class OpenTransactions:
    """First offsets and producer ids. The caller serializes changes; `first_offset` may be read by any thread."""

    __slots__ = ("_producers", "first_offset")

    def __init__(self) -> None:
        self._producers: dict[int, int] = {}
        """First offset -> producer id, in ascending order."""
        self.first_offset: int | None = None
        """First offset of the oldest open transaction, or None."""

    def __len__(self) -> int:
        return len(self._producers)

    def __contains__(self, first_offset: int) -> bool:
        return first_offset in self._producers

    def load(self, entries: Iterable[ProducerEntry]) -> None:
        """Replace all by the open transactions of loaded producers."""
        opened = ((each.txn_first_offset, each.producer_id) for each in entries if each.txn_first_offset != NO_OFFSET)
        self._producers = dict(sorted(opened))
        self.first_offset = next(iter(self._producers), None)

    def begin(self, first_offset: int, producer_id: int) -> None:
        """Add a transaction, which begins at the end of the log."""
        self._producers[first_offset] = producer_id
        if self.first_offset is None:
            self.first_offset = first_offset

    def end(self, first_offset: int) -> None:
        """Remove a transaction."""
        self._producers.pop(first_offset, None)
        if first_offset == self.first_offset:
            self.first_offset = next(iter(self._producers), None)

    def first_offset_without(self, first_offset: int) -> int | None:
        """Return the first offset of the oldest transaction but this one, or None."""
        return next((each for each in self._producers if each != first_offset), None)
