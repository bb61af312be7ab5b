"""Hands out producer ids, one block of the metadata log after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.broker.metadata_changes import MetadataChanges


class ProducerIds:
    """`next_id` is called in the event loop; only the first of a block waits for the disk."""

    def __init__(self, changes: MetadataChanges) -> None:
        self._changes = changes
        self._block: Iterator[int] = iter(())

    async def next_id(self) -> int:
        """An id that nobody had before. Raises BrokerError KAFKA_STORAGE_ERROR when no block can be taken."""
        while True:
            found = next(self._block, None)
            if found is not None:
                return found
            # Several may wait here, and each then brings a block: the ids of all but the last are merely lost.
            self._block = iter(await self._changes.take_producer_id_block())
