"""The error codes without a recorded answer, of all that handlers name, and of all that another version answers."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from barnabas.broker.handlers.api_table import _ROWS
from barnabas.protocol.errors import ErrorCode
from tests.support.daemon import REPOSITORY

_NATIVE: Final = "an API of the native protocol only"
_MIRROR: Final = "takes a topic that a mirror keeps; tests/broker/mirrors/test_read_only_topics.py"
_DISK: Final = "takes a failing disk; tests/broker/partitions/test_offline_directory.py"
_STATE: Final = "a state of a coordinator or log that one healthy broker passes too quickly for a client to see"

_LOADING: Final = {"COORDINATOR_LOAD_IN_PROGRESS": _STATE}
_TRANSACTIONS: Final = dict.fromkeys(("CONCURRENT_TRANSACTIONS", "COORDINATOR_NOT_AVAILABLE"), _STATE) | _LOADING

UNRECORDED: Final[dict[str, dict[str, str]]] = {
    "cluster.explain_start": {"CLUSTER_AUTHORIZATION_FAILED": _NATIVE},
    "cluster.mirrors": dict.fromkeys(
        (
            "CLUSTER_AUTHORIZATION_FAILED",
            "DUPLICATE_RESOURCE",
            "INVALID_REQUEST",
            "POLICY_VIOLATION",
            "RESOURCE_NOT_FOUND",
        ),
        _NATIVE,
    ),
    "cluster.standby": dict.fromkeys(
        (
            "CLUSTER_AUTHORIZATION_FAILED",
            "INVALID_REQUEST",
            "KAFKA_STORAGE_ERROR",
            "POLICY_VIOLATION",
            "RESOURCE_NOT_FOUND",
        ),
        _NATIVE,
    ),
    "cluster.update_features": {"KAFKA_STORAGE_ERROR": _DISK},
    "data.delete_records": {"KAFKA_STORAGE_ERROR": _DISK},
    "data.describe_producers": {"KAFKA_STORAGE_ERROR": _DISK},
    "data.init_producer_id": {**_TRANSACTIONS, "KAFKA_STORAGE_ERROR": _DISK},
    "data.produce": {
        "KAFKA_STORAGE_ERROR": _DISK,
        "NOT_ENOUGH_REPLICAS": "takes a standby with min.insync.replicas; tests/broker/standby/test_min_acks.py",
        "POLICY_VIOLATION": _MIRROR,
        "RECORD_LIST_TOO_LARGE": "takes a batch above the smallest segment.bytes, 1 MiB, which is too much to record",
        "UNKNOWN_SERVER_ERROR": "answers a bug",
    },
    "groups.explain_group": {"GROUP_AUTHORIZATION_FAILED": _NATIVE, "GROUP_ID_NOT_FOUND": _NATIVE},
    "groups.find_coordinator": {"COORDINATOR_NOT_AVAILABLE": _STATE},
    "groups.groups": _LOADING,
    "groups.join_group": {
        **_LOADING,
        "INVALID_REQUEST": "takes a text that is too long to be stored, which is too much to record",
    },
    "groups.offset_fetch": {
        **_LOADING,
        "OFFSET_METADATA_TOO_LARGE": "takes a larger offset.metadata.max.bytes; test_group_offsets.py",
    },
    "groups.streams_group_heartbeat": {
        "TOPIC_ALREADY_EXISTS": "a race of two clients that create an internal topic",
        "UNKNOWN_SERVER_ERROR": "Kafka's answer where ours is another code",
    },
    "share.group_state": _LOADING,
    "share.share_fetch": {
        "COORDINATOR_NOT_AVAILABLE": _STATE,
        "KAFKA_STORAGE_ERROR": _DISK,
        "UNKNOWN_SERVER_ERROR": "answers a bug",
    },
    "topics.elect_leaders": {"ELIGIBLE_LEADERS_NOT_AVAILABLE": _DISK, "PREFERRED_LEADER_NOT_AVAILABLE": _DISK},
    "topics.explain_topic": dict.fromkeys(
        ("INVALID_CONFIG", "TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_OR_PARTITION"), _NATIVE
    ),
    "topics.log_dirs": {"KAFKA_STORAGE_ERROR": _DISK},
    "topics.metadata": {"THROTTLING_QUOTA_EXCEEDED": "a topic above the quota is answered as one that does not exist"},
    "topics.topics": {"THROTTLING_QUOTA_EXCEEDED": "its throttle time is measured, so no two answers are equal"},
    "transactions.add_partitions_to_txn": {**_TRANSACTIONS, "POLICY_VIOLATION": _MIRROR},
    "transactions.describe_transactions": {**_LOADING, "COORDINATOR_NOT_AVAILABLE": _STATE},
    "transactions.end_txn": _TRANSACTIONS,
    "transactions.list_transactions": _LOADING,
    "transactions.txn_offset_commit": {"PRODUCER_FENCED": "answered as INVALID_PRODUCER_EPOCH, as by Kafka's groups"},
    "transactions.write_txn_markers": dict.fromkeys(
        (
            "COORDINATOR_LOAD_IN_PROGRESS",
            "COORDINATOR_NOT_AVAILABLE",
            "KAFKA_STORAGE_ERROR",
            "NOT_COORDINATOR",
            "NOT_LEADER_OR_FOLLOWER",
        ),
        _STATE,
    ),
}


class Versions(NamedTuple):
    """The versions that answer a code, and why the others do not."""

    first: int
    last: int
    reason: str


_NAMES: Final = "requests have names of topics before, no ids"
_EPOCHS: Final = "requests have no leader epoch before"
_SESSIONS: Final = "there are no fetch sessions before"
_INSTANCES: Final = "members have no instance ids before"
_MEMBERS: Final = "requests have no member before"
_FENCED: Final = "a producer with an old epoch is told PRODUCER_FENCED later"
_NOT_FENCED: Final = "a producer with an old epoch is told INVALID_PRODUCER_EPOCH before"
_BROKERS: Final = "clients send it until 3, brokers from 4 on"
_NEWEST: Final = 99

SOME_VERSIONS: Final[dict[str, dict[str, Versions]]] = {
    "produce": {
        "INVALID_TXN_STATE": Versions(3, 10, "told as TRANSACTION_ABORTABLE later"),
        "TRANSACTION_ABORTABLE": Versions(11, 11, "INVALID_TXN_STATE before; later the broker adds the partition"),
        "UNKNOWN_TOPIC_ID": Versions(13, _NEWEST, _NAMES),
        "UNSUPPORTED_COMPRESSION_TYPE": Versions(3, 6, "zstd is allowed later"),
    },
    "fetch": {
        "FENCED_LEADER_EPOCH": Versions(9, _NEWEST, _EPOCHS),
        "FETCH_SESSION_ID_NOT_FOUND": Versions(7, _NEWEST, _SESSIONS),
        "INCONSISTENT_TOPIC_ID": Versions(13, _NEWEST, _NAMES),
        "INVALID_FETCH_SESSION_EPOCH": Versions(7, _NEWEST, _SESSIONS),
        "UNKNOWN_LEADER_EPOCH": Versions(9, _NEWEST, _EPOCHS),
        "UNKNOWN_TOPIC_ID": Versions(13, _NEWEST, _NAMES),
    },
    "list_offsets": {
        "FENCED_LEADER_EPOCH": Versions(4, _NEWEST, _EPOCHS),
        "UNKNOWN_LEADER_EPOCH": Versions(4, _NEWEST, _EPOCHS),
        "UNKNOWN_SERVER_ERROR": Versions(2, _NEWEST, "requests have no isolation level before"),
    },
    "metadata": {
        "INVALID_REQUEST": Versions(10, 11, "refuses an id, which requests lack before, and may have later"),
        "UNKNOWN_TOPIC_ID": Versions(12, _NEWEST, "an id is refused before"),
        "UNKNOWN_TOPIC_OR_PARTITION": Versions(4, _NEWEST, "a request creates the topic before"),
    },
    "offset_commit": {
        "STALE_MEMBER_EPOCH": Versions(9, _NEWEST, "members of the consumer protocol are refused before"),
        "UNKNOWN_TOPIC_ID": Versions(10, _NEWEST, _NAMES),
        "UNSUPPORTED_VERSION": Versions(2, 8, "refuses members of the consumer protocol, which may commit later"),
    },
    "offset_fetch": {
        "INVALID_REQUEST": Versions(8, _NEWEST, "a request names one group before"),
        "STALE_MEMBER_EPOCH": Versions(9, _NEWEST, _MEMBERS),
        "UNKNOWN_MEMBER_ID": Versions(9, _NEWEST, _MEMBERS),
        "UNKNOWN_TOPIC_ID": Versions(10, _NEWEST, _NAMES),
        "UNSTABLE_OFFSET_COMMIT": Versions(7, _NEWEST, "requests have no require_stable before"),
    },
    "find_coordinator": {
        "CLUSTER_AUTHORIZATION_FAILED": Versions(6, _NEWEST, "share partitions are refused before"),
        **dict.fromkeys(
            ("INVALID_REQUEST", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
            Versions(1, _NEWEST, "requests have no type of a key before"),
        ),
    },
    "join_group": {
        "FENCED_INSTANCE_ID": Versions(5, _NEWEST, _INSTANCES),
        "MEMBER_ID_REQUIRED": Versions(4, _NEWEST, "a member joins with its first request before"),
    },
    "heartbeat": {"FENCED_INSTANCE_ID": Versions(3, _NEWEST, _INSTANCES)},
    "leave_group": {"FENCED_INSTANCE_ID": Versions(3, _NEWEST, _INSTANCES)},
    "sync_group": {
        "FENCED_INSTANCE_ID": Versions(3, _NEWEST, _INSTANCES),
        "INCONSISTENT_GROUP_PROTOCOL": Versions(5, _NEWEST, "requests do not name the protocol before"),
    },
    "describe_groups": {"GROUP_ID_NOT_FOUND": Versions(6, _NEWEST, "an unknown group is Dead before")},
    "api_versions": {"INVALID_REQUEST": Versions(3, _NEWEST, "requests do not name the client's software before")},
    "delete_topics": {"UNKNOWN_TOPIC_ID": Versions(6, _NEWEST, _NAMES)},
    "init_producer_id": {
        "INVALID_PRODUCER_EPOCH": Versions(3, 3, "requests have no epoch before; PRODUCER_FENCED later"),
        "PRODUCER_FENCED": Versions(4, _NEWEST, _NOT_FENCED),
        "UNSUPPORTED_VERSION": Versions(6, _NEWEST, "no request keeps a prepared transaction before"),
    },
    "add_partitions_to_txn": {
        "CLUSTER_AUTHORIZATION_FAILED": Versions(4, _NEWEST, _BROKERS),
        "INVALID_PRODUCER_EPOCH": Versions(0, 1, _FENCED),
        "PRODUCER_FENCED": Versions(2, _NEWEST, _NOT_FENCED),
        "TOPIC_AUTHORIZATION_FAILED": Versions(0, 3, _BROKERS),
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": Versions(0, 3, _BROKERS),
        "TRANSACTION_ABORTABLE": Versions(4, _NEWEST, "requests do not verify before"),
    },
    "add_offsets_to_txn": {
        "INVALID_PRODUCER_EPOCH": Versions(0, 1, _FENCED),
        "PRODUCER_FENCED": Versions(2, _NEWEST, _NOT_FENCED),
    },
    "end_txn": {
        "INVALID_PRODUCER_EPOCH": Versions(0, 1, _FENCED),
        "PRODUCER_FENCED": Versions(2, _NEWEST, _NOT_FENCED),
    },
    "txn_offset_commit": {
        "ILLEGAL_GENERATION": Versions(3, _NEWEST, _MEMBERS),
        "INVALID_TXN_STATE": Versions(0, 3, "told as TRANSACTION_ABORTABLE later"),
        "TRANSACTION_ABORTABLE": Versions(4, 4, "INVALID_TXN_STATE before; later the broker adds the group"),
        "UNKNOWN_MEMBER_ID": Versions(3, _NEWEST, _MEMBERS),
    },
    "describe_log_dirs": {
        "CLUSTER_AUTHORIZATION_FAILED": Versions(3, _NEWEST, "the answer has no code before, and is empty"),
    },
    "create_delegation_token": {
        "DELEGATION_TOKEN_AUTHORIZATION_FAILED": Versions(3, _NEWEST, "requests have no owner before"),
    },
    "elect_leaders": {"INVALID_REQUEST": Versions(1, _NEWEST, "requests have no type of an election before")},
    "describe_cluster": dict.fromkeys(
        ("MISMATCHED_ENDPOINT_TYPE", "UNSUPPORTED_ENDPOINT_TYPE"),
        Versions(1, _NEWEST, "requests have no type of an endpoint before"),
    ),
    "list_transactions": {"INVALID_REGULAR_EXPRESSION": Versions(2, _NEWEST, "requests have no pattern before")},
    "consumer_group_heartbeat": {
        "INVALID_REGULAR_EXPRESSION": Versions(1, _NEWEST, "requests have no regular expression before"),
    },
    "list_config_resources": {"UNSUPPORTED_VERSION": Versions(1, _NEWEST, "requests have no types before")},
}
"""The codes that not every version of an API answers."""


def handler_modules() -> dict[str, list[str]]:
    """Return the modules of the handlers with the APIs that each serves."""
    found = {"data.produce": ["produce"], "data.fetch": ["fetch"]}
    for row in _ROWS:
        found.setdefault(row.where.partition(":")[0], []).append(row.api.label)
    return found


def handler_codes(module: str) -> set[str]:
    """Return the error codes that a handler's module names, in its contract or its code."""
    text = (REPOSITORY / "broker" / "handlers" / f"{module.replace('.', '/')}.py").read_text()
    return set(re.findall(r"[A-Z][A-Z_0-9]+", text)) & set(ErrorCode.__members__)
