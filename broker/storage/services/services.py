"""Services shared by all logs of one broker, passed to each log as one value.

None of them is a global of the process, so that one process can run two brokers.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.broker.storage.files.open_files import OpenFiles
from barnabas.broker.storage.producers.expiration import ProducerExpiration
from barnabas.broker.storage.services.clock import Clock
from barnabas.broker.storage.services.log_dir_failure import LogDirFailures
from barnabas.broker.storage.services.scheduler import Scheduler


class StorageServices(NamedTuple):
    """Clock, scheduler, open files, failed directories and producer expiration of one broker."""

    clock: Clock
    scheduler: Scheduler
    open_files: OpenFiles
    failures: LogDirFailures
    producer_expiration: ProducerExpiration
