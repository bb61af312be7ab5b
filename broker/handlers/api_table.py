"""Which handler serves which API: the one table that dispatch reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.api_versions import ApiVersionsHandler
from barnabas.broker.handlers.configs import AlterConfigsHandler, DescribeConfigsHandler
from barnabas.broker.handlers.delete_records import DeleteRecordsHandler
from barnabas.broker.handlers.describe_cluster import DescribeClusterHandler
from barnabas.broker.handlers.describe_groups import DescribeGroupsHandler
from barnabas.broker.handlers.describe_producers import DescribeProducersHandler
from barnabas.broker.handlers.describe_topic_partitions import DescribeTopicPartitionsHandler
from barnabas.broker.handlers.fetch import FetchHandler
from barnabas.broker.handlers.find_coordinator import FindCoordinatorHandler
from barnabas.broker.handlers.groups import DeleteGroupsHandler, ListGroupsHandler, OffsetDeleteHandler
from barnabas.broker.handlers.heartbeat import HeartbeatHandler
from barnabas.broker.handlers.init_producer_id import InitProducerIdHandler
from barnabas.broker.handlers.join_group import JoinGroupHandler
from barnabas.broker.handlers.leave_group import LeaveGroupHandler
from barnabas.broker.handlers.list_config_resources import ListConfigResourcesHandler
from barnabas.broker.handlers.list_offsets import ListOffsetsHandler
from barnabas.broker.handlers.log_dirs import AlterReplicaLogDirsHandler, DescribeLogDirsHandler
from barnabas.broker.handlers.metadata import MetadataHandler
from barnabas.broker.handlers.offset_commit import OffsetCommitHandler
from barnabas.broker.handlers.offset_fetch import OffsetFetchHandler
from barnabas.broker.handlers.offset_for_leader_epoch import OffsetForLeaderEpochHandler
from barnabas.broker.handlers.produce import ProduceHandler
from barnabas.broker.handlers.sync_group import SyncGroupHandler
from barnabas.broker.handlers.topics import CreatePartitionsHandler, CreateTopicsHandler, DeleteTopicsHandler
from barnabas.broker.producer_ids import ProducerIds
from barnabas.protocol.messages.api_key import ApiKey

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Executor

    from barnabas.broker.advertised import AdvertisedAddresses
    from barnabas.broker.dispatch import Handler
    from barnabas.broker.flush_waits import FlushWaits
    from barnabas.broker.groups.coordinator import GroupCoordinator
    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.store import MetadataStore
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.metrics.probes import ApiProbe, BrokerProbes
    from barnabas.broker.partition_registry import PartitionRegistry
    from barnabas.broker.storage.log_manager import LogManager


class ApiTable:
    """Makes the handlers from what they need."""

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        probes: BrokerProbes,
        partitions: PartitionRegistry,
        log_manager: LogManager,
        store: MetadataStore,
        changes: MetadataChanges,
        groups: GroupCoordinator,
        config: LiveConfig,
        addresses: AdvertisedAddresses,
        flush_waits: FlushWaits,
        blocking_io: Executor,
    ) -> None:
        def probe(api: ApiKey) -> ApiProbe:
            return probes.api(api.label)

        def topic_name(topic_id: bytes) -> str | None:
            return store.image.names.get(topic_id)

        static = config.static
        self.fetch = FetchHandler(
            partitions, probes, loop, blocking_io, static.get_int("fetch.max.bytes"), topic_name, store.node_id
        )
        self.handlers: dict[ApiKey, Handler] = {
            ApiKey.PRODUCE: ProduceHandler(partitions, topic_name, flush_waits, probe(ApiKey.PRODUCE)),
            ApiKey.FETCH: self.fetch,
            ApiKey.LIST_OFFSETS: ListOffsetsHandler(partitions, blocking_io, probe(ApiKey.LIST_OFFSETS)),
            ApiKey.METADATA: MetadataHandler(store, partitions, addresses, changes, config),
            ApiKey.API_VERSIONS: ApiVersionsHandler(store, static.get_int("socket.request.max.bytes")),
            ApiKey.OFFSET_COMMIT: OffsetCommitHandler(groups.offsets, probe(ApiKey.OFFSET_COMMIT)),
            ApiKey.OFFSET_FETCH: OffsetFetchHandler(groups.offsets, groups.log, store, probe(ApiKey.OFFSET_FETCH)),
            ApiKey.FIND_COORDINATOR: FindCoordinatorHandler(addresses, probe(ApiKey.FIND_COORDINATOR)),
            ApiKey.JOIN_GROUP: JoinGroupHandler(groups.members),
            ApiKey.HEARTBEAT: HeartbeatHandler(groups.members, probe(ApiKey.HEARTBEAT)),
            ApiKey.LEAVE_GROUP: LeaveGroupHandler(groups.members, probe(ApiKey.LEAVE_GROUP)),
            ApiKey.SYNC_GROUP: SyncGroupHandler(groups.members),
            ApiKey.DESCRIBE_GROUPS: DescribeGroupsHandler(
                groups.members, groups.offsets.committed.__contains__, probe(ApiKey.DESCRIBE_GROUPS)
            ),
            ApiKey.LIST_GROUPS: ListGroupsHandler(groups.offsets),
            ApiKey.DELETE_GROUPS: DeleteGroupsHandler(groups.offsets, probe(ApiKey.DELETE_GROUPS)),
            ApiKey.OFFSET_DELETE: OffsetDeleteHandler(groups.offsets, store, probe(ApiKey.OFFSET_DELETE)),
            ApiKey.DELETE_RECORDS: DeleteRecordsHandler(partitions, probe(ApiKey.DELETE_RECORDS)),
            ApiKey.INIT_PRODUCER_ID: InitProducerIdHandler(ProducerIds(changes)),
            ApiKey.OFFSET_FOR_LEADER_EPOCH: OffsetForLeaderEpochHandler(
                partitions, probe(ApiKey.OFFSET_FOR_LEADER_EPOCH)
            ),
            ApiKey.CREATE_TOPICS: CreateTopicsHandler(changes, config, probe(ApiKey.CREATE_TOPICS)),
            ApiKey.DELETE_TOPICS: DeleteTopicsHandler(changes, probe(ApiKey.DELETE_TOPICS)),
            ApiKey.CREATE_PARTITIONS: CreatePartitionsHandler(changes, probe(ApiKey.CREATE_PARTITIONS)),
            ApiKey.DESCRIBE_CONFIGS: DescribeConfigsHandler(store, config, probe(ApiKey.DESCRIBE_CONFIGS)),
            ApiKey.ALTER_CONFIGS: AlterConfigsHandler(changes, probe(ApiKey.ALTER_CONFIGS)),
            ApiKey.INCREMENTAL_ALTER_CONFIGS: AlterConfigsHandler(changes, probe(ApiKey.INCREMENTAL_ALTER_CONFIGS)),
            ApiKey.DESCRIBE_CLUSTER: DescribeClusterHandler(store, addresses),
            ApiKey.DESCRIBE_PRODUCERS: DescribeProducersHandler(partitions, probe(ApiKey.DESCRIBE_PRODUCERS)),
            ApiKey.LIST_CONFIG_RESOURCES: ListConfigResourcesHandler(store),
            ApiKey.DESCRIBE_TOPIC_PARTITIONS: DescribeTopicPartitionsHandler(store, partitions),
            ApiKey.ALTER_REPLICA_LOG_DIRS: AlterReplicaLogDirsHandler(
                log_manager, partitions, blocking_io, probe(ApiKey.ALTER_REPLICA_LOG_DIRS)
            ),
            ApiKey.DESCRIBE_LOG_DIRS: DescribeLogDirsHandler(log_manager, blocking_io, probe(ApiKey.DESCRIBE_LOG_DIRS)),
        }
