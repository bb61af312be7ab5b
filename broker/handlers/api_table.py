"""Which handler serves which API: the table that dispatch reads.

Produce and Fetch are created at start. The module of every other handler is imported, and the handler created, at the
API's first request: they are a third of what a start would import, and most brokers never use most of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.broker.handlers.data.fetch import FetchHandler
from barnabas.broker.handlers.data.fetch_contexts import FetchContexts
from barnabas.broker.handlers.data.fetch_session_cache import FetchSessionCache
from barnabas.broker.handlers.data.kernels.kernels import frame_kernels
from barnabas.broker.handlers.data.produce import ProduceHandler
from barnabas.protocol.messages.api_key import ApiKey

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from concurrent.futures import Executor

    from barnabas.broker.client_metrics.manager import ClientMetrics
    from barnabas.broker.coordinators import Coordinators
    from barnabas.broker.groups.coordinator import GroupCoordinator
    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.mirrors.status import MirrorStatuses
    from barnabas.broker.network.advertised import AdvertisedAddresses
    from barnabas.broker.network.dispatch import Handler, Outcome
    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.flush_waits import FlushWaits
    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.broker.probes import ApiProbe, BrokerProbes
    from barnabas.broker.producer_ids import ProducerIds
    from barnabas.broker.security.tokens.lifetimes import TokenLifetimes
    from barnabas.broker.standby.active_side import ActiveSide
    from barnabas.broker.storage.log.readable_log import ReadableLog
    from barnabas.broker.storage.served_logs import ServedLogs
    from barnabas.broker.storage.services.clock import Clock
    from barnabas.broker.transactions.coordinator import TransactionCoordinator


class HandlerContext(NamedTuple):
    """The parts of the broker that handlers are created from."""

    loop: asyncio.AbstractEventLoop
    probes: BrokerProbes
    partitions: PartitionRegistry
    log_manager: ServedLogs[ReadableLog]
    store: MetadataView
    changes: MetadataChanges
    coordinators: Coordinators
    producer_ids: ProducerIds
    tokens: TokenLifetimes | None
    """None: no delegation tokens, because delegation.token.secret.key is not set."""
    config: LiveConfig
    addresses: AdvertisedAddresses
    flush_waits: FlushWaits
    blocking_io: Executor
    clock: Clock
    mirrors: MirrorStatuses
    active_side: Callable[[], ActiveSide | None]
    """Creates what a standby needs, once; returns None with read.only=true."""

    make_client_metrics: Callable[[], ClientMetrics]
    """Creates the clients' metrics, once."""

    @property
    def client_metrics(self) -> ClientMetrics:
        """The metrics that clients push, created at their first use."""
        return self.make_client_metrics()

    @property
    def has_client_metrics(self) -> bool:
        """Whether ApiVersions lists the APIs of client metrics."""
        return self.config.static.get_bool("client.metrics.enable")

    @property
    def lists_unstable(self) -> bool:
        """Whether ApiVersions lists versions that Kafka holds back as unstable."""
        return self.config.static.get_bool("unstable.api.versions.enable")

    @property
    def groups(self) -> GroupCoordinator:
        """The group coordinator, created at its first use."""
        return self.coordinators.groups

    @property
    def transactions(self) -> TransactionCoordinator:
        """The transaction coordinator, created at its first use."""
        return self.coordinators.transactions

    def probe(self, api: ApiKey) -> ApiProbe:
        """Return the counters of one API."""
        return self.probes.api(api.label)

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of a topic, None where no topic has the id."""
        return self.store.image.names.get(topic_id)

    @property
    def fetch_max_bytes(self) -> int:
        """Most bytes of records in one answer."""
        return self.config.static.get_int("fetch.max.bytes")

    @property
    def max_frame_bytes(self) -> int:
        """Size of the largest request that a connection accepts."""
        return self.config.static.get_int("socket.request.max.bytes")


class _Row(NamedTuple):
    """One API and its handler."""

    api: ApiKey
    where: str
    """Module in this folder, a colon, and the handler's class."""
    arguments: str | None
    """What the class is created with: attributes of HandlerContext, or `probe`, the API's counters.

    None: `where` names a function, which is the handler itself."""


_ROWS: Final[Sequence[_Row]] = (
    _Row(ApiKey.LIST_OFFSETS, "data.list_offsets:ListOffsetsHandler", "partitions, blocking_io, probe"),
    _Row(ApiKey.METADATA, "topics.metadata:MetadataHandler", "store, partitions, addresses, changes, config"),
    _Row(
        ApiKey.API_VERSIONS,
        "cluster.api_versions:ApiVersionsHandler",
        "store, coordinators.has_consumer_protocol, max_frame_bytes, has_client_metrics, lists_unstable",
    ),
    _Row(ApiKey.OFFSET_COMMIT, "groups.offset_commit:OffsetCommitHandler", "groups.offsets, store, probe"),
    _Row(
        ApiKey.OFFSET_FETCH,
        "groups.offset_fetch:OffsetFetchHandler",
        "groups.offsets, groups.registry, groups.log, store, probe",
    ),
    _Row(ApiKey.FIND_COORDINATOR, "groups.find_coordinator:FindCoordinatorHandler", "coordinators, addresses, probe"),
    _Row(ApiKey.JOIN_GROUP, "groups.join_group:JoinGroupHandler", "groups.members"),
    _Row(ApiKey.HEARTBEAT, "groups.heartbeat:HeartbeatHandler", "groups.members, probe"),
    _Row(ApiKey.LEAVE_GROUP, "groups.leave_group:LeaveGroupHandler", "groups.members, probe"),
    _Row(ApiKey.SYNC_GROUP, "groups.sync_group:SyncGroupHandler", "groups.members"),
    _Row(
        ApiKey.DESCRIBE_GROUPS,
        "groups.describe_groups:DescribeGroupsHandler",
        "groups.members, groups.offsets.__contains__, probe",
    ),
    _Row(
        ApiKey.DESCRIBE_TRANSACTIONS,
        "transactions.describe_transactions:DescribeTransactionsHandler",
        "transactions.log, probe",
    ),
    _Row(ApiKey.LIST_TRANSACTIONS, "transactions.list_transactions:ListTransactionsHandler", "transactions.log, clock"),
    _Row(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        "groups.consumer_group_heartbeat:ConsumerGroupHeartbeatHandler",
        "groups.consumer, probe",
    ),
    _Row(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        "groups.consumer_group_describe:ConsumerGroupDescribeHandler",
        "groups.consumer, store, probe",
    ),
    _Row(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        "groups.share_group_heartbeat:ShareGroupHeartbeatHandler",
        "groups.share, store, probe",
    ),
    _Row(
        ApiKey.SHARE_GROUP_DESCRIBE,
        "groups.share_group_describe:ShareGroupDescribeHandler",
        "groups.share, store, probe",
    ),
    _Row(
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        "groups.share_group_offsets:DescribeShareGroupOffsetsHandler",
        "groups.share, partitions, store, probe",
    ),
    _Row(
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        "groups.share_group_offsets:AlterShareGroupOffsetsHandler",
        "groups.share, store, probe",
    ),
    _Row(
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        "groups.share_group_offsets:DeleteShareGroupOffsetsHandler",
        "groups.share, store, probe",
    ),
    _Row(
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        "groups.streams_group_heartbeat:StreamsGroupHeartbeatHandler",
        "groups.streams, changes, probe",
    ),
    _Row(
        ApiKey.STREAMS_GROUP_DESCRIBE,
        "groups.streams_group_describe:StreamsGroupDescribeHandler",
        "groups.streams, probe",
    ),
    _Row(ApiKey.DESCRIBE_ACLS, "security.acls:DescribeAclsHandler", "store"),
    _Row(ApiKey.CREATE_ACLS, "security.acls:CreateAclsHandler", "changes, probe"),
    _Row(ApiKey.DELETE_ACLS, "security.acls:DeleteAclsHandler", "changes, probe"),
    _Row(
        ApiKey.ALTER_CLIENT_QUOTAS,
        "security.alter_client_quotas:AlterClientQuotasHandler",
        "changes, loop, blocking_io, probe",
    ),
    _Row(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        "security.alter_user_scram_credentials:AlterUserScramCredentialsHandler",
        "changes, probe",
    ),
    _Row(
        ApiKey.CREATE_DELEGATION_TOKEN,
        "security.delegation_tokens:CreateDelegationTokenHandler",
        "tokens, changes, probe",
    ),
    _Row(ApiKey.RENEW_DELEGATION_TOKEN, "security.delegation_tokens:renew_handler", "tokens, changes, probe"),
    _Row(ApiKey.EXPIRE_DELEGATION_TOKEN, "security.delegation_tokens:expire_handler", "tokens, changes, probe"),
    _Row(
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        "security.delegation_tokens:DescribeDelegationTokenHandler",
        "tokens, store, probe",
    ),
    _Row(ApiKey.SASL_HANDSHAKE, "security.sasl:sasl_handshake", None),
    _Row(ApiKey.SASL_AUTHENTICATE, "security.sasl:sasl_authenticate", None),
    _Row(ApiKey.LIST_GROUPS, "groups.groups:ListGroupsHandler", "groups.offsets"),
    _Row(ApiKey.DELETE_GROUPS, "groups.groups:DeleteGroupsHandler", "groups.delete_group, probe"),
    _Row(ApiKey.OFFSET_DELETE, "groups.groups:OffsetDeleteHandler", "groups.offsets, groups.registry, store, probe"),
    _Row(ApiKey.DELETE_RECORDS, "data.delete_records:DeleteRecordsHandler", "partitions, probe, loop"),
    _Row(ApiKey.INIT_PRODUCER_ID, "data.init_producer_id:InitProducerIdHandler", "producer_ids, transactions, probe"),
    _Row(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        "transactions.add_partitions_to_txn:AddPartitionsToTxnHandler",
        "transactions, store, probe",
    ),
    _Row(
        ApiKey.ADD_OFFSETS_TO_TXN,
        "transactions.add_offsets_to_txn:AddOffsetsToTxnHandler",
        "transactions, groups.offsets_partition_of, probe",
    ),
    _Row(ApiKey.END_TXN, "transactions.end_txn:EndTxnHandler", "transactions, probe"),
    _Row(
        ApiKey.WRITE_TXN_MARKERS, "transactions.write_txn_markers:WriteTxnMarkersHandler", "transactions.markers, probe"
    ),
    _Row(
        ApiKey.TXN_OFFSET_COMMIT,
        "transactions.txn_offset_commit:TxnOffsetCommitHandler",
        "groups, transactions, store, probe",
    ),
    _Row(
        ApiKey.OFFSET_FOR_LEADER_EPOCH, "data.offset_for_leader_epoch:OffsetForLeaderEpochHandler", "partitions, probe"
    ),
    _Row(ApiKey.CREATE_TOPICS, "topics.topics:CreateTopicsHandler", "changes, config, probe"),
    _Row(ApiKey.DELETE_TOPICS, "topics.topics:DeleteTopicsHandler", "changes, store, config, probe"),
    _Row(ApiKey.CREATE_PARTITIONS, "topics.topics:CreatePartitionsHandler", "changes, probe"),
    _Row(ApiKey.DESCRIBE_CONFIGS, "cluster.configs:DescribeConfigsHandler", "store, config, probe"),
    _Row(ApiKey.ALTER_CONFIGS, "cluster.configs:AlterConfigsHandler", "changes, store.node_id, probe"),
    _Row(ApiKey.ELECT_LEADERS, "topics.elect_leaders:ElectLeadersHandler", "store, partitions, probe"),
    _Row(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        "topics.alter_partition_reassignments:AlterPartitionReassignmentsHandler",
        "store, probe",
    ),
    _Row(ApiKey.LIST_PARTITION_REASSIGNMENTS, "topics.list_partition_reassignments:list_partition_reassignments", None),
    _Row(ApiKey.DESCRIBE_CLIENT_QUOTAS, "cluster.describe_client_quotas:DescribeClientQuotasHandler", "store"),
    _Row(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        "cluster.describe_user_scram_credentials:DescribeUserScramCredentialsHandler",
        "store",
    ),
    _Row(ApiKey.DESCRIBE_QUORUM, "cluster.describe_quorum:DescribeQuorumHandler", "store, addresses, clock"),
    _Row(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        "cluster.configs:IncrementalAlterConfigsHandler",
        "changes, store.node_id, probe",
    ),
    _Row(
        ApiKey.UPDATE_FEATURES,
        "cluster.update_features:UpdateFeaturesHandler",
        "changes, coordinators.has_consumer_protocol",
    ),
    _Row(ApiKey.DESCRIBE_CLUSTER, "cluster.describe_cluster:DescribeClusterHandler", "store, addresses"),
    _Row(ApiKey.DESCRIBE_PRODUCERS, "data.describe_producers:DescribeProducersHandler", "partitions, probe"),
    _Row(
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        "cluster.client_telemetry:GetTelemetrySubscriptionsHandler",
        "client_metrics",
    ),
    _Row(
        ApiKey.PUSH_TELEMETRY,
        "cluster.client_telemetry:PushTelemetryHandler",
        "client_metrics, blocking_io, probe",
    ),
    _Row(ApiKey.LIST_CONFIG_RESOURCES, "cluster.list_config_resources:ListConfigResourcesHandler", "store"),
    _Row(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        "topics.describe_topic_partitions:DescribeTopicPartitionsHandler",
        "store, partitions",
    ),
    _Row(
        ApiKey.SHARE_FETCH,
        "share.share_fetch:ShareFetchHandler",
        "coordinators.share_partitions, store, loop, fetch_max_bytes, probe",
    ),
    _Row(
        ApiKey.SHARE_ACKNOWLEDGE,
        "share.share_acknowledge:ShareAcknowledgeHandler",
        "coordinators.share_partitions, store, probe",
    ),
    _Row(ApiKey.INITIALIZE_SHARE_GROUP_STATE, "share.group_state:initialize_handler", "coordinators.share, probe"),
    _Row(ApiKey.READ_SHARE_GROUP_STATE, "share.group_state:read_handler", "coordinators.share, probe"),
    _Row(ApiKey.WRITE_SHARE_GROUP_STATE, "share.group_state:write_handler", "coordinators.share, probe"),
    _Row(ApiKey.DELETE_SHARE_GROUP_STATE, "share.group_state:delete_handler", "coordinators.share, probe"),
    _Row(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, "share.group_state:summary_handler", "coordinators.share, probe"),
    _Row(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        "topics.log_dirs:AlterReplicaLogDirsHandler",
        "log_manager, partitions, blocking_io, probe, loop",
    ),
    _Row(ApiKey.MIRRORS, "cluster.mirrors:MirrorsHandler", "store, changes, partitions, mirrors, probe"),
    _Row(
        ApiKey.EXPLAIN_GROUP,
        "groups.explain_group:ExplainGroupHandler",
        "groups, partitions, store, log_manager, blocking_io, clock, probe",
    ),
    _Row(
        ApiKey.EXPLAIN_TOPIC,
        "topics.explain_topic:ExplainTopicHandler",
        "store, partitions, log_manager, config, blocking_io, clock, probe",
    ),
    _Row(
        ApiKey.EXPLAIN_START,
        "cluster.explain_start:ExplainStartHandler",
        "log_manager, probes, clock, has_client_metrics, make_client_metrics, probe",
    ),
    _Row(ApiKey.STANDBY, "cluster.standby:StandbyHandler", "active_side, probe"),
    _Row(ApiKey.DESCRIBE_LOG_DIRS, "topics.log_dirs:DescribeLogDirsHandler", "log_manager, blocking_io, probe"),
    _Row(ApiKey.CLEANING, "topics.log_dirs:CleaningHandler", "log_manager, blocking_io"),
)
"""All APIs but Produce and Fetch."""


class ApiTable:
    """`handlers` of all APIs, `frames`, which serves plain requests, and `fetch`, whose long polls the stop ends."""

    def __init__(self, context: HandlerContext) -> None:
        sessions = FetchSessionCache(
            context.config.static.get_int("max.incremental.fetch.session.cache.slots"),
            context.clock.monotonic,
            context.probes.fetch_sessions,
        )
        self.fetch = FetchHandler(
            context.partitions,
            context.probes,
            context.loop,
            context.blocking_io,
            context.config.static.get_int("fetch.max.bytes"),
            context.topic_name,
            context.store.node_id,
            FetchContexts(sessions, context.partitions, context.topic_name, context.clock.monotonic),
        )
        produce = ProduceHandler(
            context.partitions,
            context.topic_name,
            context.flush_waits,
            context.coordinators,
            context.probe(ApiKey.PRODUCE),
            context.loop,
            context.blocking_io,
        )
        self.frames = frame_kernels(
            produce, self.fetch, context.partitions, context.clock, context.probes, context.loop
        )
        self.handlers: dict[ApiKey, Handler] = {
            ApiKey.PRODUCE: produce,
            ApiKey.FETCH: self.fetch,
            **{row.api: _LateHandler(row, context) for row in _ROWS},
        }


def handler_modules() -> dict[ApiKey, str]:
    """Return the full names of the modules that are imported at the first request of their API."""
    return {row.api: _module_of(row) for row in _ROWS}


def _module_of(row: _Row) -> str:
    return f"barnabas.broker.handlers.{row.where.partition(':')[0]}"


class _LateHandler:
    """A handler that is imported and created at its first request."""

    __slots__ = ("_context", "_handler", "_row")

    def __init__(self, row: _Row, context: HandlerContext) -> None:
        self._row = row
        self._context = context
        self._handler: Handler | None = None

    def __call__(self, session: Session, request: Any) -> Outcome:
        handler = self._handler
        if handler is None:
            handler = self._handler = self._create()
        return handler(session, request)

    def _create(self) -> Handler:
        row, context = self._row, self._context
        found: Any = getattr(import_module(_module_of(row)), row.where.partition(":")[2])
        if row.arguments is not None:
            paths = row.arguments.split(", ")
            found = found(*[context.probe(row.api) if path == "probe" else attrgetter(path)(context) for path in paths])
        handler: Handler = found
        return handler
