"""Producer ids, taken from the metadata log in blocks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.protocol.errors import BrokerError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.broker.metadata_changes import MetadataChanges


class ProducerIds:
    """A source of producer ids. Event loop only."""

    def __init__(self, changes: MetadataChanges, lowest: Callable[[], int]) -> None:
        """`lowest` returns the lowest id that may be handed out; it rises when the cluster gets its first mirror."""
        self._changes = changes
        self._lowest = lowest
        self._block: Iterator[int] = iter(())
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self) -> int | None:
        """Return a new id; None if a new block has to be taken first, which `next_id` does."""
        found = next(self._block, None)
        return None if found is None or found < self._lowest() else found

    async def next_id(self) -> int:
        """Return a new id; only the first of a block waits for the disk.

        Raises BrokerError KAFKA_STORAGE_ERROR when no block can be taken.
        """
        while True:
            found = self.take()
            if found is not None:
                return found
            # Concurrent callers each take a block; the ids of all but the last block are merely lost.
            self._block = iter(await self._changes.take_producer_id_block())

    def with_new_id(self, use: Callable[[int], None], failed: Callable[[BrokerError], None]) -> None:
        """Call `use` with a new id or `failed` with the error: before this returns, or after a block was taken."""
        found = self.take()
        if found is not None:
            use(found)
            return

        async def take() -> None:
            try:
                later = await self.next_id()
            except BrokerError as error:
                failed(error)
            else:
                use(later)

        task = asyncio.get_running_loop().create_task(take())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
