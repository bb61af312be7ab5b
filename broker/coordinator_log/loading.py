"""Loading of a coordinator's log at a start: each partition that has records is read, one after the other.

The keys of a partition are refused until it is loaded (COORDINATOR_LOAD_IN_PROGRESS); all others are served. A
partition that cannot be read is never served, and keeps none of the others from loading.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.storage.files.errors import StorageError
from barnabas.protocol.errors import BrokerError, DecodeError

if TYPE_CHECKING:
    from barnabas.broker.coordinator_log.log import CoordinatorLog
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.partitions.registry import PartitionRegistry

logger = logging.getLogger(__name__)

PROGRESS_SECONDS: Final = 5.0
"""Interval of the log lines during a long load."""


class Loaded(NamedTuple):
    """A partition's number of records, and what to call once its keys are served."""

    records: int
    then: Callable[[], None] | None = None


Read = Callable[[int, "Partition"], Awaitable[Loaded]]
"""Reads a partition into memory. Raises DecodeError, BrokerError, StorageError, OSError."""


class LogLoading:
    """Loads the partitions of one coordinator's log."""

    def __init__(
        self, log: CoordinatorLog, partitions: PartitionRegistry, store: MetadataView, *, keys_name: str
    ) -> None:
        """`keys_name`: what the log's keys are called in log lines, such as "groups"."""
        self._log = log
        self._partitions = partitions
        self._store = store
        self._keys_name = keys_name
        self._to_load: list[int] = []

    def begin(self) -> bool:
        """Refuse the keys of all partitions that have to be loaded; return whether there are any."""
        name = self._log.topic.name
        topic = self._store.image.topics.get(name)
        if topic is None:
            return False
        for number in sorted(topic.partitions):
            partition = self._partitions.get(name, number)
            # One without a log is not served until it has one, which is empty then.
            if partition is not None and partition.log.log_start_offset < partition.log.log_end_offset:
                self._log.begin_loading(number)
                self._to_load.append(number)
        return bool(self._to_load)

    async def run(self, read: Read, describe_total: Callable[[], str]) -> None:
        """Load what `begin` found. `describe_total`: what memory holds now, as `name=number` for the log line."""
        name, numbers = self._log.topic.name, self._to_load
        started = said = time.monotonic()
        records = 0
        for done, number in enumerate(numbers):
            if self._log.is_loading(number):  # else the topic was deleted, and a new one is served already
                records += await self._load(number, read)
            if time.monotonic() - said >= PROGRESS_SECONDS:
                said = time.monotonic()
                logger.info("loading %s, partitions=%d/%d records=%d", name, done + 1, len(numbers), records)
        gc.freeze()  # loaded objects are long-lived: no collection needs to scan them
        logger.info(
            "%s is loaded, partitions=%d records=%d %s seconds=%.3f",
            name,
            len(numbers),
            records,
            describe_total(),
            time.monotonic() - started,
        )

    async def _load(self, number: int, read: Read) -> int:
        """Load a partition and return its number of records. It leaves the state `loading` whatever happens."""
        name = self._log.topic.name
        partition = self._partitions.get(name, number)
        failed, loaded = False, Loaded(0)
        if partition is not None:
            try:
                loaded = await read(number, partition)
            except (DecodeError, BrokerError, StorageError, OSError) as error:
                logger.error("%s-%d cannot be loaded, its %s are not served: %s", name, number, self._keys_name, error)
                failed = not partition.is_retired  # a retired one was deleted meanwhile
            except Exception:  # a bug must not keep the other partitions from loading
                logger.exception("%s-%d cannot be loaded, its %s are not served", name, number, self._keys_name)
                failed = not partition.is_retired
        self._log.end_loading(number, failed=failed)
        if loaded.then is not None:
            try:
                loaded.then()
            except Exception:  # as above
                logger.exception("a bug after %s-%d was loaded", name, number)
        return loaded.records
