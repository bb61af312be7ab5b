"""LogParts: what the coordinators are created from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import asyncio

    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.partitions.flush_waits import FlushWaits
    from barnabas.broker.partitions.registry import PartitionRegistry


class LogParts(NamedTuple):
    """The broker's parts that a coordinator's log uses."""

    partitions: PartitionRegistry
    store: MetadataView
    changes: MetadataChanges
    config: LiveConfig
    flush_waits: FlushWaits
    wall_ms: Callable[[], int]
    loop: asyncio.AbstractEventLoop
