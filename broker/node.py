"""One broker: what it is made of, and the order in which it starts and stops.

    start   bind the listeners; metrics port; open and lock the log directories; replay the metadata log; load the logs;
            begin the background tasks; accept clients
    stop    accept nobody more; answer the long polls; let connections finish the request at hand; end the groups' tasks
            and the metadata writer; close the logs (which flushes, checkpoints and writes the clean-shutdown marker);
            metrics port

No state of a broker is global to the process: a process may run several.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.broker.groups.coordinator import GroupCoordinator
from barnabas.broker.handlers.api_table import ApiNeeds, ApiTable
from barnabas.broker.image_applier import ImageApplier
from barnabas.broker.live_config import LiveConfig
from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.store import MetadataStore, open_metadata
from barnabas.broker.metadata_changes import MetadataChanges
from barnabas.broker.metrics.loop_lag import LoopLagTimer
from barnabas.broker.metrics.server import MetricsServer, start_metrics_server
from barnabas.broker.metrics.state import PHASE_LOADING, BrokerState
from barnabas.broker.network.advertised import AdvertisedAddresses
from barnabas.broker.network.connection import Connection
from barnabas.broker.network.connection_limit import ConnectionLimit
from barnabas.broker.network.connection_registry import ConnectionRegistry
from barnabas.broker.network.dispatch import Dispatcher
from barnabas.broker.network.listening import bind
from barnabas.broker.network.session import Session
from barnabas.broker.partitions.flush_waits import FlushWaits
from barnabas.broker.partitions.registry import PartitionRegistry
from barnabas.broker.probes import BrokerProbes
from barnabas.broker.startup_error import StartupError
from barnabas.broker.storage.files.clean_shutdown import NO_BROKER_EPOCH
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.log_manager import LogManager
from barnabas.broker.storage.services.clock import SystemClock

if TYPE_CHECKING:
    from pathlib import Path

    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.metadata_changes import Committer
    from barnabas.broker.storage.log.readable_log import ReadableLog
    from barnabas.broker.storage.served_logs import ServedLogs
    from barnabas.config import BrokerConfig, Listener
    from barnabas.protocol.topic_partition import TopicPartition

T = TypeVar("T")

logger = logging.getLogger(__name__)

DRAIN_SECONDS: Final = 10.0
"""How long connections may take for the request at hand when the broker stops."""

BLOCKING_IO_THREADS: Final = 4
"""Threads that read cold segments and look timestamps up."""


class Node:
    """A broker that starts, serves and stops once."""

    def __init__(self, config: BrokerConfig, loop: asyncio.AbstractEventLoop) -> None:
        self._config = config
        self._loop = loop
        self._probes = BrokerProbes()
        self._state = BrokerState()
        self._partitions = PartitionRegistry()
        self._blocking_io = ThreadPoolExecutor(BLOCKING_IO_THREADS, "blocking-io")
        self._flush_waits = FlushWaits(loop)
        self._state.flusher = self._flush_waits.flusher
        self._loop_lag = LoopLagTimer(loop, self._probes.loop_lag)
        self._sockets: list[socket.socket] = []
        self._servers: list[asyncio.Server] = []
        self._metrics: MetricsServer | None = None
        self.failed = asyncio.Event()
        """Set when the broker cannot go on: the metadata log's directory has failed."""
        self._log_manager: ServedLogs[ReadableLog]
        self._metadata: MetadataView
        self._store: MetadataStore | None = None
        """None with read.only=true: nothing can change the metadata."""
        self._committer: Committer
        self._changes: MetadataChanges
        self._groups: GroupCoordinator
        self._apis: ApiTable
        self._connections: ConnectionRegistry

    @property
    def port(self) -> int:
        """The port of the first listener."""
        port: int = self._sockets[0].getsockname()[1]
        return port

    @property
    def metrics_port(self) -> int | None:
        """None where no metrics are served."""
        return None if self._metrics is None else self._metrics.port

    async def start(self) -> None:
        """Serve. Raises StartupError with one sentence; then nothing is left open."""
        config = self._config
        try:
            self._sockets = bind(
                config.listeners,
                config.get_int("socket.send.buffer.bytes"),
                config.get_int("socket.receive.buffer.bytes"),
            )
            self._metrics = self._start_metrics()
            await self._blocking(self._open_storage)
            self._assemble()
            await self._accept()
        except (StorageError, MetadataError) as error:
            await self._give_up()
            raise StartupError(str(error)) from error
        except BaseException:
            await self._give_up()
            raise

    async def stop(self) -> bool:
        """Stop in order; true when everything is on disk and the clean-shutdown markers could be written."""
        self._state.drain()
        for server in self._servers:
            server.close()
        self._apis.fetch.answer_all()
        self._groups.refuse_members()
        await self._connections.drain(DRAIN_SECONDS)
        self._loop_lag.stop()
        await self._groups.stop()
        await self._changes.close()
        clean = await self._blocking(self._close_storage)
        if self._metrics is not None:
            self._metrics.close()
        self._blocking_io.shutdown()
        return clean

    def _start_metrics(self) -> MetricsServer | None:
        listener = self._config.metrics_listener
        if listener is None:
            return None
        try:
            return start_metrics_server(listener.host, listener.port, probes=self._probes, state=self._state)
        except OSError as error:
            raise StartupError(
                f"cannot serve metrics (metrics.listener): {error}; take another address with --set "
                "metrics.listener=HOST:PORT, or none with --set metrics.listener="
            ) from error

    def _open_storage(self) -> None:
        """Directories, metadata, logs. The collector is off meanwhile: nothing that is loaded is garbage."""
        self._state.phase = PHASE_LOADING
        gc.disable()
        try:
            clock = SystemClock()
            if self._config.get_bool("read.only"):
                from barnabas.broker.read_only import ReadOnlyLogManager, RefusingCommitter, read_metadata

                self._open_directories(
                    ReadOnlyLogManager(self._config, clock=clock, on_directory_failed=self._directory_failed)
                )
                read_only = self._metadata = read_metadata(self._config)
                self._committer = RefusingCommitter()
                self._live = LiveConfig(self._config, read_only.node_id, read_only.image)
                self._log_manager.load_logs(self._live.log_config, read_only.is_stray)
            else:
                manager = LogManager(self._config, clock=clock, on_directory_failed=self._directory_failed)
                self._open_directories(manager)
                store = self._metadata = self._committer = open_metadata(self._config, manager, clock)
                self._store = store
                self._live = LiveConfig(self._config, store.node_id, store.image)
                manager.load_logs(self._live.log_config, store.is_stray, store.assign)
                store.reconcile(manager)
        finally:
            gc.enable()
        gc.collect()
        gc.freeze()

    def _open_directories(self, manager: ServedLogs[ReadableLog]) -> None:
        self._log_manager = self._state.log_manager = manager
        self._log_manager.open_directories()

    def _assemble(self) -> None:
        config, loop, probes = self._config, self._loop, self._probes
        applier = ImageApplier(self._metadata, self._log_manager, self._partitions, self._live, probes, loop)
        applier.serve_all()
        self._changes = MetadataChanges(
            self._metadata, self._committer, self._live, applier, on_store_failed=self.failed.set
        )
        self._groups = GroupCoordinator(
            partitions=self._partitions,
            store=self._metadata,
            changes=self._changes,
            config=self._live,
            flush_waits=self._flush_waits,
            blocking_io=self._blocking_io,
            wall_ms=SystemClock().wall_ms,
            loop=loop,
            probe=probes.groups,
        )
        if config.get_bool("metrics.group.lag.enable"):
            self._state.committed_offsets = self._groups.offsets.committed
        self._apis = ApiTable(
            ApiNeeds(
                loop=loop,
                probes=probes,
                partitions=self._partitions,
                log_manager=self._log_manager,
                store=self._metadata,
                changes=self._changes,
                groups=self._groups,
                config=self._live,
                addresses=AdvertisedAddresses(self._metadata.node_id, config.advertised_listeners),
                flush_waits=self._flush_waits,
                blocking_io=self._blocking_io,
            )
        )
        if config.get_bool("read.only"):
            from barnabas.broker.read_only import refusing_handlers

            self._apis.handlers |= refusing_handlers()
        idle_ms = config.get_int("connections.max.idle.ms")
        self._connections = ConnectionRegistry(
            loop,
            Dispatcher(self._apis.handlers, probes, loop),
            self._blocking_io,
            probes.connections,
            max_frame_bytes=config.get_int("socket.request.max.bytes"),
            limit=ConnectionLimit(self._live),
            max_idle_seconds=idle_ms / 1000 if idle_ms >= 0 else None,
        )

    async def _accept(self) -> None:
        self._log_manager.start_tasks()
        if self._store is not None:
            self._store.start_snapshots(self._log_manager.scheduler)
        self._flush_waits.flusher.start()
        self._groups.start()
        self._loop_lag.start()
        self._connections.start()
        backlog = self._config.get_int("socket.listen.backlog.size")
        for listener, bound in zip(self._config.listeners, self._sockets, strict=True):
            server = await self._loop.create_server(self._connection_factory(listener), sock=bound, backlog=backlog)
            self._servers.append(server)
            advertised = self._config.advertised_listeners[listener.name]
            logger.info(
                "listening, listener=%s port=%d advertised=%s:%s",
                listener,
                bound.getsockname()[1],
                advertised.host or "(as each client reaches it)",
                advertised.port or bound.getsockname()[1],
            )
        self._state.serve()

    def _connection_factory(self, listener: Listener) -> Callable[[], Connection]:
        return lambda: Connection(self._connections, Session(listener))

    def _close_storage(self) -> bool:
        self._flush_waits.flusher.stop()
        return self._log_manager.shutdown(NO_BROKER_EPOCH if self._store is None else self._store.broker_epoch)

    def _directory_failed(self, directory: Path, partitions: tuple[TopicPartition, ...]) -> None:
        """On a background thread. The partitions' logs refuse by themselves; without the metadata log all is over."""
        self._loop.call_soon_threadsafe(self._partitions.wake, partitions)
        if directory == self._config.metadata_log_dir:
            logger.error("stopping: the metadata log's directory has failed, directory=%s", directory)
            self._loop.call_soon_threadsafe(self.failed.set)

    async def _give_up(self) -> None:
        self._loop_lag.stop()
        self._flush_waits.flusher.stop()
        for server in self._servers:
            server.close()
        for opened in self._sockets:
            opened.close()
        if self._metrics is not None:
            self._metrics.close()
        if self._state.log_manager is not None:
            await self._blocking(self._state.log_manager.shutdown)
        self._blocking_io.shutdown()

    async def _blocking(self, work: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._blocking_io, work)
