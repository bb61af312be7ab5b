"""Opens a log: loads its files and builds the log object on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from barnabas.broker.storage.files.partition_metadata_file import read_partition_metadata
from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.log.loading.loader import LoadedLog, LoadProgress, LoadRequest, LogLoader
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.log.state import LoadState
from barnabas.broker.storage.services.services import StorageServices

Log = TypeVar("Log", bound=ReadableLog)


class Loader(Protocol):
    """Loads one log."""

    def load(self) -> LoadedLog:
        """Return the log as it was found. Raises OSError."""
        ...


def open_log(
    request: LoadRequest,
    services: StorageServices,
    progress: LoadProgress | None = None,
    *,
    topic_id: bytes | None = None,
) -> PartitionLog:
    """Load the log of a directory; its topic id is read from partition.metadata unless it is given.

    Raises OSError, CorruptFileError (a bad partition.metadata).
    """
    return open_log_as(PartitionLog, request, services, progress, topic_id)


def open_log_as(
    build: Callable[[LogCore], Log],
    request: LoadRequest,
    services: StorageServices,
    progress: LoadProgress | None = None,
    topic_id: bytes | None = None,
    *,
    loader: Callable[[LoadRequest, StorageServices, LoadProgress], Loader] = LogLoader,
) -> Log:
    """Load a log as `open_log` does, with another `loader`, and `build` another kind of log on it."""
    progress = progress or LoadProgress()
    started = services.clock.monotonic()
    try:
        loaded = loader(request, services, progress).load()
        core = LogCore(
            loaded,
            topic_partition=request.topic_partition,
            topic_id=topic_id if topic_id is not None else read_partition_metadata(request.directory),
            directory=request.directory,
            config=request.config,
            services=services,
        )
        log = build(core)
    except BaseException:
        progress.state = LoadState.FAILED
        raise
    progress.seconds = services.clock.monotonic() - started
    progress.state = LoadState.ONLINE
    return log
