"""Producer ids, taken from the metadata log in blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.broker.metadata_changes import MetadataChanges


class ProducerIds:
    """A source of producer ids. Event loop only."""

    def __init__(self, changes: MetadataChanges) -> None:
        self._changes = changes
        self._block: Iterator[int] = iter(())

    def take(self) -> int | None:
        """Return a new id; None if a new block has to be taken first, which `next_id` does."""
        return next(self._block, None)

    async def next_id(self) -> int:
        """Return a new id; only the first of a block waits for the disk.

        Raises BrokerError KAFKA_STORAGE_ERROR when no block can be taken.
        """
        while True:
            found = next(self._block, None)
            if found is not None:
                return found
            # Concurrent callers each take a block; the ids of all but the last block are merely lost.
            self._block = iter(await self._changes.take_producer_id_block())
