"""Replica: a standby's copy of its active broker, from opened directories until it takes over or stops.

1. open     lock the directories; open the metadata log; copy metadata until its end was reached once, unless an earlier
            run has done that; load the logs
2. copy     metadata on one connection, the records of all partitions on another, until the task is cancelled
3. close    flush and close everything, with clean-shutdown markers: the next start of a broker recovers nothing
   release  or give the loaded logs to the broker that takes over in this process: it need not load 1,000 logs again

A copy of metadata that is no prefix of the active broker's raises OtherHistoryError: the replica is opened again with
`StandbyState.is_verified` false. A directory that was not a standby's is opened in the same way. Then the metadata log
is copied from the start, partitions that the active broker does not have are set aside as stray, and the batches of the
others are compared, because after a split both sides may have used the same leader epochs.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar

from barnabas.broker.live_config import LiveConfig
from barnabas.broker.metadata.directories.standby_state import StandbyState, read_state, write_state
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.log.snapshotter import Snapshotter
from barnabas.broker.mirrors.byte_rate import ByteRate
from barnabas.broker.mirrors.kafka_source import KafkaSource
from barnabas.broker.mirrors.leader_fetcher import LeaderFetcher
from barnabas.broker.probes import BrokerProbes
from barnabas.broker.standby.active_broker import ActiveBroker
from barnabas.broker.standby.identity import check_identity, ensure_active_answers
from barnabas.broker.standby.replica_logs import ReplicaLogs
from barnabas.broker.standby.replica_opening import OpenedMetadata, directory_ids, load_logs, open_metadata
from barnabas.broker.storage.log_manager import LogManager
from barnabas.clients.errors import BrokerConnectionError, BrokerTimeoutError, ClientError, RefusedError
from barnabas.clients.network.cluster import Cluster
from barnabas.protocol.messages.cluster.standby import SnapshotName
from barnabas.protocol.messages.data.fetch import STANDBY_REPLICA_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from barnabas.broker.mirrors.source import SourceNode
    from barnabas.broker.mirrors.status import PartitionStatus
    from barnabas.broker.storage.services.clock import Clock
    from barnabas.clients.config import ClientConfig
    from barnabas.config import BrokerConfig
    from barnabas.protocol.messages.cluster.standby import StandbyResponse
    from barnabas.protocol.topic_partition import TopicPartition

T = TypeVar("T")

logger = logging.getLogger(__name__)

_FIRST_BACKOFF_SECONDS: Final = 0.1
_LONGEST_BACKOFF_SECONDS: Final = 5.0
_LOST_RETRY_SECONDS: Final = 0.05
"""The metadata has a new topic a moment before the active broker serves it, and producers may wait for this copy."""

_INLINE_BYTES: Final = 64 * 1024

_THREADS: Final = 2
"""One for metadata, one for records."""

_CLOSING_THREADS: Final = 16
"""The file system combines the fsyncs of several threads."""


class OtherHistoryError(Exception):
    """The copied metadata is no prefix of the active broker's."""


class Replica:
    """One opening of a standby's directories. Event loop only."""

    def __init__(self, config: BrokerConfig, client: ClientConfig, clock: Clock) -> None:
        """`client` is how the active broker is reached."""
        self._config = config
        self._client = client
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(_THREADS, "standby")
        self._log_manager = LogManager(config, clock=clock, on_directory_failed=self._directory_failed)
        self._state = StandbyState()
        self._opened: OpenedMetadata | None = None
        self._snapshotter: Snapshotter | None = None
        self._logs: ReplicaLogs | None = None
        self._fetching: asyncio.Task[None] | None = None
        self._cluster = Cluster(client)
        source = KafkaSource(self._cluster, STANDBY_REPLICA_ID)
        rate = ByteRate(None, self._loop.time)
        # Metadata is followed all the time, so nothing is to be done when a partition's leader epoch is outdated.
        self._fetcher = LeaderFetcher(
            lambda: self._connect(source),
            self._threads,
            rate,
            on_lost=lambda: None,
            lost_retry_seconds=_LOST_RETRY_SECONDS,
            inline_bytes=_INLINE_BYTES,
        )
        self._applied: MetadataImage | None = None
        """The image that the logs follow."""
        self.error: str | None = None
        """Why metadata is not copied, or None."""
        self.is_lost = False
        """Whether the active broker could not be reached at the last attempt."""
        self.metadata_end = -1
        """The end of the active broker's metadata log, -1 before its first answer."""
        self.state_lock = asyncio.Lock()
        """Held while the state of the directories is written: the replica and a promotion both write it."""
        self.is_promoted = False
        """Whether a promotion has written the state, which the replica then leaves as it is."""
        self.failed = asyncio.Event()
        """Set when a log directory has failed: the copy cannot become complete."""

    @property
    def number(self) -> int:
        """How often a standby has taken over in this cluster."""
        return self._state.number

    @property
    def metadata_offset(self) -> int:
        """The end of the copied metadata."""
        return 0 if self._opened is None else self._opened.copy.image.end_offset

    @property
    def applied_offset(self) -> int:
        """The end of the metadata that the logs follow; -1 before they are loaded."""
        return -1 if self._applied is None else self._applied.end_offset

    @property
    def is_compared(self) -> bool:
        """Whether no log has records that were not compared with the active broker's."""
        return self._state.is_verified or (self._logs is not None and self._logs.is_compared)

    @property
    def fetch_error(self) -> str | None:
        """Why records are not copied, or None."""
        return self._fetcher.error

    @property
    def seconds_since_fetch(self) -> float | None:
        """Seconds since the active broker has answered a fetch of records; None before the first answer."""
        answered_at = self._fetcher.answered_at
        return None if answered_at is None else self._loop.time() - answered_at

    @property
    def is_complete_once(self) -> bool:
        """Whether the logs are loaded: the metadata was copied to its end at some time."""
        return self._logs is not None

    def partitions(self) -> list[PartitionStatus]:
        """Return the state of every partition, ordered."""
        if self._logs is None:
            return []
        now = self._loop.time()
        return [each.status(now) for _, each in sorted(self._logs.partitions.items())]

    def missing(self) -> Mapping[TopicPartition, str]:
        """Return the partitions that have no log here, with the reason."""
        return {} if self._logs is None else self._logs.missing

    def ends(self) -> dict[TopicPartition, int]:
        """Return the log end offsets of the copied partitions."""
        return {} if self._logs is None else {key: each.log.end for key, each in self._logs.partitions.items()}

    async def run(self) -> None:
        """Open the directories and copy until cancelled.

        Raises OtherHistoryError, MetadataError, StorageError, OSError; `close` in every case.
        """
        self._state = await self._blocking(lambda: read_state(self._config.metadata_log_dir))
        if not self._state.is_verified:
            await self._wait_for_active()
        opened = self._opened = await self._blocking(lambda: open_metadata(self._config, self._log_manager))
        self._state = opened.state
        if opened.state.is_verified and opened.copy.image.level is not None:
            await self._load_logs()
        await self._follow_metadata()

    async def close(self) -> bool:
        """Flush and close everything; return whether the directories are clean."""
        await self._stop_copying()
        return await asyncio.to_thread(lambda: self._log_manager.shutdown(threads=_CLOSING_THREADS))

    async def release(self) -> LogManager:
        """Stop copying and return the loaded logs, whose background work goes on. The metadata log is closed."""
        await self._stop_copying()
        assert self._snapshotter is not None, "only a replica that has loaded its logs takes over"
        await asyncio.to_thread(self._snapshotter.stop)
        await asyncio.to_thread(self._log_manager.close_metadata_log)
        return self._log_manager

    async def _stop_copying(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])
        await self._cluster.close()
        await asyncio.to_thread(self._threads.shutdown)  # waits for an append that runs

    # -- opening

    async def _wait_for_active(self) -> None:
        """Return once the broker to copy answers: only then may the metadata that is here be dropped."""
        while True:
            try:
                await ensure_active_answers(self._client, self._config.metadata_log_dir, self._state.number)
            except ClientError as error:
                if self.error != str(error):
                    logger.warning("waiting for the active broker, to copy all of its metadata again: %s", error)
                self.error = str(error)
                await asyncio.sleep(1)
            else:
                self.error = None
                return

    async def _load_logs(self) -> None:
        """Load the logs by the copied metadata, and let the fetcher copy them."""
        opened = self._metadata()
        image = opened.copy.image
        live = await self._blocking(lambda: LiveConfig(self._config, opened.node_id, image))
        ids = await self._blocking(lambda: directory_ids(self._log_manager))
        logs = ReplicaLogs(
            self._log_manager,
            live,
            ids,
            BrokerProbes(),
            self._loop,
            compares_batches=not self._state.is_verified,
        )
        await self._blocking(lambda: load_logs(self._log_manager, logs, image, live, ids))
        self._logs = logs
        self._snapshotter = Snapshotter(
            opened.copy.log,
            opened.copy,
            raft=opened.raft,
            unsnapped_bytes=opened.unsnapped_bytes,
            config=self._config,
            clock=self._clock,
        )
        self._snapshotter.start(self._log_manager.scheduler)
        logs.follow(image, self._fetcher)
        self._applied = image
        self._fetching = self._loop.create_task(self._fetcher.run())
        logger.info("standby copies %d partitions, number=%d", len(logs.partitions), self._state.number)

    # -- metadata

    async def _follow_metadata(self) -> None:
        backoff = _FIRST_BACKOFF_SECONDS
        while True:
            active: ActiveBroker | None = None
            try:
                active = await ActiveBroker.connect(self._client)
                identity = await active.identify()
                check_identity(identity, self._config.metadata_log_dir, self._state.number)
                if identity.number > self._state.number:
                    # Another broker has taken over: equal leader epochs prove nothing any more.
                    is_new = not self._state.is_verified
                    await self._set_state(self._state._replace(number=identity.number, is_verified=False))
                    if not is_new:
                        raise OtherHistoryError
                self.error, self.is_lost = None, False
                while True:
                    await self._take_metadata(active)
                    backoff = _FIRST_BACKOFF_SECONDS
                    if self._logs is None and self.metadata_offset == self.metadata_end:
                        await self._load_logs()
                    if not self._state.is_verified and self._logs is not None and self._logs.trust_epochs():
                        await self._set_state(self._state._replace(is_verified=True))
            except ClientError as error:
                if self.error != str(error):
                    level = logging.ERROR if isinstance(error, RefusedError) else logging.WARNING
                    logger.log(level, "the active broker's metadata is not copied: %s", error)
                self.error, self.is_lost = str(error), isinstance(error, BrokerConnectionError | BrokerTimeoutError)
            finally:
                if active is not None:
                    active.close()
            await asyncio.sleep(backoff)
            backoff = min(2 * backoff, _LONGEST_BACKOFF_SECONDS)

    async def _take_metadata(self, active: ActiveBroker) -> None:
        copy = self._metadata().copy
        answer: StandbyResponse = await active.metadata(copy.next_offset, copy.last_crc)
        if answer.is_other_log:
            raise OtherHistoryError
        if answer.snapshot is not None:
            await self._take_snapshot(active, answer.snapshot)
        elif answer.data:
            await self._blocking(lambda: copy.apply(answer.data))
        self.metadata_end = answer.end_offset
        await self._follow_image()

    async def _take_snapshot(self, active: ActiveBroker, snapshot: SnapshotName) -> None:
        copy = self._metadata().copy
        path = copy.part_path(snapshot)
        await self._blocking(lambda: path.write_bytes(b""))
        position = 0
        while data := await active.snapshot(snapshot, position):
            await self._blocking(lambda data=data: _append(path, data))  # type: ignore[misc]
            position += len(data)
        await self._blocking(lambda: copy.install(snapshot))

    async def _follow_image(self) -> None:
        logs, before, after = self._logs, self._applied, self._metadata().copy.image
        if logs is None or before is None or (before is after and not logs.retries):
            return
        await self._blocking(lambda: logs.change_logs(before, after))
        self._applied = after
        logs.follow(after, self._fetcher)

    async def _set_state(self, state: StandbyState) -> None:
        async with self.state_lock:
            if self.is_promoted:
                return
            await self._blocking(lambda: write_state(self._config.metadata_log_dir, state))
            self._state = state

    # -- records

    async def _connect(self, source: KafkaSource) -> SourceNode:
        await self._cluster.load([])  # the advertised address
        return await source.node(self._metadata().node_id)

    def _directory_failed(self, directory: Path, partitions: Any) -> None:
        logger.error("stopping: a log directory of the standby has failed, directory=%s", directory)
        self._loop.call_soon_threadsafe(self.failed.set)

    def _metadata(self) -> OpenedMetadata:
        assert self._opened is not None, "the metadata log is open"
        return self._opened

    async def _blocking(self, work: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._threads, work)


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)
