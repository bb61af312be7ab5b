"""The table of served APIs and versions of Kafka's protocol, from which ApiVersions answers too.

An API's messages are declared in a module of `protocol/messages`, which is loaded at its first request. Serving one
takes a row here and a handler for its key.

A version is either classic or flexible (compact lengths, tagged fields), with request header v1 or v2 and response
header v0 or v1. The exception is ApiVersions: its response header is always v0, because a client must be able to read
it before it knows the broker's versions. Source: Kafka's ApiKeys and the message definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple, cast

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.pieces import Pieces
from barnabas.protocol.wire.structures import Request, StoredAnswer

MAX_INT32: Final = 0x7FFF_FFFF


class KafkaApi(NamedTuple):
    """One API: served from `lowest` to `highest`."""

    key: ApiKey
    lowest: int
    highest: int
    messages: str
    """Module of its messages, in `protocol/messages`."""
    advertised_from: int | None = None
    """ApiVersions answers this instead of `lowest`."""
    max_body_bytes: int = 2 * 1024 * 1024
    """Limit for requests: a decoded body may take a hundred times its bytes."""

    is_unstable: bool = False
    """Whether Kafka holds `highest` back as unstable: for Barnabas' own clients, or unstable.api.versions.enable=true.
    """

    @property
    def module(self) -> str:
        """Full name of the module that its first request loads."""
        return f"barnabas.protocol.messages.{self.messages}"

    def highest_for(self, *, unstable: bool) -> int:
        """Return the highest version, with or without an unstable one."""
        return self.highest if unstable else self.highest - self.is_unstable

    @property
    def request(self) -> type[Request[Any]]:
        """The class of its requests."""
        name = "".join(word.capitalize() for word in self.key.label.split("_")) + "Request"
        return cast(type[Request[Any]], getattr(import_module(self.module), name))

    @property
    def flexible_from(self) -> int:
        """Its first flexible version."""
        return self.request.flexible_from


KAFKA_APIS: Sequence[KafkaApi] = (
    # librdkafka stops compressing unless Produce 0 is advertised; Kafka 4.x advertises 0 too, and reads from 3 on.
    KafkaApi(ApiKey.PRODUCE, 3, 13, "data.produce", advertised_from=0, max_body_bytes=MAX_INT32),
    KafkaApi(ApiKey.FETCH, 4, 18, "data.fetch"),
    KafkaApi(ApiKey.LIST_OFFSETS, 1, 11, "data.list_offsets"),
    KafkaApi(ApiKey.METADATA, 0, 13, "topics.metadata"),
    # librdkafka before 2.11.1 supports groups only with these exact lowest versions.
    KafkaApi(ApiKey.OFFSET_COMMIT, 2, 10, "groups.offset_commit"),
    KafkaApi(ApiKey.OFFSET_FETCH, 1, 10, "groups.offset_fetch"),
    KafkaApi(ApiKey.FIND_COORDINATOR, 0, 6, "groups.find_coordinator"),
    # librdkafka before 2.11.1 enables groups by version 0 of the first four: never raise their minima.
    KafkaApi(ApiKey.JOIN_GROUP, 0, 9, "groups.join_group"),
    KafkaApi(ApiKey.HEARTBEAT, 0, 4, "groups.heartbeat"),
    KafkaApi(ApiKey.LEAVE_GROUP, 0, 5, "groups.leave_group"),
    KafkaApi(ApiKey.SYNC_GROUP, 0, 5, "groups.sync_group"),
    KafkaApi(ApiKey.DESCRIBE_GROUPS, 0, 6, "groups.describe_groups"),
    KafkaApi(ApiKey.LIST_GROUPS, 0, 5, "groups.groups"),
    KafkaApi(ApiKey.SASL_HANDSHAKE, 0, 1, "security.sasl"),
    KafkaApi(ApiKey.API_VERSIONS, 0, 4, "cluster.api_versions"),
    KafkaApi(ApiKey.CREATE_TOPICS, 2, 7, "topics.topics"),
    KafkaApi(ApiKey.DELETE_TOPICS, 1, 6, "topics.topics"),
    KafkaApi(ApiKey.DELETE_RECORDS, 0, 2, "data.delete_records"),
    KafkaApi(ApiKey.INIT_PRODUCER_ID, 0, 6, "data.init_producer_id", is_unstable=True),
    KafkaApi(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4, "data.offset_for_leader_epoch"),
    KafkaApi(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, "transactions.add_partitions_to_txn"),
    KafkaApi(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, "transactions.add_offsets_to_txn"),
    KafkaApi(ApiKey.END_TXN, 0, 5, "transactions.end_txn"),
    KafkaApi(ApiKey.WRITE_TXN_MARKERS, 1, 2, "transactions.write_txn_markers"),
    KafkaApi(ApiKey.TXN_OFFSET_COMMIT, 0, 5, "transactions.txn_offset_commit"),
    KafkaApi(ApiKey.DESCRIBE_ACLS, 1, 3, "security.acls"),
    KafkaApi(ApiKey.CREATE_ACLS, 1, 3, "security.acls"),
    KafkaApi(ApiKey.DELETE_ACLS, 1, 3, "security.acls"),
    KafkaApi(ApiKey.DESCRIBE_CONFIGS, 1, 4, "cluster.configs"),
    KafkaApi(ApiKey.ALTER_CONFIGS, 0, 2, "cluster.configs"),
    KafkaApi(ApiKey.ALTER_REPLICA_LOG_DIRS, 1, 2, "topics.log_dirs"),
    KafkaApi(ApiKey.DESCRIBE_LOG_DIRS, 1, 5, "topics.log_dirs"),
    KafkaApi(ApiKey.SASL_AUTHENTICATE, 0, 2, "security.sasl"),
    KafkaApi(ApiKey.CREATE_PARTITIONS, 0, 3, "topics.topics"),
    KafkaApi(ApiKey.CREATE_DELEGATION_TOKEN, 1, 3, "security.delegation_tokens"),
    KafkaApi(ApiKey.RENEW_DELEGATION_TOKEN, 1, 2, "security.delegation_tokens"),
    KafkaApi(ApiKey.EXPIRE_DELEGATION_TOKEN, 1, 2, "security.delegation_tokens"),
    KafkaApi(ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, 3, "security.delegation_tokens"),
    KafkaApi(ApiKey.DELETE_GROUPS, 0, 2, "groups.groups"),
    KafkaApi(ApiKey.ELECT_LEADERS, 0, 2, "topics.elect_leaders"),
    KafkaApi(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, "cluster.configs"),
    KafkaApi(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1, "topics.partition_reassignments"),
    KafkaApi(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, "topics.partition_reassignments"),
    KafkaApi(ApiKey.OFFSET_DELETE, 0, 0, "groups.offset_delete"),
    KafkaApi(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1, "security.client_quotas"),
    KafkaApi(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, "security.client_quotas"),
    KafkaApi(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, "security.scram_credentials"),
    KafkaApi(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, "security.scram_credentials"),
    KafkaApi(ApiKey.DESCRIBE_QUORUM, 0, 2, "cluster.describe_quorum"),
    KafkaApi(ApiKey.UPDATE_FEATURES, 0, 2, "cluster.update_features"),
    KafkaApi(ApiKey.DESCRIBE_CLUSTER, 0, 2, "cluster.describe_cluster"),
    KafkaApi(ApiKey.DESCRIBE_PRODUCERS, 0, 0, "data.describe_producers"),
    KafkaApi(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, "transactions.describe_transactions"),
    KafkaApi(ApiKey.LIST_TRANSACTIONS, 0, 2, "transactions.list_transactions"),
    KafkaApi(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, "groups.consumer_group_heartbeat"),
    KafkaApi(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, "groups.consumer_group_describe"),
    KafkaApi(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, 0, "cluster.client_telemetry"),
    KafkaApi(ApiKey.PUSH_TELEMETRY, 0, 0, "cluster.client_telemetry"),
    KafkaApi(ApiKey.LIST_CONFIG_RESOURCES, 0, 1, "cluster.configs"),
    KafkaApi(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, "topics.describe_topic_partitions"),
    KafkaApi(ApiKey.SHARE_GROUP_HEARTBEAT, 1, 1, "groups.share_group_heartbeat"),
    KafkaApi(ApiKey.SHARE_GROUP_DESCRIBE, 1, 1, "groups.share_group_describe"),
    KafkaApi(ApiKey.SHARE_FETCH, 1, 2, "share.share_fetch"),
    KafkaApi(ApiKey.SHARE_ACKNOWLEDGE, 1, 2, "share.share_acknowledge"),
    KafkaApi(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, 0, "share.group_state"),
    KafkaApi(ApiKey.READ_SHARE_GROUP_STATE, 0, 0, "share.group_state"),
    KafkaApi(ApiKey.WRITE_SHARE_GROUP_STATE, 0, 1, "share.group_state"),
    KafkaApi(ApiKey.DELETE_SHARE_GROUP_STATE, 0, 0, "share.group_state"),
    KafkaApi(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 0, 1, "share.group_state"),
    KafkaApi(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, 0, "groups.streams_group_heartbeat"),
    KafkaApi(ApiKey.STREAMS_GROUP_DESCRIBE, 0, 0, "groups.streams_group_describe"),
    KafkaApi(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, 1, "groups.share_group_offsets"),
    KafkaApi(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, 0, "groups.share_group_offsets"),
    KafkaApi(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, 0, "groups.share_group_offsets"),
)

OWN_APIS: Sequence[KafkaApi] = (
    KafkaApi(ApiKey.MIRRORS, 0, 0, "cluster.mirrors"),
    KafkaApi(ApiKey.STANDBY, 0, 0, "cluster.standby"),
    KafkaApi(ApiKey.EXPLAIN_GROUP, 0, 0, "groups.explain_group"),
    KafkaApi(ApiKey.EXPLAIN_START, 0, 0, "cluster.explain_start"),
    KafkaApi(ApiKey.EXPLAIN_TOPIC, 0, 0, "topics.explain_topic"),
    KafkaApi(ApiKey.CLEANING, 0, 0, "topics.cleaning"),
)
"""Barnabas' own, which Kafka does not have."""


_SERVED: Final = {int(api.key): api for api in (*KAFKA_APIS, *OWN_APIS)}


class Route:
    """One version of one API, with its messages loaded."""

    __slots__ = ("_in_pieces", "api", "decode", "is_flexible", "is_unstable", "response_is_flexible", "version")

    def __init__(self, api: KafkaApi, version: int) -> None:
        self.api = api
        self.version = version
        self.is_flexible = version >= api.flexible_from
        self.is_unstable = version > api.highest_for(unstable=False)
        self.response_is_flexible = self.is_flexible and api.key != ApiKey.API_VERSIONS
        self._in_pieces = issubclass(api.request.answer_type, StoredAnswer)
        self.decode: Callable[[int, memoryview], Any] = api.request.decode

    def encode(self, response: Any) -> bytes | Pieces:
        """Return the body of a response."""
        return cast(bytes | Pieces, (response.pieces if self._in_pieces else response.encode)(self.version))

    def refusal(self, request: Any, code: ErrorCode, message: str) -> bytes | Pieces:
        """Return the body that refuses a whole request, as Kafka's getErrorResponse."""
        return self.encode(request.refused(code, message))


_routes: Final[dict[tuple[int, int], Route]] = {}


def route_of(key: int, version: int) -> Route | None:
    """Return the route of an API's version, loading it at its first use; None if it is not served."""
    return _routes.get((key, version)) or _load(key, version)


def api_of(key: int) -> KafkaApi | None:
    """Return the row of an API; None if it is not served."""
    return _SERVED.get(key)


def _load(key: int, version: int) -> Route | None:
    api = _SERVED.get(key)
    if api is None or not api.lowest <= version <= api.highest:
        return None
    route = _routes[key, version] = Route(api, version)
    return route
