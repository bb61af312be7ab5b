"""The table of served APIs and versions of Kafka's protocol, from which ApiVersions answers too.

An API has one module in `data`, `topics`, `groups`, `transactions`, `cluster` or `security`, named after its key, with
three functions (`ApiCodec`). Serving one takes a row here and a handler for its key. The module, and what it imports,
is loaded at the API's first request.

A version is either classic or flexible (compact lengths, tagged fields), with request header v1 or v2 and response
header v0 or v1. The exception is ApiVersions: its response header is always v0, because a client must be able to read
it before it knows the broker's versions. Source: Kafka's ApiKeys and the message definitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple, Protocol, cast

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.pieces import Pieces
from barnabas.protocol.messages.api_key import ApiKey

MAX_INT32: Final = 0x7FFF_FFFF


class ApiCodec(Protocol):
    """The functions of an API's module."""

    def decode_request(self, version: int, body: memoryview) -> Any:
        """Return the neutral request.

        Raises DecodeError, which closes the connection, or BrokerError, which is answered by `encode_error`.
        """
        ...

    def encode_response(self, version: int, response: Any) -> bytes | Pieces:
        """Return the response's body."""
        ...

    def encode_error(self, version: int, request: Any, code: ErrorCode, message: str) -> bytes | Pieces:
        """Return the body that refuses a whole request, like Kafka's getErrorResponse.

        `request` is None if `decode_request` raised a BrokerError.
        """
        ...


class KafkaApi(NamedTuple):
    """One API: served from `lowest` to `highest`, flexible from `flexible_from` on."""

    key: ApiKey
    lowest: int
    highest: int
    flexible_from: int
    room: str
    """Folder beside this file with the codec, a module with the API's name."""
    advertised_from: int | None = None
    """ApiVersions answers this instead of `lowest`."""
    max_body_bytes: int = 2 * 1024 * 1024
    """Limit for requests: a decoded body may take a hundred times its bytes."""

    @property
    def module(self) -> str:
        """Full name of the codec's module."""
        return f"barnabas.protocol.kafka.{self.room}.{self.key.label}"


KAFKA_APIS: Sequence[KafkaApi] = (
    # librdkafka stops compressing unless Produce 0 is advertised; Kafka 4.x advertises 0 too, and reads from 3 on.
    KafkaApi(ApiKey.PRODUCE, 3, 13, 9, "data", advertised_from=0, max_body_bytes=MAX_INT32),
    KafkaApi(ApiKey.FETCH, 4, 18, 12, "data"),
    KafkaApi(ApiKey.LIST_OFFSETS, 1, 11, 6, "data"),
    KafkaApi(ApiKey.METADATA, 0, 13, 9, "topics"),
    # librdkafka before 2.11.1 supports groups only with these exact lowest versions.
    KafkaApi(ApiKey.OFFSET_COMMIT, 2, 10, 8, "groups"),
    KafkaApi(ApiKey.OFFSET_FETCH, 1, 10, 6, "groups"),
    KafkaApi(ApiKey.FIND_COORDINATOR, 0, 6, 3, "groups"),
    # librdkafka before 2.11.1 enables groups by version 0 of the first four: never raise their minima.
    KafkaApi(ApiKey.JOIN_GROUP, 0, 9, 6, "groups"),
    KafkaApi(ApiKey.HEARTBEAT, 0, 4, 4, "groups"),
    KafkaApi(ApiKey.LEAVE_GROUP, 0, 5, 4, "groups"),
    KafkaApi(ApiKey.SYNC_GROUP, 0, 5, 4, "groups"),
    KafkaApi(ApiKey.DESCRIBE_GROUPS, 0, 6, 5, "groups"),
    KafkaApi(ApiKey.LIST_GROUPS, 0, 5, 3, "groups"),
    KafkaApi(ApiKey.SASL_HANDSHAKE, 0, 1, 2, "security"),
    KafkaApi(ApiKey.API_VERSIONS, 0, 4, 3, "cluster"),
    KafkaApi(ApiKey.CREATE_TOPICS, 2, 7, 5, "topics"),
    KafkaApi(ApiKey.DELETE_TOPICS, 1, 6, 4, "topics"),
    KafkaApi(ApiKey.DELETE_RECORDS, 0, 2, 2, "data"),
    KafkaApi(ApiKey.INIT_PRODUCER_ID, 0, 5, 2, "data"),
    KafkaApi(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4, 4, "data"),
    KafkaApi(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, 3, "transactions"),
    KafkaApi(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, 3, "transactions"),
    KafkaApi(ApiKey.END_TXN, 0, 5, 3, "transactions"),
    KafkaApi(ApiKey.WRITE_TXN_MARKERS, 1, 2, 1, "transactions"),
    KafkaApi(ApiKey.TXN_OFFSET_COMMIT, 0, 5, 3, "transactions"),
    KafkaApi(ApiKey.DESCRIBE_ACLS, 1, 3, 2, "security"),
    KafkaApi(ApiKey.CREATE_ACLS, 1, 3, 2, "security"),
    KafkaApi(ApiKey.DELETE_ACLS, 1, 3, 2, "security"),
    KafkaApi(ApiKey.DESCRIBE_CONFIGS, 1, 4, 4, "cluster"),
    KafkaApi(ApiKey.ALTER_CONFIGS, 0, 2, 2, "cluster"),
    KafkaApi(ApiKey.ALTER_REPLICA_LOG_DIRS, 1, 2, 2, "topics"),
    KafkaApi(ApiKey.DESCRIBE_LOG_DIRS, 1, 5, 2, "topics"),
    KafkaApi(ApiKey.SASL_AUTHENTICATE, 0, 2, 2, "security"),
    KafkaApi(ApiKey.CREATE_PARTITIONS, 0, 3, 2, "topics"),
    KafkaApi(ApiKey.CREATE_DELEGATION_TOKEN, 1, 3, 2, "security"),
    KafkaApi(ApiKey.RENEW_DELEGATION_TOKEN, 1, 2, 2, "security"),
    KafkaApi(ApiKey.EXPIRE_DELEGATION_TOKEN, 1, 2, 2, "security"),
    KafkaApi(ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, 3, 2, "security"),
    KafkaApi(ApiKey.DELETE_GROUPS, 0, 2, 2, "groups"),
    KafkaApi(ApiKey.ELECT_LEADERS, 0, 2, 2, "topics"),
    KafkaApi(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, 1, "cluster"),
    KafkaApi(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1, 0, "topics"),
    KafkaApi(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, 0, "topics"),
    KafkaApi(ApiKey.OFFSET_DELETE, 0, 0, 1, "groups"),
    KafkaApi(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1, 1, "cluster"),
    KafkaApi(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, 1, "security"),
    KafkaApi(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, 0, "cluster"),
    KafkaApi(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, 0, "security"),
    KafkaApi(ApiKey.DESCRIBE_QUORUM, 0, 2, 0, "cluster"),
    KafkaApi(ApiKey.UPDATE_FEATURES, 0, 2, 0, "cluster"),
    KafkaApi(ApiKey.DESCRIBE_CLUSTER, 0, 2, 0, "cluster"),
    KafkaApi(ApiKey.DESCRIBE_PRODUCERS, 0, 0, 0, "data"),
    KafkaApi(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, 0, "transactions"),
    KafkaApi(ApiKey.LIST_TRANSACTIONS, 0, 2, 0, "transactions"),
    KafkaApi(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, 0, "groups"),
    KafkaApi(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, 0, "groups"),
    KafkaApi(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, 0, 0, "cluster"),
    KafkaApi(ApiKey.PUSH_TELEMETRY, 0, 0, 0, "cluster"),
    KafkaApi(ApiKey.LIST_CONFIG_RESOURCES, 0, 1, 0, "cluster"),
    KafkaApi(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, 0, "topics"),
    KafkaApi(ApiKey.SHARE_GROUP_HEARTBEAT, 1, 1, 0, "groups"),
    KafkaApi(ApiKey.SHARE_GROUP_DESCRIBE, 1, 1, 0, "groups"),
    KafkaApi(ApiKey.SHARE_FETCH, 1, 2, 0, "share"),
    KafkaApi(ApiKey.SHARE_ACKNOWLEDGE, 1, 2, 0, "share"),
    KafkaApi(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, 0, 0, "share"),
    KafkaApi(ApiKey.READ_SHARE_GROUP_STATE, 0, 0, 0, "share"),
    KafkaApi(ApiKey.WRITE_SHARE_GROUP_STATE, 0, 1, 0, "share"),
    KafkaApi(ApiKey.DELETE_SHARE_GROUP_STATE, 0, 0, 0, "share"),
    KafkaApi(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 0, 1, 0, "share"),
    KafkaApi(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, 0, 0, "groups"),
    KafkaApi(ApiKey.STREAMS_GROUP_DESCRIBE, 0, 0, 0, "groups"),
    KafkaApi(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, 1, 0, "groups"),
    KafkaApi(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, 0, 0, "groups"),
    KafkaApi(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, 0, 0, "groups"),
)

OWN_APIS: Sequence[KafkaApi] = (
    KafkaApi(ApiKey.STANDBY, 0, 0, 0, "cluster"),
    KafkaApi(ApiKey.EXPLAIN_GROUP, 0, 0, 0, "groups"),
    KafkaApi(ApiKey.EXPLAIN_START, 0, 0, 0, "cluster"),
    KafkaApi(ApiKey.EXPLAIN_TOPIC, 0, 0, 0, "topics"),
)
"""Barnabas' own, which Kafka does not have."""


class Route:
    """One version of one API."""

    __slots__ = ("_codec", "api", "is_flexible", "response_is_flexible", "version")

    def __init__(self, api: KafkaApi, version: int) -> None:
        self.api = api
        self.version = version
        self.is_flexible = version >= api.flexible_from
        self.response_is_flexible = self.is_flexible and api.key != ApiKey.API_VERSIONS
        self._codec: ApiCodec | None = None

    @property
    def codec(self) -> ApiCodec:
        """The API's module, imported at its first use."""
        codec = self._codec
        if codec is None:
            codec = self._codec = cast(ApiCodec, import_module(self.api.module))
        return codec


ROUTES: dict[tuple[int, int], Route] = {
    (int(api.key), version): Route(api, version)
    for api in (*KAFKA_APIS, *OWN_APIS)
    for version in range(api.lowest, api.highest + 1)
}
"""By key and version."""
