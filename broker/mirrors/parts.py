"""The parts of the broker that a mirror uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from concurrent.futures import Executor

    from barnabas.broker.groups.offsets.service import GroupOffsets
    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.broker.storage.log_manager import LogManager
    from barnabas.clients.config import ClientConfig
    from barnabas.protocol.mirrors.definition import MirrorDefinition


@dataclass(frozen=True, slots=True)
class MirrorParts:
    """Parts that all mirrors share."""

    store: MetadataView
    changes: MetadataChanges
    config: LiveConfig
    partitions: PartitionRegistry
    log_manager: LogManager
    group_offsets: GroupOffsets
    executor: Executor
    """Threads for appends."""
    client_config: Callable[[MirrorDefinition], Awaitable[ClientConfig]]
    """Returns how the source is reached. Raises ClientConfigError, OSError for the file of client properties."""
