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
import logging
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from barnabas.broker.authorization.configured import configured_authorizer
from barnabas.broker.coordinator_log.parts import LogParts
from barnabas.broker.coordinators import Coordinators
from barnabas.broker.garbage import GarbageCollection
from barnabas.broker.handlers.api_table import ApiTable, HandlerContext
from barnabas.broker.image_applier import ImageApplier
from barnabas.broker.live_config import LiveConfig
from barnabas.broker.metadata.directories.examine import STANDBY_FILE
from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.mirrors.producer_ids import lowest_producer_id
from barnabas.broker.metadata.store import MetadataStore, open_metadata
from barnabas.broker.metadata_changes import MetadataChanges
from barnabas.broker.metrics.loop_lag import LoopLagTimer
from barnabas.broker.metrics.loop_stalls import LoopStallTimer
from barnabas.broker.metrics.server import MetricsServer, start_metrics_server
from barnabas.broker.metrics.state import BrokerState, Phase
from barnabas.broker.mirrors.broker_mirrors import BrokerMirrors
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
from barnabas.broker.security_applier import SecurityApplier
from barnabas.broker.startup_error import StartupError
from barnabas.broker.storage.files.clean_shutdown import NO_BROKER_EPOCH
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.log_manager import LogManager
from barnabas.broker.warm_up import DELAY_SECONDS, first_modules, import_modules, warm_up
from barnabas.config.listeners import METRICS, SSL
from barnabas.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from pathlib import Path

    from barnabas.broker.authorization.authorizer import Authorizer
    from barnabas.broker.client_metrics.manager import ClientMetrics
    from barnabas.broker.handlers.data.fetch import FetchHandler
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.metadata_changes import Committer
    from barnabas.broker.network.gating import Gate
    from barnabas.broker.security.tokens.lifetimes import TokenLifetimes
    from barnabas.broker.standby.active_side import ActiveSide
    from barnabas.broker.storage.log.readable_log import ReadableLog
    from barnabas.broker.storage.served_logs import ServedLogs
    from barnabas.broker.storage.services.clock import Clock
    from barnabas.config import BrokerConfig
    from barnabas.protocol.topic_partition import TopicPartition

T = TypeVar("T")

logger = logging.getLogger(__name__)

DRAIN_SECONDS: Final = 10.0
"""Time limit for connections to finish their current request when the broker stops."""

CODEC_THREADS: Final = 2
"""Number of threads that decode large requests and encode large responses: one such client does not delay another."""

BLOCKING_IO_THREADS: Final = 4
"""Number of threads that read cold segments and search by timestamp."""


class _Storage(NamedTuple):
    """The parts that exist once the log directories are open and all logs are loaded."""

    log_manager: ServedLogs[ReadableLog]
    metadata: MetadataView
    store: MetadataStore | None
    """None with read.only=true: nothing can change the metadata."""
    committer: Committer
    config: LiveConfig
    high_watermarks: Mapping[TopicPartition, int] | None
    """What consumers may read at first, if that is not everything."""


class _Services(NamedTuple):
    """The parts that serve clients."""

    storage: _Storage
    changes: MetadataChanges
    coordinators: Coordinators
    mirrors: BrokerMirrors
    fetch: FetchHandler
    connections: ConnectionRegistry
    listeners: ClientListeners
    tokens: TokenLifetimes | None
    """None: the broker has no delegation tokens."""


class Node:
    """One broker, which is started and stopped once."""

    def __init__(
        self,
        config: BrokerConfig,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        loaded: LogManager | None = None,
    ) -> None:
        """`loaded`: the logs of a standby that takes over in this process, which the node serves and closes."""
        self._config = config
        self._loaded = loaded
        self._loop = loop
        self._clock = clock
        self._probes = BrokerProbes()
        self._probes.start.began_ms = clock.wall_ms()
        self._state = BrokerState()
        self._state.log_manager = loaded
        self._partitions = PartitionRegistry()
        self._blocking_io = ThreadPoolExecutor(BLOCKING_IO_THREADS, "blocking-io")
        self._codec_threads = ThreadPoolExecutor(CODEC_THREADS, "codec")
        self._flush_waits = FlushWaits(loop)
        self._state.flusher = self._flush_waits.flusher
        self._failures = FailureLog(loop)
        self._certificates = self._state.certificates = Certificates()
        self._loop_lag = LoopLagTimer(loop, self._probes.loop_lag)
        self._loop_stalls = LoopStallTimer(loop, self._probes.loop_stalls)
        self._garbage = GarbageCollection(loop)
        self._sockets: list[socket.socket] = []
        self._metrics: MetricsServer | None = None
        self._services: _Services | None = None
        self._authorizer: Authorizer | None = None
        self._token_sweep: asyncio.Task[None] | None = None
        self.failed = asyncio.Event()
        """Set when the broker cannot continue: the log directory with the metadata log has failed."""
        self.retired = asyncio.Event()
        """Set when the broker has handed over to its standby, and must stop."""

    @property
    def port(self) -> int:
        """The port of the first listener."""
        port: int = self._sockets[0].getsockname()[1]
        return port

    @property
    def ports(self) -> dict[str, int]:
        """The ports by the listeners' names."""
        names = [listener.name for listener in self._config.listeners]
        return {name: opened.getsockname()[1] for name, opened in zip(names, self._sockets, strict=True)}

    @property
    def cluster_id(self) -> str:
        """The cluster id of a started broker."""
        assert self._services is not None
        return self._services.storage.metadata.cluster_id

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
            opening = self._loop.run_in_executor(self._blocking_io, self._open_storage)
            import_modules(first_modules())  # the thread waits for the disk meanwhile
            storage = await opening
            self._probes.start.loaded_ms = self._clock.wall_ms()
            services = self._assemble(storage)
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
        self._partitions.replication.fail(
            BrokerError(
                ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, "the broker stops before the standby has the records"
            )
        )
        services.coordinators.refuse_members()
        await services.connections.drain(DRAIN_SECONDS)
        self._loop_lag.stop()
        self._loop_stalls.stop()
        self._garbage.stop()
        if self._token_sweep is not None:
            self._token_sweep.cancel()
        await services.mirrors.stop()
        await services.coordinators.stop()
        await services.changes.close()
        if self._authorizer is not None:
            await self._blocking(self._authorizer.close)
        clean = await self._blocking(lambda: self._close_storage(services.storage))
        if self._metrics is not None:
            self._metrics.close()
        self._blocking_io.shutdown()
        self._codec_threads.shutdown(cancel_futures=True)
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
        """Open directories, metadata and logs."""
        config, clock = self._config, self._clock
        self._state.phase = Phase.LOADING
        self._garbage.suspend()
        try:
            if config.get_bool("read.only"):
                from barnabas.broker.read_only import ReadOnlyLogManager, RefusingCommitter, read_metadata

                read_only = ReadOnlyLogManager(config, clock=clock)
                self._open_directories(read_only)
                metadata = read_metadata(config)
                live = LiveConfig(config, metadata.node_id, metadata.image)
                read_only.load_logs(live.log_config, metadata.is_stray)
                storage = _Storage(read_only, metadata, None, RefusingCommitter(), live, None)
            else:
                loaded = self._loaded
                if loaded is None:
                    manager = LogManager(config, clock=clock, on_directory_failed=self._directory_failed)
                    self._open_directories(manager)
                else:
                    manager = loaded
                    manager.on_directory_failed = self._directory_failed
                    if config.metadata_log_dir not in manager.live_directories:  # it failed while nobody was told
                        raise StartupError(f"the log directory {config.metadata_log_dir} has failed: see the log above")
                takes_over = (config.metadata_log_dir / STANDBY_FILE).exists() and self._takes_over()
                store = open_metadata(config, manager, clock, takes_over=takes_over)
                if takes_over:
                    self._end_takeover()
                live = LiveConfig(config, store.node_id, store.image)
                if loaded is None:
                    manager.load_logs(live.log_config, store.is_stray, store.assign)
                else:
                    manager.change_owner(live.log_config, store.assign)
                store.reconcile(manager)
                # A standby that takes over serves all that it has: nobody else has more.
                waits = _requires_standby(live) and not takes_over
                first = self._first_high_watermarks(manager) if waits else None
                storage = _Storage(manager, store, store, store, live, first)
        finally:
            self._garbage.resume()
        return storage

    def _first_high_watermarks(self, manager: LogManager) -> Mapping[TopicPartition, int]:
        """Return what consumers may read before a standby has fetched. Raises OSError."""
        # Here: most brokers have no standby.
        from barnabas.broker.partitions.first_high_watermarks import read_high_watermarks

        return read_high_watermarks(manager.live_directories)

    def _takes_over(self) -> bool:
        """Return whether the directory is a standby's that takes over. Raises MetadataError for an unreadable file."""
        from barnabas.broker.metadata.directories.standby_state import Role, read_state  # here: few directories have it

        return read_state(self._config.metadata_log_dir).role is Role.PROMOTING

    def _end_takeover(self) -> None:
        """Note that all leader epochs are raised. Raises OSError."""
        from barnabas.broker.metadata.directories.standby_state import Role, read_state, write_state

        directory = self._config.metadata_log_dir
        write_state(directory, read_state(directory)._replace(role=Role.ACTIVE))

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
        self._state.partitions = self._partitions
        replication = self._state.replication = self._partitions.replication
        replication.begin_with(storage.high_watermarks)
        if storage.store is not None:
            self._configure_replication(live)

            def configured() -> None:
                loop.call_soon_threadsafe(self._configure_replication, live)

            live.follow(lambda _: None, configured)
        applier.serve_all()
        replication.begin_with(None)
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
        producer_ids = ProducerIds(changes, lambda: lowest_producer_id(metadata))
        coordinators = Coordinators(
            coordinator_parts,
            state=self._state,
            producer_ids=producer_ids,
            blocking_io=self._blocking_io,
            probes=probes,
        )
        mirrors = BrokerMirrors(
            metadata, changes, live, self._partitions, coordinators.group_offsets, self._blocking_io
        )
        applier.follow(mirrors.apply)
        self._state.mirrors = mirrors
        tokens = self._token_lifetimes()
        apis = ApiTable(
            HandlerContext(
                loop=loop,
                probes=probes,
                partitions=self._partitions,
                log_manager=log_manager,
                store=metadata,
                changes=changes,
                coordinators=coordinators,
                producer_ids=producer_ids,
                tokens=tokens,
                config=live,
                addresses=AdvertisedAddresses(metadata.node_id, config.advertised_listeners),
                flush_waits=self._flush_waits,
                blocking_io=self._blocking_io,
                clock=self._clock,
                mirrors=mirrors,
                active_side=lambda: self._active_side(storage, mirrors),
                make_client_metrics=lambda: self._client_metrics(metadata),
            )
        )
        handlers, frames = apis.handlers, apis.frames
        if config.get_bool("read.only"):
            from barnabas.broker.read_only import refusing_handlers

            handlers, frames = handlers | refusing_handlers(), None
        idle_ms = config.get_int("connections.max.idle.ms")
        connections = ConnectionRegistry(
            loop,
            Dispatcher(
                handlers,
                probes,
                loop,
                frames,
                self._codec_threads,
                serves_unstable=config.get_bool("unstable.api.versions.enable"),
            ),
            self._blocking_io,
            probes.connections,
            max_frame_bytes=config.get_int("socket.request.max.bytes"),
            receive_memory_bytes=config.get_int("queued.max.request.bytes"),
            quotas=ConnectionQuotas(live),
            max_idle_seconds=idle_ms / 1000 if idle_ms >= 0 else None,
            client_quotas=quotas,
            bind_access=None if authorizer is None else authorizer.bind,
        )
        listeners = ClientListeners(
            loop, live, connections, connection_rates, probes, self._failures, self._certificates
        )
        return _Services(storage, changes, coordinators, mirrors, apis.fetch, connections, listeners, tokens)

    def _configure_replication(self, live: LiveConfig) -> None:
        """Let the high watermarks wait for the standby, or not, as the configuration says."""
        lag_seconds = live.broker.get_int("replica.lag.time.max.ms") / 1000
        self._partitions.replication.configure(is_required=_requires_standby(live), lag_seconds=lag_seconds)

    def _token_lifetimes(self) -> TokenLifetimes | None:
        if not self._config.is_set("delegation.token.secret.key"):
            return None
        from barnabas.broker.security.tokens.lifetimes import token_lifetimes  # here: most brokers have no tokens

        return token_lifetimes(self._config, self._clock.wall_ms)

    def _client_metrics(self, metadata: MetadataView) -> ClientMetrics:
        found = self._state.client_metrics
        if found is None:
            from barnabas.broker.client_metrics.manager import ClientMetrics  # here: most brokers have none

            found = self._state.client_metrics = ClientMetrics(
                lambda: metadata.image.configs, self._clock.monotonic, self._config.get_int("telemetry.max.bytes")
            )
        return found

    def _active_side(self, storage: _Storage, mirrors: BrokerMirrors) -> ActiveSide | None:
        if storage.store is None:
            return None
        from barnabas.broker.standby.active_side import ActiveSide  # here: most brokers have no standby

        directory = self._config.metadata_log_dir
        return ActiveSide(storage.store, self._partitions, directory, self._blocking_io, mirrors, self.retired.set)

    def _accept(self, services: _Services) -> None:
        """Start the background tasks, then accept clients."""
        storage = services.storage
        storage.log_manager.start_tasks()
        if storage.store is not None:
            storage.store.start_snapshots(storage.log_manager.scheduler)
            services.changes.start()
        self._flush_waits.flusher.start()
        services.coordinators.start()
        if isinstance(storage.log_manager, LogManager):
            services.mirrors.start(storage.log_manager)
        if services.tokens is not None and storage.store is not None:
            from barnabas.broker.security.tokens.sweep import TokenSweep  # here: most brokers have no tokens

            sweep = TokenSweep(
                services.changes,
                self._clock.wall_ms,
                self._config.get_int("delegation.token.expiry.check.interval.ms"),
            )
            self._token_sweep = self._loop.create_task(sweep.run())
        self._loop_lag.start()
        self._loop_stalls.start()
        self._garbage.start()
        services.connections.start()
        backlog = self._config.get_int("socket.listen.backlog.size")
        services.listeners.start(self._sockets, self._gates(services), backlog)
        self._certificates.start(storage.log_manager.scheduler)
        self._state.serve()
        self._probes.start.ready_ms = self._clock.wall_ms()
        self._loop.call_later(DELAY_SECONDS, self._warm_up)

    def _warm_up(self) -> None:
        if self._state.phase is Phase.SERVING:
            self._loop.run_in_executor(self._blocking_io, warm_up)

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
        self._loop_stalls.stop()
        self._garbage.stop()
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
        self._codec_threads.shutdown(cancel_futures=True)

    async def _blocking(self, work: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._blocking_io, work)


def _requires_standby(live: LiveConfig) -> bool:
    return live.broker.get_int("standby.min.acks") > 0
