"""The error codes that handlers name, and those without a recorded answer, with the reason."""

from __future__ import annotations

import re
from typing import Final

from barnabas.broker.handlers.api_table import _ROWS
from tests.support.daemon import REPOSITORY

_NATIVE: Final = "an API of the native protocol only"
_UNREAD: Final = "recorded, but kio does not read a time of -1, so the code is not seen"
_RIGHTS: Final = "takes rights to a part of the request; tests/broker/authorization compares such answers with Kafka's"
_DISK: Final = "takes a failing disk; tests/broker/partitions/test_offline_directory.py"
_STATE: Final = "a state of a coordinator or log that one healthy broker passes too quickly for a client to see"
_LATER: Final = "not recorded yet"

UNRECORDED: Final[dict[str, dict[str, str]]] = {
    "cluster.mirrors": {"INVALID_REQUEST": _NATIVE},
    "cluster.standby": {"INVALID_REQUEST": _NATIVE, "KAFKA_STORAGE_ERROR": _NATIVE, "POLICY_VIOLATION": _NATIVE},
    "groups.explain_group": {"GROUP_ID_NOT_FOUND": _NATIVE},
    "topics.explain_topic": {"INVALID_CONFIG": _NATIVE, "UNKNOWN_TOPIC_OR_PARTITION": _NATIVE},
    "data.fetch": {
        "FENCED_LEADER_EPOCH": "takes a partition whose leader epoch has grown, by a restart or a promotion",
        "INCONSISTENT_TOPIC_ID": "takes a session whose topic was deleted and created anew: " + _LATER,
    },
    "data.produce": {
        "KAFKA_STORAGE_ERROR": _DISK,
        "NOT_ENOUGH_REPLICAS": "takes a standby with min.insync.replicas; tests/broker/standby/test_min_acks.py",
        "RECORD_LIST_TOO_LARGE": "takes a batch above the smallest segment.bytes, 1 MiB, which is too much to record",
        "UNKNOWN_SERVER_ERROR": "answers a bug",
    },
    "groups.consumer_group_describe": {"TOPIC_AUTHORIZATION_FAILED": _RIGHTS},
    "groups.share_group_describe": {"TOPIC_AUTHORIZATION_FAILED": _RIGHTS},
    "groups.streams_group_describe": {"TOPIC_AUTHORIZATION_FAILED": _RIGHTS},
    "groups.groups": {"TOPIC_AUTHORIZATION_FAILED": _RIGHTS},
    "groups.offset_fetch": {"TOPIC_AUTHORIZATION_FAILED": _RIGHTS},
    "groups.consumer_group_heartbeat": {"UNSUPPORTED_VERSION": "takes a broker without that protocol: " + _LATER},
    "groups.streams_group_heartbeat": {
        "TOPIC_ALREADY_EXISTS": "a race of two clients that create an internal topic",
        "UNSUPPORTED_VERSION": "takes a broker without streams groups: " + _LATER,
    },
    "security.delegation_tokens": {
        "DELEGATION_TOKEN_AUTHORIZATION_FAILED": _UNREAD,
        "DELEGATION_TOKEN_AUTH_DISABLED": _UNREAD,
        "INVALID_PRINCIPAL_TYPE": _UNREAD,
    },
    "share.share_fetch": {
        "SHARE_SESSION_LIMIT_REACHED": "takes as many sessions as the broker keeps, 2000",
        "UNKNOWN_SERVER_ERROR": "answers a bug",
    },
    "topics.elect_leaders": {"ELIGIBLE_LEADERS_NOT_AVAILABLE": _DISK, "PREFERRED_LEADER_NOT_AVAILABLE": _DISK},
    "topics.log_dirs": {"INVALID_TOPIC_EXCEPTION": _LATER, "KAFKA_STORAGE_ERROR": _DISK},
    "topics.metadata": {"THROTTLING_QUOTA_EXCEEDED": "takes a controller_mutation_rate quota: " + _LATER},
    "transactions.add_partitions_to_txn": {
        "POLICY_VIOLATION": "takes a topic that a mirror keeps; tests/broker/mirrors/test_read_only_topics.py",
        "TOPIC_AUTHORIZATION_FAILED": _RIGHTS,
    },
    "transactions.txn_offset_commit": {"PRODUCER_FENCED": _LATER},
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


def handler_modules() -> dict[str, list[str]]:
    """Return the modules of the handlers with the APIs that each serves."""
    found = {"data.produce": ["produce"], "data.fetch": ["fetch"]}
    for row in _ROWS:
        found.setdefault(row.where.partition(":")[0], []).append(row.api.label)
    return found


def handler_codes(module: str) -> set[str]:
    """Return the error codes that a handler's module names."""
    text = (REPOSITORY / "broker" / "handlers" / f"{module.replace('.', '/')}.py").read_text()
    return set(re.findall(r"ErrorCode\.([A-Z_0-9]+)", text))
