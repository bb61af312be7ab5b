"""The mirrors of a broker: loaded with the first definition, because most brokers have none."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Executor

    from barnabas.broker.groups.offsets.service import GroupOffsets
    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.mirrors.manager import MirrorManager
    from barnabas.broker.mirrors.status import MirrorStatus
    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.broker.storage.log_manager import LogManager
    from barnabas.clients.config import ClientConfig
    from barnabas.protocol.mirrors.definition import MirrorDefinition

logger = logging.getLogger(__name__)


class BrokerMirrors:
    """Runs the mirrors of the metadata between `start` and `stop`. Event loop only."""

    def __init__(
        self,
        store: MetadataView,
        changes: MetadataChanges,
        config: LiveConfig,
        partitions: PartitionRegistry,
        group_offsets: Callable[[], GroupOffsets],
        blocking_io: Executor,
    ) -> None:
        self._store = store
        self._changes = changes
        self._config = config
        self._partitions = partitions
        self._group_offsets = group_offsets
        self._blocking_io = blocking_io
        self._log_manager: LogManager | None = None
        self._manager: MirrorManager | None = None
        self._is_held = False
        self._stopping: asyncio.Task[None] | None = None
        """Stops the mirrors that `hold` has ended."""

    def start(self, log_manager: LogManager) -> None:
        """Start the mirrors of the metadata, and follow its changes."""
        self._log_manager = log_manager
        self.apply(self._store.image)

    def apply(self, image: MetadataImage) -> None:
        """Follow a change of the metadata."""
        if self._is_held or self._stopping is not None:
            return
        if self._manager is None and image.mirrors.definitions and self._log_manager is not None:
            self._manager = self._make_manager(self._log_manager)
        if self._manager is not None:
            self._manager.apply(image)

    async def stop(self) -> None:
        """Stop all mirrors, for good."""
        self._log_manager = None
        manager, self._manager = self._manager, None
        if manager is not None:
            await manager.stop()
        if self._stopping is not None:
            await asyncio.wait([self._stopping])

    async def hold(self) -> None:
        """Stop all mirrors until `release`; return once nothing is appended to their logs any more."""
        self._is_held = True
        manager, self._manager = self._manager, None
        if manager is not None:
            self._stopping = asyncio.get_running_loop().create_task(manager.stop(), name="mirrors-hold")
            self._stopping.add_done_callback(self._stopped)
        if self._stopping is not None:
            await asyncio.shield(self._stopping)

    def release(self) -> None:
        """Go on after `hold`. If that still runs, the mirrors begin once the earlier ones have stopped."""
        self._is_held = False
        self._go_on()

    def statuses(self) -> Mapping[str, MirrorStatus]:
        """Return the statuses of all mirrors."""
        return {} if self._manager is None else self._manager.statuses()

    def _stopped(self, task: asyncio.Task[None]) -> None:
        self._stopping = None
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a bug: the mirrors have not stopped", exc_info=error)
        self._go_on()

    def _go_on(self) -> None:
        if self._log_manager is not None:
            self.apply(self._store.image)

    def _make_manager(self, log_manager: LogManager) -> MirrorManager:
        from barnabas.broker.mirrors.manager import MirrorManager
        from barnabas.broker.mirrors.parts import MirrorParts

        return MirrorManager(
            lambda executor: MirrorParts(
                store=self._store,
                changes=self._changes,
                config=self._config,
                partitions=self._partitions,
                log_manager=log_manager,
                group_offsets=self._group_offsets(),
                executor=executor,
                client_config=self._client_config,
            )
        )

    async def _client_config(self, definition: MirrorDefinition) -> ClientConfig:
        """Read the file of client properties on a thread. Raises ClientConfigError, OSError."""
        from barnabas.broker.mirrors.client_config import client_config

        return await asyncio.get_running_loop().run_in_executor(self._blocking_io, client_config, definition)
