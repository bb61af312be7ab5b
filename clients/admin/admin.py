"""Admin: topics, partitions, configurations, consumer groups, offsets, log directories and the cluster itself.

    async with Admin(AdminConfig(bootstrap="127.0.0.1:9092")) as admin:
        await admin.create_topic("orders", partitions=4, configs={"retention.ms": "-1"})

A broker's error raises RefusedError with its wire code and message. Lost connections are reopened for api_timeout_ms;
a command that may have been carried out already is never sent twice: the error says that its result is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self

from barnabas.clients.admin.descriptions import (
    BrokerDescription,
    ClusterDescription,
    CreatedTopic,
    PartitionDescription,
    TopicDescription,
    describe_topic,
)
from barnabas.clients.admin.group_description import GroupDescription, describe_group
from barnabas.clients.admin.groups import delete_group, explain_group, list_groups
from barnabas.clients.admin.log_dirs import (
    LogDirDescription,
    ReplicaDescription,
    alter_replica_log_dirs,
    describe_log_dirs,
)
from barnabas.clients.admin.mirrors import Mirrors
from barnabas.clients.admin.record_deletion import delete_records
from barnabas.clients.admin.start import explain_start
from barnabas.clients.admin.topic_explanation import explain_topic
from barnabas.clients.admin.transactions import (
    OpenTransaction,
    abort_hanging,
    abort_transaction,
    find_hanging,
    open_transactions,
)
from barnabas.clients.config import AdminConfig
from barnabas.clients.errors import ClientConfigError, RefusedError, UnknownTopicError
from barnabas.clients.group_offsets import CommittedOffset, commit_offsets, fetch_offsets
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.retrying import ask_any, command_any, ensure_no_error, with_retries
from barnabas.clients.offsets import ListedOffset, list_offsets
from barnabas.clients.transactions import describe_transactions, list_transactions
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.configs import (
    BROKER_RESOURCE,
    OP_DELETE,
    OP_SET,
    TOPIC_RESOURCE,
    AlterConfigOp,
    AlterConfigsResource,
    ConfigEntry,
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.cluster.explain_start import ExplainStartResponse
from barnabas.protocol.messages.groups.explain_group import ExplainGroupResponse
from barnabas.protocol.messages.groups.groups import ListedGroup
from barnabas.protocol.messages.topics.explain_topic import ExplainTopicRequest, ExplainTopicResponse
from barnabas.protocol.messages.topics.topics import (
    DEFAULT_COUNT,
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    NewPartitions,
    NewTopic,
    config_rows,
)
from barnabas.protocol.messages.transactions.describe_transactions import TransactionDescription
from barnabas.protocol.messages.transactions.list_transactions import ListTransactionsRequest, TransactionListing
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.uuids import uuid_text

__all__ = [
    "Admin",
    "ClusterDescription",
    "CreatedTopic",
    "ListedOffset",
    "LogDirDescription",
    "OpenTransaction",
    "PartitionDescription",
    "ReplicaDescription",
    "TopicDescription",
]


class Admin:
    """Use it as an async context manager, or call `start` and `close`."""

    def __init__(self, config: AdminConfig | None = None) -> None:
        self.config = config or AdminConfig()
        self.cluster = Cluster(self.config)
        """Its connections, for requests that no method here sends."""
        self.mirrors = Mirrors(self.cluster, self.config, Admin)
        """Topics of other clusters that this broker copies."""

    async def start(self) -> None:
        """Connect to a broker. Raises BrokerConnectionError immediately when none of the bootstrap list answers."""
        await self.cluster.start()

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self.cluster.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    # the cluster and its topics

    async def describe_cluster(self) -> ClusterDescription:
        """The cluster's id and its brokers."""

        async def attempt() -> ClusterDescription:
            response = await self.cluster.load([])
            return ClusterDescription(
                response.cluster_id or "",
                tuple(BrokerDescription(broker.node_id, broker.host, broker.port) for broker in response.brokers),
            )

        return await with_retries(self.config, "describe_cluster", attempt)

    async def explain_start(self, *, client_metrics: bool = False) -> ExplainStartResponse:
        """What the broker's last start found and did, and its work since. Raises RefusedError.

        `client_metrics`: with the metrics that clients have pushed to it.
        """
        return await explain_start(self.cluster, self.config, client_metrics=client_metrics)

    async def explain_topic(self, topic: str, partition: int | None = None) -> ExplainTopicResponse:
        """When retention deletes each segment of a topic, or of one partition, and what keeps it until then.

        Raises RefusedError.
        """
        return await explain_topic(self.cluster, self.config, ExplainTopicRequest(topic=topic, partition=partition))

    async def explain_setting(self, topic: str, name: str) -> ExplainTopicResponse:
        """The value in force of a topic's property, and all layers that have one. Raises RefusedError."""
        return await explain_topic(self.cluster, self.config, ExplainTopicRequest(topic=topic, setting=name))

    async def list_topics(self) -> list[TopicDescription]:
        """All topics, by name."""
        response = await with_retries(self.config, "list_topics", lambda: self.cluster.load(None))
        usable = (topic for topic in response.topics if topic.error is ErrorCode.NONE)
        return sorted(map(describe_topic, usable), key=lambda topic: topic.name)

    async def describe_topic(self, name: str) -> TopicDescription:
        """One topic. Raises UnknownTopicError if it does not exist."""
        response = await with_retries(self.config, "describe_topic", lambda: self.cluster.load([name]))
        for topic in response.topics:
            if topic.name == name and topic.error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                ensure_no_error(topic.error, None, name)
                return describe_topic(topic)
        raise UnknownTopicError(name, None, f"there is no topic {name!r}")

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replication_factor: int | None = None,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> CreatedTopic:
        """Create a topic; None stands for the broker's default. Raises RefusedError, e.g. TOPIC_ALREADY_EXISTS."""
        topic = NewTopic(
            name=name,
            partitions=DEFAULT_COUNT if partitions is None else partitions,
            replication_factor=DEFAULT_COUNT if replication_factor is None else replication_factor,
            configs=config_rows(configs or {}),
        )
        result = await self._change_topic(
            CreateTopicsRequest(topics=[topic], timeout_ms=self.config.request_timeout_ms, validate_only=validate_only),
            name,
        )
        assert isinstance(result, CreatableTopicResult)
        return CreatedTopic(name, uuid_text(result.topic_id), result.partitions, result.message)

    async def delete_topic(self, name: str) -> None:
        """Delete a topic and its records. Raises RefusedError."""
        await self._change_topic(DeleteTopicsRequest(names=[name], timeout_ms=self.config.request_timeout_ms), name)
        self.cluster.forget_topic(name)

    async def create_partitions(self, name: str, count: int, *, validate_only: bool = False) -> None:
        """Increase the topic's number of partitions to `count`. Raises RefusedError."""
        request = CreatePartitionsRequest(
            topics=[NewPartitions(name=name, count=count)],
            timeout_ms=self.config.request_timeout_ms,
            validate_only=validate_only,
        )
        await self._change_topic(request, name)

    async def _change_topic(
        self, request: CreateTopicsRequest | DeleteTopicsRequest | CreatePartitionsRequest, name: str
    ) -> CreatableTopicResult | DeletableTopicResult | CreatePartitionsTopicResult:
        # The broker has request_timeout_ms for the work, and its response as long again to arrive.
        response: CreateTopicsResponse | DeleteTopicsResponse | CreatePartitionsResponse = await command_any(
            self.cluster, self.config, request, 2 * self.config.request_timeout_ms
        )
        for result in response.topics:
            if result.name == name:
                ensure_no_error(result.error, result.message, name)
                return result
        raise RefusedError.of_topic(name, ErrorCode.UNKNOWN_SERVER_ERROR, "the broker left it out of its answer")

    # configurations

    async def describe_configs(
        self, *, topic: str | None = None, broker: int | str | None = None, names: Iterable[str] | None = None
    ) -> list[ConfigEntry]:
        """The properties (default: all) of a topic, or of a broker by its node id ("" for the default of all brokers).

        Raises RefusedError.
        """
        resource = _resource(topic, broker)
        requested = None if names is None else list(names)
        response: DescribeConfigsResponse = await ask_any(
            self.cluster,
            self.config,
            DescribeConfigsRequest(
                resources=[DescribeConfigsResource(type=resource.type, name=resource.name, names=requested)]
            ),
            node_id=_node_of(resource),
        )
        for result in response.results:
            ensure_no_error(result.error, result.message, _label(resource))
            return list(result.entries)
        raise RefusedError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{_label(resource)}: the broker's answer is empty")

    async def alter_configs(
        self,
        *,
        topic: str | None = None,
        broker: int | str | None = None,
        set_to: Mapping[str, str] | None = None,
        delete: Iterable[str] = (),
        validate_only: bool = False,
    ) -> None:
        """Set and delete properties of a topic or broker, all or none. A deleted one gets its next default.

        Raises RefusedError, e.g. INVALID_CONFIG with the broker's message for a bad value.
        """
        resource = _resource(topic, broker)
        operations = [AlterConfigOp(name=name, operation=OP_SET, value=value) for name, value in (set_to or {}).items()]
        operations += [AlterConfigOp(name=name, operation=OP_DELETE) for name in delete]
        request = IncrementalAlterConfigsRequest(
            resources=[AlterConfigsResource(type=resource.type, name=resource.name, operations=operations)],
            validate_only=validate_only,
        )
        response: IncrementalAlterConfigsResponse = await command_any(
            self.cluster, self.config, request, self.config.request_timeout_ms, node_id=_node_of(resource)
        )
        for result in response.results:
            ensure_no_error(result.error, result.message, _label(resource))

    # offsets

    async def list_offsets(
        self, wanted: Mapping[TopicPartition, int], *, isolation: int = 0
    ) -> dict[TopicPartition, ListedOffset]:
        """Find each partition's first record at or after a timestamp; -1 latest, -2 earliest, -3 maximum timestamp.

        Raises RefusedError, naming the partition.
        """
        return await list_offsets(self.cluster, self.config, wanted, isolation)

    async def delete_records(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | RefusedError]:
        """Delete the records below an offset (-1: all) of each partition. Returns new log start offsets, or errors."""
        return await delete_records(self.cluster, self.config, offsets)

    # consumer groups

    async def list_groups(self) -> list[ListedGroup]:
        """All groups by name, including those that only committed offsets."""
        return await list_groups(self.cluster, self.config)

    async def describe_group(self, group: str) -> GroupDescription:
        """A group with its members. Raises RefusedError for an unknown group."""
        return await describe_group(self.cluster, self.config, group)

    async def explain_group(self, group: str) -> ExplainGroupResponse:
        """A group's latest events, its members' deadlines, and its lag with what retention deletes of it.

        Raises RefusedError for an unknown group.
        """
        return await explain_group(self.cluster, self.config, group)

    async def group_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
    ) -> dict[TopicPartition, CommittedOffset]:
        """A group's committed offsets of these partitions (None: all); {} for an unknown group.

        The offsets of a transaction can be seen a moment after its commit was answered: once its markers are written.
        With `require_stable`, the call waits for them, and for the end of open transactions with offsets in these
        partitions; without `partitions`, in those that have a committed offset already.
        """
        return await fetch_offsets(self.cluster, self.config, group, partitions, require_stable=require_stable)

    async def set_group_offsets(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Commit offsets for a group. Raises RefusedError if it has members, or a topic is unknown."""
        await commit_offsets(self.cluster, self.config, group, offsets)

    async def delete_group(self, group: str) -> None:
        """Delete a group with its offsets. Raises RefusedError if it is unknown or has members."""
        await delete_group(self.cluster, self.config, group)

    # transactions

    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int = -1,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """Transactional ids by name. Filters: names of states, producer ids, open for so long, a pattern of the id.

        Raises RefusedError for a state that does not exist and an invalid pattern (RE2).
        """
        request = ListTransactionsRequest(
            states=list(states),
            producer_ids=list(producer_ids),
            duration_ms=longer_than_ms,
            transactional_id_pattern=pattern,
        )
        return await list_transactions(self.cluster, self.config, request)

    async def describe_transactions(
        self, transactional_ids: Iterable[str]
    ) -> dict[str, TransactionDescription | RefusedError]:
        """Describe each id, with the partitions of its open transaction, or return its error."""
        return await describe_transactions(self.cluster, self.config, transactional_ids)

    async def abort_transaction(self, transactional_id: str) -> None:
        """Abort the id's open transaction, and fence its producer. Raises RefusedError for an unknown id."""
        await abort_transaction(self.cluster, self.config, transactional_id)

    async def open_transactions(
        self, partitions: Iterable[TopicPartition], *, missing_ok: bool = False
    ) -> list[OpenTransaction]:
        """Find the open transactions of these partitions, also those that hang. Raises RefusedError for a partition.

        `missing_ok`: partitions of a listing that are gone by now, or whose logs are still being created, have none.
        """
        return await open_transactions(self.cluster, self.config, partitions, missing_ok=missing_ok)

    async def find_hanging_transactions(
        self, partitions: Iterable[TopicPartition], *, longer_than_ms: int, missing_ok: bool = False
    ) -> list[OpenTransaction]:
        """Find open transactions that no coordinator will end, whose last record is older than `longer_than_ms`.

        Raises RefusedError for a partition; `missing_ok` as in `open_transactions`.
        """
        return await find_hanging(self.cluster, self.config, partitions, longer_than_ms, missing_ok=missing_ok)

    async def abort_hanging_transaction(self, transaction: OpenTransaction) -> None:
        """Write an abort marker for a transaction that no coordinator will end. Raises RefusedError."""
        await abort_hanging(self.cluster, self.config, transaction)

    # log directories

    async def describe_log_dirs(self, partitions: Iterable[TopicPartition] | None = None) -> list[LogDirDescription]:
        """The brokers' log directories, each with those of these partitions (None: all) that are in it."""
        return await describe_log_dirs(self.cluster, self.config, partitions)

    async def alter_replica_log_dirs(
        self, targets: Mapping[TopicPartition, str], *, broker: int | None = None
    ) -> dict[TopicPartition, RefusedError | None]:
        """Start moving partitions to other log directories of a broker, by default their leaders'.

        Returns each one's error, or None.
        Naming a partition's current directory cancels its move. `describe_log_dirs` shows when a move is over.
        """
        return await alter_replica_log_dirs(self.cluster, self.config, targets, broker)


def _resource(topic: str | None, broker: int | str | None) -> ConfigResource:
    if topic is not None and broker is None:
        return ConfigResource(TOPIC_RESOURCE, topic)
    if broker is not None and topic is None:
        return ConfigResource(BROKER_RESOURCE, str(broker))
    raise ClientConfigError("name either a topic or a broker")


def _node_of(resource: ConfigResource) -> int | None:
    """Return the broker that alone knows the resource; None if all do."""
    return int(resource.name) if resource.type == BROKER_RESOURCE and resource.name.isdecimal() else None


def _label(resource: ConfigResource) -> str:
    if resource.type == TOPIC_RESOURCE:
        return resource.name
    return f"broker {resource.name}" if resource.name else "the default of all brokers"
