"""Opening a log: its files are loaded, and become a PartitionLog."""

from __future__ import annotations

from barnabas.broker.storage.log import PartitionLog
from barnabas.broker.storage.log_loader import LoadProgress, LoadRequest, LogLoader
from barnabas.broker.storage.partition_metadata_file import read_partition_metadata
from barnabas.broker.storage.services import StorageServices


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
    progress = progress or LoadProgress()
    try:
        loaded = LogLoader(request, services, progress).load()
        log = PartitionLog(
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
