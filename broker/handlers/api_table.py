"""Which handler serves which API: the one table that dispatch reads.

Produce and Fetch are made at the start. The others are made, and their modules loaded, when their first request comes:
that is a third of what a start would have to import, and most brokers are never asked for most of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.handlers.data.fetch import FetchHandler
from barnabas.broker.handlers.data.produce import ProduceHandler
from barnabas.protocol.messages.api_key import ApiKey

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Executor

    from barnabas.broker.groups.coordinator import GroupCoordinator
    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.network.advertised import AdvertisedAddresses
    from barnabas.broker.network.dispatch import Handler, Outcome
    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.flush_waits import FlushWaits
    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.broker.probes import ApiProbe, BrokerProbes
    from barnabas.broker.storage.log.readable_log import ReadableLog
    from barnabas.broker.storage.served_logs import ServedLogs


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiNeeds:
    """What handlers are made from."""

    loop: asyncio.AbstractEventLoop
    probes: BrokerProbes
    partitions: PartitionRegistry
    log_manager: ServedLogs[ReadableLog]
    store: MetadataView
    changes: MetadataChanges
    groups: GroupCoordinator
    config: LiveConfig
    addresses: AdvertisedAddresses
    flush_waits: FlushWaits
    blocking_io: Executor

    def probe(self, api: ApiKey) -> ApiProbe:
        """The counters of one API."""
        return self.probes.api(api.label)

    def topic_name(self, topic_id: bytes) -> str | None:
        """The topic's name, None where there is none with that id."""
        return self.store.image.names.get(topic_id)


class ApiTable:
    """`handlers` of all APIs, and `fetch`, which has to be told when the broker stops."""

    def __init__(self, needs: ApiNeeds) -> None:
        self.fetch = FetchHandler(
            needs.partitions,
            needs.probes,
            needs.loop,
            needs.blocking_io,
            needs.config.static.get_int("fetch.max.bytes"),
            needs.topic_name,
            needs.store.node_id,
        )
        self.handlers: dict[ApiKey, Handler] = {
            ApiKey.PRODUCE: ProduceHandler(
                needs.partitions, needs.topic_name, needs.flush_waits, needs.probe(ApiKey.PRODUCE)
            ),
            ApiKey.FETCH: self.fetch,
            **{api: _LateHandler(make, needs) for api, make in _MAKERS.items()},
        }


class _LateHandler:
    """A handler that its first request makes."""

    __slots__ = ("_handler", "_make", "_needs")

    def __init__(self, make: Callable[[ApiNeeds], Handler], needs: ApiNeeds) -> None:
        self._make = make
        self._needs = needs
        self._handler: Handler | None = None

    def __call__(self, session: Session, request: Any) -> Outcome:
        handler = self._handler
        if handler is None:
            handler = self._handler = self._make(self._needs)
        return handler(session, request)


_Maker = Callable[["ApiNeeds"], "Handler"]

_MAKERS: Final[dict[ApiKey, _Maker]] = {}


def _serves(api: ApiKey) -> Callable[[_Maker], _Maker]:
    def register(make: _Maker) -> _Maker:
        _MAKERS[api] = make
        return make

    return register


@_serves(ApiKey.LIST_OFFSETS)
def _list_offsets(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.data.list_offsets import ListOffsetsHandler

    return ListOffsetsHandler(needs.partitions, needs.blocking_io, needs.probe(ApiKey.LIST_OFFSETS))


@_serves(ApiKey.METADATA)
def _metadata(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.topics.metadata import MetadataHandler

    return MetadataHandler(needs.store, needs.partitions, needs.addresses, needs.changes, needs.config)


@_serves(ApiKey.API_VERSIONS)
def _api_versions(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.cluster.api_versions import ApiVersionsHandler

    max_frame_bytes = needs.config.static.get_int("socket.request.max.bytes")
    return ApiVersionsHandler(needs.store, needs.groups.has_consumer_protocol, max_frame_bytes)


@_serves(ApiKey.OFFSET_COMMIT)
def _offset_commit(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.groups.offset_commit import OffsetCommitHandler

    return OffsetCommitHandler(needs.groups.offsets, needs.probe(ApiKey.OFFSET_COMMIT))


@_serves(ApiKey.OFFSET_FETCH)
def _offset_fetch(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.groups.offset_fetch import OffsetFetchHandler

    return OffsetFetchHandler(
        needs.groups.offsets.committed,
        needs.groups.registry,
        needs.groups.log,
        needs.store,
        needs.probe(ApiKey.OFFSET_FETCH),
    )


@_serves(ApiKey.FIND_COORDINATOR)
def _find_coordinator(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.groups.find_coordinator import FindCoordinatorHandler

    return FindCoordinatorHandler(needs.addresses, needs.probe(ApiKey.FIND_COORDINATOR))


@_serves(ApiKey.JOIN_GROUP)
def _join_group(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.groups.join_group import JoinGroupHandler

    return JoinGroupHandler(needs.groups.members)


@_serves(ApiKey.HEARTBEAT)
def _heartbeat(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.groups.heartbeat import HeartbeatHandler

    return HeartbeatHandler(needs.groups.members, needs.probe(ApiKey.HEARTBEAT))


@_serves(ApiKey.LEAVE_GROUP)
def _leave_group(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.groups.leave_group import LeaveGroupHandler

    return LeaveGroupHandler(needs.groups.members, needs.probe(ApiKey.LEAVE_GROUP))


@_serves(ApiKey.SYNC_GROUP)
def _sync_group(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.groups.sync_group import SyncGroupHandler

    return SyncGroupHandler(needs.groups.members)


@_serves(ApiKey.DESCRIBE_GROUPS)
def _describe_groups(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.groups.describe_groups import DescribeGroupsHandler

    return DescribeGroupsHandler(
        needs.groups.members, needs.groups.offsets.committed.__contains__, needs.probe(ApiKey.DESCRIBE_GROUPS)
    )


@_serves(ApiKey.CONSUMER_GROUP_HEARTBEAT)
def _consumer_group_heartbeat(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatHandler

    return ConsumerGroupHeartbeatHandler(needs.groups.consumer, needs.probe(ApiKey.CONSUMER_GROUP_HEARTBEAT))


@_serves(ApiKey.CONSUMER_GROUP_DESCRIBE)
def _consumer_group_describe(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.groups.consumer_group_describe import ConsumerGroupDescribeHandler

    probe = needs.probe(ApiKey.CONSUMER_GROUP_DESCRIBE)
    return ConsumerGroupDescribeHandler(needs.groups.consumer, needs.store, probe)


@_serves(ApiKey.LIST_GROUPS)
def _list_groups(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.groups.groups import ListGroupsHandler

    return ListGroupsHandler(needs.groups.offsets)


@_serves(ApiKey.DELETE_GROUPS)
def _delete_groups(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.groups.groups import DeleteGroupsHandler

    return DeleteGroupsHandler(needs.groups.offsets, needs.probe(ApiKey.DELETE_GROUPS))


@_serves(ApiKey.OFFSET_DELETE)
def _offset_delete(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.groups.groups import OffsetDeleteHandler

    return OffsetDeleteHandler(
        needs.groups.offsets, needs.groups.registry, needs.store, needs.probe(ApiKey.OFFSET_DELETE)
    )


@_serves(ApiKey.DELETE_RECORDS)
def _delete_records(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.data.delete_records import DeleteRecordsHandler

    return DeleteRecordsHandler(needs.partitions, needs.probe(ApiKey.DELETE_RECORDS))


@_serves(ApiKey.INIT_PRODUCER_ID)
def _init_producer_id(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.data.init_producer_id import InitProducerIdHandler
    from barnabas.broker.producer_ids import ProducerIds

    return InitProducerIdHandler(ProducerIds(needs.changes))


@_serves(ApiKey.OFFSET_FOR_LEADER_EPOCH)
def _offset_for_leader_epoch(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.data.offset_for_leader_epoch import OffsetForLeaderEpochHandler

    return OffsetForLeaderEpochHandler(needs.partitions, needs.probe(ApiKey.OFFSET_FOR_LEADER_EPOCH))


@_serves(ApiKey.CREATE_TOPICS)
def _create_topics(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.topics.topics import CreateTopicsHandler

    return CreateTopicsHandler(needs.changes, needs.config, needs.probe(ApiKey.CREATE_TOPICS))


@_serves(ApiKey.DELETE_TOPICS)
def _delete_topics(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.topics.topics import DeleteTopicsHandler

    return DeleteTopicsHandler(needs.changes, needs.probe(ApiKey.DELETE_TOPICS))


@_serves(ApiKey.CREATE_PARTITIONS)
def _create_partitions(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.topics.topics import CreatePartitionsHandler

    return CreatePartitionsHandler(needs.changes, needs.probe(ApiKey.CREATE_PARTITIONS))


@_serves(ApiKey.DESCRIBE_CONFIGS)
def _describe_configs(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.cluster.configs import DescribeConfigsHandler

    return DescribeConfigsHandler(needs.store, needs.config, needs.probe(ApiKey.DESCRIBE_CONFIGS))


@_serves(ApiKey.ALTER_CONFIGS)
def _alter_configs(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.cluster.configs import AlterConfigsHandler

    return AlterConfigsHandler(needs.changes, needs.probe(ApiKey.ALTER_CONFIGS))


@_serves(ApiKey.ELECT_LEADERS)
def _elect_leaders(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.topics.elect_leaders import ElectLeadersHandler

    return ElectLeadersHandler(needs.store, needs.partitions, needs.probe(ApiKey.ELECT_LEADERS))


@_serves(ApiKey.LIST_PARTITION_REASSIGNMENTS)
def _list_partition_reassignments(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.topics.list_partition_reassignments import list_partition_reassignments

    return list_partition_reassignments


@_serves(ApiKey.DESCRIBE_CLIENT_QUOTAS)
def _describe_client_quotas(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.cluster.describe_client_quotas import DescribeClientQuotasHandler

    return DescribeClientQuotasHandler(needs.store)


@_serves(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS)
def _describe_user_scram_credentials(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.cluster.describe_user_scram_credentials import DescribeUserScramCredentialsHandler

    return DescribeUserScramCredentialsHandler(needs.store)


@_serves(ApiKey.DESCRIBE_QUORUM)
def _describe_quorum(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.cluster.describe_quorum import DescribeQuorumHandler
    from barnabas.broker.storage.services.clock import SystemClock

    return DescribeQuorumHandler(needs.store, needs.addresses, SystemClock())


@_serves(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def _incremental_alter_configs(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.cluster.configs import AlterConfigsHandler

    return AlterConfigsHandler(needs.changes, needs.probe(ApiKey.INCREMENTAL_ALTER_CONFIGS))


@_serves(ApiKey.DESCRIBE_CLUSTER)
def _describe_cluster(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.cluster.describe_cluster import DescribeClusterHandler

    return DescribeClusterHandler(needs.store, needs.addresses)


@_serves(ApiKey.DESCRIBE_PRODUCERS)
def _describe_producers(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.data.describe_producers import DescribeProducersHandler

    return DescribeProducersHandler(needs.partitions, needs.probe(ApiKey.DESCRIBE_PRODUCERS))


@_serves(ApiKey.LIST_CONFIG_RESOURCES)
def _list_config_resources(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.cluster.list_config_resources import ListConfigResourcesHandler

    return ListConfigResourcesHandler(needs.store)


@_serves(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
def _describe_topic_partitions(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.topics.describe_topic_partitions import DescribeTopicPartitionsHandler

    return DescribeTopicPartitionsHandler(needs.store, needs.partitions)


@_serves(ApiKey.ALTER_REPLICA_LOG_DIRS)
def _alter_replica_log_dirs(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.topics.log_dirs import AlterReplicaLogDirsHandler

    return AlterReplicaLogDirsHandler(
        needs.log_manager, needs.partitions, needs.blocking_io, needs.probe(ApiKey.ALTER_REPLICA_LOG_DIRS)
    )


@_serves(ApiKey.DESCRIBE_LOG_DIRS)
def _describe_log_dirs(needs: ApiNeeds) -> Handler:
    from barnabas.broker.handlers.topics.log_dirs import DescribeLogDirsHandler

    return DescribeLogDirsHandler(needs.log_manager, needs.blocking_io, needs.probe(ApiKey.DESCRIBE_LOG_DIRS))
