"""What all logs of one broker share: clocks, background work, open files and the word on failed directories.

Handed to each log as one value, so that nothing of it is a global of the process: a process may hold two brokers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.broker.storage.files.open_files import OpenFiles
from barnabas.broker.storage.producers.expiration import ProducerExpiration
from barnabas.broker.storage.services.clock import Clock
from barnabas.broker.storage.services.log_dir_failure import LogDirFailures
from barnabas.broker.storage.services.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class StorageServices:
    """The parts that a log works with."""

    clock: Clock
    scheduler: Scheduler
    open_files: OpenFiles
    failures: LogDirFailures
    producer_expiration: ProducerExpiration = field(default_factory=ProducerExpiration)
