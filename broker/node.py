"""One broker: composition of its parts, and the order in which they start and stop.

    start   bind the listeners; metrics port; open and lock the log directories; replay the metadata log; load the logs;
            begin the background tasks; accept clients
    stop    close the listeners; answer the long polls; let connections finish their current request; end the groups'
            tasks and the metadata writer; close the logs (which flushes, checkpoints and writes the clean-shutdown
            marker); metrics port

No broker state is global to the process, so a process may run several brokers.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.broker.authorization.configured import configured_authorizer
from barnabas.broker.coordinator_log.log import LogParts
from barnabas.broker.groups.coordinator import GroupCoordinator
from barnabas.broker.handlers.api_table import ApiTable, HandlerContext
from barnabas.broker.image_applier import ImageApplier
from barnabas.broker.live_config import LiveConfig
from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.store import MetadataStore, open_metadata
from barnabas.broker.metadata_changes import MetadataChanges
from barnabas.broker.metrics.loop_lag import LoopLagTimer
from barnabas.broker.metrics.server import MetricsServer, start_metrics_server
from barnabas.broker.metrics.state import BrokerState, Phase
from barnabas.broker.network.advertised import AdvertisedAddresses
from barnabas.broker.network.client_listeners import ClientListeners
from barnabas.broker.network.connection_quotas import ConnectionQuotas
from barnabas.broker.network.connection_registry import ConnectionRegistry
from barnabas.broker.network.dispatch import Dispatcher
from barnabas.broker.network.listening import bind
from barnabas.broker.partitions.flush_waits import FlushWaits
from barnabas.broker.partitions.registry import PartitionRegistry
from barnabas.broker.probes import BrokerProbes
from barnabas.broker.producer_ids import ProducerIds
from barnabas.broker.quotas.connection_rates import ConnectionRates
from barnabas.broker.quotas.manager import QuotaManager, QuotaWindows, monotonic_ms
from barnabas.broker.security.sasl.failure_log import FailureLog
from barnabas.broker.security.tls.certificates import Certificates
from barnabas.broker.security.tokens.lifetimes import TokenLifetimes, token_lifetimes
from barnabas.broker.security.tokens.sweep import TokenSweep
from barnabas.broker.security_applier import SecurityApplier
from barnabas.broker.startup_error import StartupError
from barnabas.broker.storage.files.clean_shutdown import NO_BROKER_EPOCH
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.log_manager import LogManager
from barnabas.broker.transactions.coordinator import TransactionCoordinator
from barnabas.config.listeners import METRICS, SSL

if TYPE_CHECKING:
    from pathlib import Path

    from barnabas.broker.authorization.authorizer import Authorizer
    from barnabas.broker.handlers.data.fetch import FetchHandler
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.metadata_changes import Committer
    from barnabas.broker.network.gating import Gate
    from barnabas.broker.storage.log.readable_log import ReadableLog
    from barnabas.broker.storage.served_logs import ServedLogs
    from barnabas.broker.storage.services.clock import Clock
    from barnabas.config import BrokerConfig
    from barnabas.protocol.topic_partition import TopicPartition

T = TypeVar("T")

logger = logging.getLogger(__name__)

DRAIN_SECONDS: Final = 10.0
"""Time limit for connections to finish their current request when the broker stops."""

BLOCKING_IO_THREADS: Final = 4
"""Number of threads that read cold segments and search by timestamp."""


@dataclass(frozen=True, slots=True)
class _Storage:
    """The parts that exist once the log directories are open and all logs are loaded."""

    log_manager: ServedLogs[ReadableLog]
    metadata: MetadataView
    store: MetadataStore | None
    """None with read.only=true: nothing can change the metadata."""
    committer: Committer
    config: LiveConfig


@dataclass(frozen=True, slots=True)
class _Services:
    """The parts that serve clients."""

    storage: _Storage
    changes: MetadataChanges
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    fetch: FetchHandler
    connections: ConnectionRegistry
    listeners: ClientListeners
    tokens: TokenLifetimes | None
    """None: the broker has no delegation tokens."""


class Node:
    """One broker, which is started and stopped once."""

    def __init__(self, config: BrokerConfig, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._config = config
        self._loop = loop
        self._clock = clock
        self._probes = BrokerProbes()
        self._state = BrokerState()
        self._partitions = PartitionRegistry()
        self._blocking_io = ThreadPoolExecutor(BLOCKING_IO_THREADS, "blocking-io")
        self._flush_waits = FlushWaits(loop)
        self._state.flusher = self._flush_waits.flusher
        self._failures = FailureLog(loop)
        self._certificates = self._state.certificates = Certificates()
        self._loop_lag = LoopLagTimer(loop, self._probes.loop_lag)
        self._sockets: list[socket.socket] = []
        self._metrics: MetricsServer | None = None
        self._services: _Services | None = None
        self._authorizer: Authorizer | None = None
        self._token_sweep: asyncio.Task[None] | None = None
        self.failed = asyncio.Event()
        """Set when the broker cannot continue: the log directory with the metadata log has failed."""

    @property
    def port(self) -> int:
        """The port of the first listener."""
        port: int = self._sockets[0].getsockname()[1]
        return port

    @property
    def metrics_port(self) -> int | None:
        """Port of the metrics listener; None if metrics.listener is empty."""
        return None if self._metrics is None else self._metrics.port

    async def start(self) -> None:
        """Start serving.

        Raises StartupError with a one-sentence message, after closing everything that was opened.
        """
        config = self._config
        try:
            self._sockets = bind(
                config.listeners,
                config.get_int("socket.send.buffer.bytes"),
                config.get_int("socket.receive.buffer.bytes"),
            )
            self._metrics = self._start_metrics()
            services = self._assemble(await self._blocking(self._open_storage))
            self._services = services
            await self._blocking(services.listeners.load_certificates)
            self._accept(services)
        except (StorageError, MetadataError) as error:
            await self._abandon()
            raise StartupError(str(error)) from error
        except BaseException:
            await self._abandon()
            raise

    async def stop(self) -> bool:
        """Stop a started broker; return whether all data was flushed and the clean-shutdown markers were written."""
        services = self._services
        assert services is not None
        self._state.drain()
        services.listeners.close()
        services.fetch.answer_all()
        services.groups.refuse_members()
        await services.connections.drain(DRAIN_SECONDS)
        self._loop_lag.stop()
        if self._token_sweep is not None:
            self._token_sweep.cancel()
        await services.transactions.stop()
        await services.groups.stop()
        await services.changes.close()
        if self._authorizer is not None:
            await self._blocking(self._authorizer.close)
        clean = await self._blocking(lambda: self._close_storage(services.storage))
        if self._metrics is not None:
            self._metrics.close()
        self._blocking_io.shutdown()
        return clean

    def _start_metrics(self) -> MetricsServer | None:
        listener = self._config.metrics_listener
        if listener is None:
            return None
        tls = None
        if self._config.security_protocol(METRICS) == SSL:
            tls = self._certificates.load(self._config.listener_properties(METRICS)).current
        try:
            return start_metrics_server(listener.host, listener.port, probes=self._probes, state=self._state, tls=tls)
        except OSError as error:
            raise StartupError(
                f"cannot serve metrics (metrics.listener): {error}; take another address with --set "
                "metrics.listener=HOST:PORT, or none with --set metrics.listener="
            ) from error

    def _open_storage(self) -> _Storage:
        """Open directories, metadata and logs.

        Garbage collection is off meanwhile: loading allocates many objects, none of which can be collected.
        """
        config, clock = self._config, self._clock
        self._state.phase = Phase.LOADING
        gc.disable()
        try:
            if config.get_bool("read.only"):
                from barnabas.broker.read_only import ReadOnlyLogManager, RefusingCommitter, read_metadata

                read_only = ReadOnlyLogManager(config, clock=clock)
                self._open_directories(read_only)
                metadata = read_metadata(config)
                live = LiveConfig(config, metadata.node_id, metadata.image)
                read_only.load_logs(live.log_config, metadata.is_stray)
                storage = _Storage(read_only, metadata, None, RefusingCommitter(), live)
            else:
                manager = LogManager(config, clock=clock, on_directory_failed=self._directory_failed)
                self._open_directories(manager)
                store = open_metadata(config, manager, clock)
                live = LiveConfig(config, store.node_id, store.image)
                manager.load_logs(live.log_config, store.is_stray, store.assign)
                store.reconcile(manager)
                storage = _Storage(manager, store, store, store, live)
        finally:
            gc.enable()
        gc.collect()
        gc.freeze()
        return storage

    def _open_directories(self, manager: ServedLogs[ReadableLog]) -> None:
        self._state.log_manager = manager
        manager.open_directories()

    def _assemble(self, storage: _Storage) -> _Services:
        """Build the parts that serve clients, and make the loaded logs available to them."""
        config, loop, probes = self._config, self._loop, self._probes
        log_manager, metadata, live = storage.log_manager, storage.metadata, storage.config
        quotas = QuotaManager(monotonic_ms, probes.quotas, QuotaWindows.of(config))
        connection_rates = ConnectionRates(loop, live, monotonic_ms, probes.quotas, quotas.windows)
        authorizer = self._authorizer = configured_authorizer(config, self._clock.wall_ms)
        security = SecurityApplier(acls=authorizer, quotas=[quotas, connection_rates])
        applier = ImageApplier(metadata, log_manager, self._partitions, live, probes, loop, security)
        applier.serve_all()
        changes = MetadataChanges(metadata, storage.committer, live, applier, on_store_failed=self.failed.set)
        coordinator_parts = LogParts(
            partitions=self._partitions,
            store=metadata,
            changes=changes,
            config=live,
            flush_waits=self._flush_waits,
            wall_ms=self._clock.wall_ms,
            loop=loop,
        )
        groups = GroupCoordinator(coordinator_parts, blocking_io=self._blocking_io, probe=probes.groups)
        producer_ids = ProducerIds(changes)
        transactions = TransactionCoordinator(
            coordinator_parts,
            offsets=groups,
            producer_ids=producer_ids,
            blocking_io=self._blocking_io,
            probe=probes.transactions,
        )
        groups.add_load_listener(transactions.completion.retry_now)
        self._state.transactions = transactions
        if config.get_bool("metrics.group.lag.enable"):
            self._state.committed_offsets = groups.offsets.committed
        tokens = token_lifetimes(config, self._clock.wall_ms)
        apis = ApiTable(
            HandlerContext(
                loop=loop,
                probes=probes,
                partitions=self._partitions,
                log_manager=log_manager,
                store=metadata,
                changes=changes,
                groups=groups,
                transactions=transactions,
                producer_ids=producer_ids,
                tokens=tokens,
                config=live,
                addresses=AdvertisedAddresses(metadata.node_id, config.advertised_listeners),
                flush_waits=self._flush_waits,
                blocking_io=self._blocking_io,
                clock=self._clock,
            )
        )
        handlers = apis.handlers
        if config.get_bool("read.only"):
            from barnabas.broker.read_only import refusing_handlers

            handlers = handlers | refusing_handlers()
        idle_ms = config.get_int("connections.max.idle.ms")
        connections = ConnectionRegistry(
            loop,
            Dispatcher(handlers, probes, loop),
            self._blocking_io,
            probes.connections,
            max_frame_bytes=config.get_int("socket.request.max.bytes"),
            quotas=ConnectionQuotas(live),
            max_idle_seconds=idle_ms / 1000 if idle_ms >= 0 else None,
            client_quotas=quotas,
            bind_access=None if authorizer is None else authorizer.bind,
        )
        listeners = ClientListeners(
            loop, live, connections, connection_rates, probes, self._failures, self._certificates
        )
        return _Services(storage, changes, groups, transactions, apis.fetch, connections, listeners, tokens)

    def _accept(self, services: _Services) -> None:
        """Start the background tasks, then accept clients."""
        storage = services.storage
        storage.log_manager.start_tasks()
        if storage.store is not None:
            storage.store.start_snapshots(storage.log_manager.scheduler)
        self._flush_waits.flusher.start()
        services.groups.start()
        services.transactions.start()
        if services.tokens is not None and storage.store is not None:
            sweep = TokenSweep(
                services.changes,
                self._clock.wall_ms,
                self._config.get_int("delegation.token.expiry.check.interval.ms"),
            )
            self._token_sweep = self._loop.create_task(sweep.run())
        self._loop_lag.start()
        services.connections.start()
        backlog = self._config.get_int("socket.listen.backlog.size")
        services.listeners.start(self._sockets, self._gates(services), backlog)
        self._certificates.start(storage.log_manager.scheduler)
        self._state.serve()

    def _gates(self, services: _Services) -> Mapping[str, Callable[[], Gate]]:
        """Return by listener what begins the authentication of a connection. Raises StartupError."""
        storage, connections, config = services.storage, services.connections, self._config
        names = [each.name for each in config.listeners if config.security_protocol(each.name).startswith("SASL_")]
        if not names:
            return {}
        from barnabas.broker.security.sasl.gates import begin_gates  # here: most brokers have no such listener

        return begin_gates(
            names,
            config=storage.config,
            metadata=storage.metadata,
            connections=connections,
            tokens=services.tokens,
            failures=self._failures,
            probes=self._probes,
            wall_ms=self._clock.wall_ms,
        )

    def _close_storage(self, storage: _Storage) -> bool:
        self._flush_waits.flusher.stop()
        return storage.log_manager.shutdown(NO_BROKER_EPOCH if storage.store is None else storage.store.broker_epoch)

    def _directory_failed(self, directory: Path, partitions: tuple[TopicPartition, ...]) -> None:
        """Wake requests that wait on the failed directory; stop the broker if the directory has the metadata log.

        Runs on a background thread. The logs of the directory are marked as offline by the log manager.
        """
        self._loop.call_soon_threadsafe(self._partitions.wake, partitions)
        if directory == self._config.metadata_log_dir:
            logger.error("stopping: the metadata log's directory has failed, directory=%s", directory)
            self._loop.call_soon_threadsafe(self.failed.set)

    async def _abandon(self) -> None:
        self._loop_lag.stop()
        self._flush_waits.flusher.stop()
        if self._services is not None:
            self._services.listeners.close()
        for opened in self._sockets:
            opened.close()
        if self._metrics is not None:
            self._metrics.close()
        if self._authorizer is not None:
            await self._blocking(self._authorizer.close)
        if self._state.log_manager is not None:
            await self._blocking(self._state.log_manager.shutdown)
        self._blocking_io.shutdown()

    async def _blocking(self, work: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._blocking_io, work)
