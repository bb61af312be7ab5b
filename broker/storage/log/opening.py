"""Opening a log: its files are loaded, and become a PartitionLog, or a FutureLog in a `-future` directory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from barnabas.broker.storage.files.partition_metadata_file import read_partition_metadata
from barnabas.broker.storage.log.future_log import FutureLog
from barnabas.broker.storage.log.loader import LoadedLog, LoadProgress, LoadRequest, LogLoader
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.services.services import StorageServices

Log = TypeVar("Log", bound=PartitionLog)


class Loader(Protocol):
    """Loads one log."""

    def load(self) -> LoadedLog:
        """The log as it was found. Raises OSError."""
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


def open_future_log(request: LoadRequest, services: StorageServices, progress: LoadProgress | None = None) -> FutureLog:
    """As `open_log`, for the copy that a move fills."""
    return open_log_as(FutureLog, request, services, progress)


def open_log_as(
    kind: type[Log],
    request: LoadRequest,
    services: StorageServices,
    progress: LoadProgress | None = None,
    topic_id: bytes | None = None,
    *,
    loader: Callable[[LoadRequest, StorageServices, LoadProgress], Loader] = LogLoader,
) -> Log:
    """As `open_log`, for a log of another class, or loaded in another way."""
    progress = progress or LoadProgress()
    try:
        loaded = loader(request, services, progress).load()
        log = kind(
            loaded,
            topic_partition=request.topic_partition,
            topic_id=topic_id if topic_id is not None else read_partition_metadata(request.directory),
            directory=request.directory,
            config=request.config,
            services=services,
        )
    except BaseException:
        progress.state = "failed"
        raise
    progress.state = "online"
    return log
