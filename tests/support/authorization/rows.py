"""The authorization table: for each API a request, and the ACLs that allow it.

The same rows run against Barnabas and against Apache Kafka. Every row has a user of its own. World of the rows: topics
`orders` and `hidden` (two partitions), groups `readers` and `g-commit` with offsets of both, transactional id `tx2`,
and a delegation token of `token-owner` with the renewers of RENEWERS.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from uuid import UUID

from barnabas.protocol.messages.security.acls import Acl
from barnabas.protocol.messages.security.resources import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from barnabas.protocol.records import Codec, RecordBatchBuilder

_T, _G, _C, _X = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID
_D, _U = ResourceType.DELEGATION_TOKEN, ResourceType.USER
Grant = tuple[ResourceType, str, Operation]


TOKEN_OWNER: Final = "token-owner"
RENEWERS: Final = ("renew-token-2", "expire-token-2")
"""Users that may renew and expire the token. ACLs cannot allow it."""
TOKEN_HMAC: Final = "the HMAC of the token"
"""Stands for the HMAC, which a broker draws, in requests."""


def _batch() -> bytes:
    builder = RecordBatchBuilder(Codec.NONE, max_bytes=1 << 20)
    assert builder.append(1_700_000_000_000, b"k", b"v", ())
    return bytes(builder.build())


def _on(kind: ResourceType, name: str, *operations: Operation) -> tuple[Grant, ...]:
    return tuple((kind, name, operation) for operation in operations)


def _cluster(*operations: Operation) -> tuple[Grant, ...]:
    return _on(_C, CLUSTER_NAME, *operations)


class Row(NamedTuple):
    """`grants` allow `request` of `api`. `stages` are grants that allow a part of it, each tried by itself."""

    name: str
    api: str
    version: int
    request: dict[str, Any]
    grants: tuple[Grant, ...]
    stages: tuple[tuple[Grant, ...], ...] = ()


def _orders(partition: dict[str, Any], key: str = "name", inner: str = "partitions") -> list[dict[str, Any]]:
    """The topic that the grants name, and one that they do not."""
    return [{key: "orders", inner: [partition]}, {key: "hidden", inner: [partition]}]


_COMMIT: Final = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
_MEMBER: Final = {"group_id": "readers", "generation_id": 1, "member_id": "nobody"}
_PRODUCER: Final = {"transactional_id": "tx", "producer_id": 99, "producer_epoch": 0}
_ANY_ACL: Final = {
    "resource_type_filter": 2,
    "resource_name_filter": "nothing",
    "pattern_type_filter": 3,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
NOWHERE: Final = UUID(int=12345)
"""The id of no topic."""
STATE_OF_NOWHERE: Final = {
    "group_id": "readers",
    "topics": [{"topic_id": NOWHERE, "partitions": [{"partition": 0, "leader_epoch": 0}]}],
}
O = Operation  # noqa: E741 - the table is read by its letters
_OWNER: Final = {"principal_type": "User", "principal_name": TOKEN_OWNER}
_EVERY_TOKEN: Final = (
    *_on(_D, "*", O.ALL),
    *_on(_U, f"User:{TOKEN_OWNER}", O.CREATE_TOKENS, O.DESCRIBE_TOKENS),
    *_cluster(O.ALL),
)

ROWS: Final = (
    Row(
        "produce",
        "produce",
        9,
        {
            "transactional_id": None,
            "acks": 1,
            "timeout": 5000,
            "topic_data": _orders({"index": 0, "records": _batch()}, "name", "partition_data"),
        },
        _on(_T, "orders", O.WRITE),
        (_on(_T, "orders", O.READ, O.CREATE),),
    ),
    Row(
        "fetch",
        "fetch",
        12,
        {
            "replica_id": -1,
            "max_wait": 0,
            "min_bytes": 0,
            "topics": _orders(
                {"partition": 0, "fetch_offset": 0, "log_start_offset": -1, "partition_max_bytes": 1000}, "topic"
            ),
            "forgotten_topics_data": [],
        },
        _on(_T, "orders", O.READ),
    ),
    Row(
        "list-offsets",
        "list_offsets",
        7,
        {"replica_id": -1, "isolation_level": 0, "topics": _orders({"partition_index": 0, "timestamp": -1})},
        _on(_T, "orders", O.DESCRIBE),
    ),
    Row(
        "metadata",
        "metadata",
        10,
        {
            "topics": [
                {"topic_id": None, "name": "orders"},
                {"topic_id": None, "name": "hidden"},
                {"topic_id": None, "name": "nowhere"},
            ],
            "allow_auto_topic_creation": False,
            "include_cluster_authorized_operations": True,
            "include_topic_authorized_operations": True,
        },
        (*_on(_T, "orders", O.DESCRIBE), *_on(_T, "nowhere", O.DESCRIBE), *_cluster(O.DESCRIBE)),
        (_on(_T, "orders", O.ALTER_CONFIGS), _on(_T, "orders", O.WRITE)),
    ),
    Row(
        "metadata-all",
        "metadata",
        10,
        {
            "topics": None,
            "include_cluster_authorized_operations": False,
            "include_topic_authorized_operations": True,
        },
        _on(_T, "orders", O.READ, O.DELETE),
    ),
    Row(
        "metadata-creates",
        "metadata",
        10,
        {
            "topics": [{"topic_id": None, "name": "t-created"}],
            "allow_auto_topic_creation": True,
            "include_cluster_authorized_operations": False,
            "include_topic_authorized_operations": False,
        },
        (),
        (_on(_T, "t-created", O.DESCRIBE),),
    ),
    Row(
        "describe-topic-partitions",
        "describe_topic_partitions",
        0,
        {"topics": [{"name": "orders"}, {"name": "hidden"}]},
        _on(_T, "orders", O.DESCRIBE),
    ),
    Row("describe-topic-partitions-all", "describe_topic_partitions", 0, {"topics": []}, _on(_T, "orders", O.DESCRIBE)),
    Row(
        "offset-commit",
        "offset_commit",
        8,
        {
            "group_id": "g-commit",
            "member_id": "",
            "topics": [*_orders(_COMMIT), {"name": "nowhere", "partitions": [_COMMIT]}],
        },
        (*_on(_G, "g-commit", O.READ), *_on(_T, "orders", O.READ), *_on(_T, "nowhere", O.READ)),
        (_on(_G, "g-commit", O.READ), _on(_T, "orders", O.READ)),
    ),
    Row(
        "offset-fetch",
        "offset_fetch",
        8,
        {
            "groups": [
                {
                    "group_id": "readers",
                    "topics": [
                        {"name": "orders", "partition_indexes": [0]},
                        {"name": "hidden", "partition_indexes": [0]},
                    ],
                },
                {"group_id": "other", "topics": [{"name": "orders", "partition_indexes": [0]}]},
            ]
        },
        (*_on(_G, "readers", O.DESCRIBE), *_on(_T, "orders", O.DESCRIBE)),
        (_on(_G, "readers", O.DESCRIBE), _on(_T, "orders", O.DESCRIBE)),
    ),
    Row(
        "offset-fetch-all",
        "offset_fetch",
        8,
        {"groups": [{"group_id": "readers", "topics": None}]},
        (*_on(_G, "readers", O.DESCRIBE), *_on(_T, "orders", O.DESCRIBE)),
        (_on(_G, "readers", O.READ),),
    ),
    Row(
        "find-group",
        "find_coordinator",
        4,
        {"key_type": 0, "coordinator_keys": ["readers", "other"]},
        _on(_G, "readers", O.DESCRIBE),
    ),
    Row(
        "find-transaction",
        "find_coordinator",
        4,
        {"key_type": 1, "coordinator_keys": ["tx", "other"]},
        _on(_X, "tx", O.DESCRIBE),
    ),
    Row(
        "join-group",
        "join_group",
        7,
        {
            "group_id": "readers",
            "session_timeout": 1,
            "rebalance_timeout": 1,
            "member_id": "",
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}],
        },
        _on(_G, "readers", O.READ),
        (_on(_G, "readers", O.DESCRIBE),),
    ),
    Row(
        "sync-group",
        "sync_group",
        5,
        {**_MEMBER, "protocol_type": "consumer", "protocol_name": "range", "assignments": []},
        _on(_G, "readers", O.READ),
    ),
    Row("heartbeat", "heartbeat", 4, _MEMBER, _on(_G, "readers", O.READ)),
    Row(
        "leave-group",
        "leave_group",
        4,
        {"group_id": "readers", "members": [{"member_id": "nobody"}]},
        _on(_G, "readers", O.READ),
    ),
    Row(
        "consumer-group-heartbeat",
        "consumer_group_heartbeat",
        0,
        {
            "group_id": "readers",
            "member_id": "nobody",
            "member_epoch": 7,
            "subscribed_topic_names": ["orders", "hidden"],
            "topic_partitions": None,
        },
        (*_on(_G, "readers", O.READ), *_on(_T, "orders", O.DESCRIBE), *_on(_T, "hidden", O.DESCRIBE)),
        ((*_on(_G, "readers", O.READ), *_on(_T, "orders", O.DESCRIBE)),),
    ),
    Row(
        "consumer-group-describe",
        "consumer_group_describe",
        0,
        {"group_ids": ["readers", "other"], "include_authorized_operations": True},
        _on(_G, "readers", O.DESCRIBE),
    ),
    Row(
        "share-group-heartbeat",
        "share_group_heartbeat",
        1,
        {
            "group_id": "readers",
            "member_id": "nobody",
            "member_epoch": 7,
            "subscribed_topic_names": ["orders", "hidden"],
        },
        (*_on(_G, "readers", O.READ), *_on(_T, "orders", O.DESCRIBE), *_on(_T, "hidden", O.DESCRIBE)),
        ((*_on(_G, "readers", O.READ), *_on(_T, "orders", O.DESCRIBE)),),
    ),
    Row(
        "share-group-describe",
        "share_group_describe",
        1,
        {"group_ids": ["readers", "other"], "include_authorized_operations": True},
        _on(_G, "readers", O.DESCRIBE),
    ),
    Row(
        "share-fetch",
        "share_fetch",
        2,
        {
            "group_id": "readers",
            "member_id": "nobody",
            "share_session_epoch": 7,
            "max_wait": 0,
            "min_bytes": 1,
            "max_records": 1,
            "batch_size": 1,
            "topics": [],
            "forgotten_topics_data": [],
        },
        _on(_G, "readers", O.READ),
    ),
    Row(
        "share-acknowledge",
        "share_acknowledge",
        2,
        {"group_id": "readers", "member_id": "nobody", "share_session_epoch": 7, "topics": []},
        _on(_G, "readers", O.READ),
    ),
    Row(
        "initialize-share-state",
        "initialize_share_group_state",
        0,
        {
            "group_id": "readers",
            "topics": [{"topic_id": NOWHERE, "partitions": [{"partition": 0, "state_epoch": 0, "start_offset": 0}]}],
        },
        _cluster(O.CLUSTER_ACTION),
    ),
    Row(
        "read-share-state",
        "read_share_group_state",
        0,
        {
            "group_id": "readers",
            "topics": [{"topic_id": NOWHERE, "partitions": [{"partition": 0, "leader_epoch": 0}]}],
        },
        _cluster(O.CLUSTER_ACTION),
    ),
    Row(
        "write-share-state",
        "write_share_group_state",
        1,
        {
            "group_id": "readers",
            "topics": [
                {
                    "topic_id": NOWHERE,
                    "partitions": [
                        {
                            "partition": 0,
                            "state_epoch": 0,
                            "leader_epoch": 0,
                            "start_offset": 0,
                            "state_batches": [],
                        }
                    ],
                }
            ],
        },
        _cluster(O.CLUSTER_ACTION),
    ),
    Row(
        "delete-share-state",
        "delete_share_group_state",
        0,
        {"group_id": "readers", "topics": [{"topic_id": NOWHERE, "partitions": [{"partition": 0}]}]},
        _cluster(O.CLUSTER_ACTION),
    ),
    Row(
        "read-share-summary",
        "read_share_group_state_summary",
        1,
        {
            "group_id": "readers",
            "topics": [{"topic_id": NOWHERE, "partitions": [{"partition": 0, "leader_epoch": 0}]}],
        },
        _cluster(O.CLUSTER_ACTION),
    ),
    Row(
        "describe-share-group-offsets",
        "describe_share_group_offsets",
        1,
        {
            "groups": [
                {
                    "group_id": "shared",
                    "topics": [{"topic_name": each, "partitions": [0]} for each in ("absent", "hidden")],
                }
            ]
        },
        (*_on(_G, "shared", O.DESCRIBE), *_on(_T, "absent", O.DESCRIBE)),
        (_on(_G, "shared", O.DESCRIBE),),
    ),
    Row(
        "alter-share-group-offsets",
        "alter_share_group_offsets",
        0,
        {
            "group_id": "readers",
            "topics": _orders({"partition_index": 0, "start_offset": 0}, "topic_name"),
        },
        (*_on(_G, "readers", O.READ), *_on(_T, "orders", O.READ)),
        (_on(_G, "readers", O.READ),),
    ),
    Row(
        "delete-share-group-offsets",
        "delete_share_group_offsets",
        0,
        {"group_id": "readers", "topics": [{"topic_name": "orders"}, {"topic_name": "hidden"}]},
        (*_on(_G, "readers", O.DELETE), *_on(_T, "orders", O.READ)),
        (_on(_G, "readers", O.DELETE),),
    ),
    Row(
        "streams-group-heartbeat",
        "streams_group_heartbeat",
        0,
        {
            "group_id": "readers",
            "member_id": "nobody",
            "member_epoch": 7,
            "endpoint_information_epoch": 0,
            **dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks", "client_tags")),
            **dict.fromkeys(("task_offsets", "task_end_offsets")),
            "topology": {
                "epoch": 0,
                "subtopologies": [
                    {
                        "subtopology_id": "0",
                        "source_topics": ["orders", "hidden"],
                        "source_topic_regex": [],
                        "state_changelog_topics": [],
                        "repartition_sink_topics": [],
                        "repartition_source_topics": [],
                        "copartition_groups": [],
                    }
                ],
            },
        },
        (*_on(_G, "readers", O.READ), *_on(_T, "orders", O.DESCRIBE), *_on(_T, "hidden", O.DESCRIBE)),
        ((*_on(_G, "readers", O.READ), *_on(_T, "orders", O.DESCRIBE)),),
    ),
    Row(
        "streams-group-describe",
        "streams_group_describe",
        0,
        {"group_ids": ["readers", "other"], "include_authorized_operations": True},
        _on(_G, "readers", O.DESCRIBE),
    ),
    Row(
        "describe-groups",
        "describe_groups",
        5,
        {"groups": ["readers", "other"], "include_authorized_operations": True},
        _on(_G, "readers", O.DESCRIBE, O.DELETE),
    ),
    Row(
        "list-groups", "list_groups", 4, {"states_filter": []}, _cluster(O.DESCRIBE), (_on(_G, "readers", O.DESCRIBE),)
    ),
    Row("delete-groups", "delete_groups", 2, {"groups_names": ["nobody", "other"]}, _on(_G, "nobody", O.DELETE)),
    Row(
        "offset-delete",
        "offset_delete",
        0,
        {"group_id": "readers", "topics": [{"name": "hidden", "partitions": [{"partition_index": 0}]}]},
        (*_on(_G, "readers", O.DELETE), *_on(_T, "hidden", O.READ)),
        (_on(_G, "readers", O.DELETE),),
    ),
    Row(
        "delete-records",
        "delete_records",
        2,
        {"topics": _orders({"partition_index": 1, "offset": 0}), "timeout": 5000},
        _on(_T, "orders", O.DELETE),
    ),
    Row(
        "offset-for-leader-epoch",
        "offset_for_leader_epoch",
        4,
        {"topics": _orders({"partition": 0, "leader_epoch": 0}, "topic")},
        _on(_T, "orders", O.DESCRIBE),
        (_cluster(O.CLUSTER_ACTION),),
    ),
    Row(
        "init-producer-id",
        "init_producer_id",
        4,
        {"transactional_id": None, "transaction_timeout": 1000},
        _cluster(O.IDEMPOTENT_WRITE),
        (_on(_T, "orders", O.WRITE), _on(_T, "orders", O.READ)),
    ),
    Row(
        "init-transaction",
        "init_producer_id",
        4,
        {"transactional_id": "tx2", "transaction_timeout": 1000},
        _on(_X, "tx2", O.WRITE),
        (_on(_X, "tx2", O.DESCRIBE),),
    ),
    Row(
        "init-two-phase",
        "init_producer_id",
        6,
        {"transactional_id": "tx3", "transaction_timeout": 1000, "enable2_pc": True},
        _on(_X, "tx3", O.WRITE, O.TWO_PHASE_COMMIT),
        (_on(_X, "tx3", O.WRITE), _on(_X, "tx3", O.TWO_PHASE_COMMIT)),
    ),
    Row(
        "add-partitions",
        "add_partitions_to_txn",
        3,
        {
            "v3_and_below_transactional_id": "tx",
            "v3_and_below_producer_id": 99,
            "v3_and_below_producer_epoch": 0,
            "v3_and_below_topics": [
                {"name": "orders", "partitions": [0]},
                {"name": "hidden", "partitions": [0]},
                {"name": "nowhere", "partitions": [0]},
            ],
        },
        (*_on(_X, "tx", O.WRITE), *_on(_T, "orders", O.WRITE), *_on(_T, "nowhere", O.WRITE)),
        (_on(_X, "tx", O.WRITE),),
    ),
    Row(
        "add-offsets",
        "add_offsets_to_txn",
        3,
        {**_PRODUCER, "group_id": "readers"},
        (*_on(_X, "tx", O.WRITE), *_on(_G, "readers", O.READ)),
        (_on(_X, "tx", O.WRITE),),
    ),
    Row("end-transaction", "end_txn", 3, {**_PRODUCER, "committed": True}, _on(_X, "tx", O.WRITE)),
    Row(
        "txn-offset-commit",
        "txn_offset_commit",
        3,
        {
            **_PRODUCER,
            "group_id": "readers",
            "topics": [{"name": "hidden", "partitions": [_COMMIT]}, {"name": "nowhere", "partitions": [_COMMIT]}],
        },
        (*_on(_X, "tx", O.WRITE), *_on(_G, "readers", O.READ), *_on(_T, "nowhere", O.READ)),
        (_on(_X, "tx", O.WRITE), (*_on(_X, "tx", O.WRITE), *_on(_G, "readers", O.READ))),
    ),
    Row(
        "write-markers",
        "write_txn_markers",
        1,
        {
            "markers": [
                {
                    "producer_id": 99,
                    "producer_epoch": 0,
                    "transaction_result": False,
                    "topics": [{"name": "nowhere", "partition_indexes": [0]}],
                    "coordinator_epoch": 0,
                }
            ]
        },
        _cluster(O.ALTER),
        (_cluster(O.CLUSTER_ACTION),),
    ),
    Row(
        "describe-transactions",
        "describe_transactions",
        0,
        {"transactional_ids": ["tx", "other"]},  # unknown ones: kio cannot read the start time -1
        _on(_X, "tx", O.DESCRIBE),
    ),
    Row(
        "list-transactions",
        "list_transactions",
        0,
        {"state_filters": [], "producer_id_filters": []},
        _on(_X, "tx2", O.DESCRIBE),
    ),
    Row(
        "describe-producers",
        "describe_producers",
        0,
        {
            "topics": [
                {"name": "hidden", "partition_indexes": [0]},
                {"name": "nowhere", "partition_indexes": [0]},
                {"name": "not/legal", "partition_indexes": [0]},
            ]
        },
        _on(_T, "hidden", O.READ),
    ),
    Row(
        "create-topics",
        "create_topics",
        7,
        {
            "topics": [
                {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
                for name in ("t-new", "t-denied", "orders")
            ],
            "validate_only": True,
        },
        (*_on(_T, "t-new", O.CREATE), *_on(_T, "orders", O.CREATE)),
        (_cluster(O.CREATE), (*_on(_T, "t-new", O.CREATE, O.DESCRIBE_CONFIGS),)),
    ),
    Row(
        "delete-topics",
        "delete_topics",
        6,
        {"topics": [{"name": name, "topic_id": None} for name in ("orders", "nowhere", "hidden")], "timeout": 5000},
        _on(_T, "nowhere", O.DELETE),
        (_on(_T, "orders", O.DESCRIBE),),
    ),
    Row(
        "create-partitions",
        "create_partitions",
        3,
        {
            "topics": [{"name": name, "count": 9, "assignments": None} for name in ("orders", "hidden")],
            "timeout": 5000,
            "validate_only": True,
        },
        _on(_T, "orders", O.ALTER),
    ),
    Row(
        "describe-configs",
        "describe_configs",
        4,
        {
            "resources": [
                {"resource_type": kind, "resource_name": name, "configuration_keys": ["no.such.property"]}
                for kind, name in ((2, "orders"), (2, "nowhere"), (4, ""), (32, "readers"))
            ]
        },
        (
            *_on(_T, "orders", O.DESCRIBE_CONFIGS),
            *_on(_G, "readers", O.DESCRIBE_CONFIGS),
            *_cluster(O.DESCRIBE_CONFIGS),
        ),
        (_on(_T, "nowhere", O.ALTER_CONFIGS),),
    ),
    Row(
        "alter-configs",
        "alter_configs",
        2,
        {
            "resources": [
                {"resource_type": kind, "resource_name": name, "configs": []}
                for kind, name in ((2, "orders"), (2, "nowhere"))
            ],
            "validate_only": True,
        },
        _on(_T, "orders", O.ALTER_CONFIGS),
    ),
    Row(
        "incremental-alter-configs",
        "incremental_alter_configs",
        1,
        {
            "resources": [
                {
                    "resource_type": kind,
                    "resource_name": name,
                    "configs": [{"name": key, "config_operation": 0, "value": value}],
                }
                for kind, name, key, value in (
                    (2, "orders", "retention.ms", "1000"),
                    (2, "hidden", "retention.ms", None),
                    (2, "nowhere", "retention.ms", "1000"),
                    (4, "", "log.retention.ms", "not a number"),
                    (32, "readers", "consumer.session.timeout.ms", "45000"),
                )
            ],
            "validate_only": True,
        },
        (*_on(_T, "orders", O.ALTER_CONFIGS), *_on(_G, "readers", O.ALTER_CONFIGS), *_cluster(O.ALTER_CONFIGS)),
    ),
    Row(
        "describe-cluster",
        "describe_cluster",
        0,
        {"include_cluster_authorized_operations": True},
        _cluster(O.DESCRIBE, O.ALTER_CONFIGS),
        (_cluster(O.CREATE),),
    ),
    Row(
        "describe-quorum",
        "describe_quorum",
        1,
        {"topics": [{"topic_name": "nowhere", "partitions": [{"partition_index": 0}]}]},
        _cluster(O.DESCRIBE),
    ),
    Row(
        "alter-reassignments",
        "alter_partition_reassignments",
        0,
        {"topics": [{"name": "orders", "partitions": [{"partition_index": 0, "replicas": None}]}]},
        _cluster(O.ALTER),
    ),
    Row("list-reassignments", "list_partition_reassignments", 0, {"topics": None}, _cluster(O.DESCRIBE)),
    Row(
        "elect-leaders",
        "elect_leaders",
        2,
        {"election_type": 0, "topic_partitions": [{"topic": "orders", "partitions": [0]}]},
        _cluster(O.ALTER),
    ),
    Row(
        "update-features",
        "update_features",
        1,
        {"feature_updates": [{"feature": "no.such", "max_version_level": 1}], "validate_only": True},
        _cluster(O.ALTER),
    ),
    Row(
        "alter-log-dirs",
        "alter_replica_log_dirs",
        2,
        {"dirs": [{"path": "/nowhere", "topics": [{"name": "orders", "partitions": [0]}]}]},
        _cluster(O.ALTER),
    ),
    Row("describe-log-dirs", "describe_log_dirs", 4, {"topics": []}, _cluster(O.DESCRIBE)),
    Row(
        "describe-quotas",
        "describe_client_quotas",
        1,
        {"components": [], "strict": False},
        _cluster(O.DESCRIBE_CONFIGS),
    ),
    Row(
        "alter-quotas",
        "alter_client_quotas",
        1,
        {
            "entries": [
                {
                    "entity": [{"entity_type": "user", "entity_name": "u"}],
                    "ops": [{"key": "producer_byte_rate", "value": 9.0, "remove": False}],
                }
            ],
            "validate_only": True,
        },
        _cluster(O.ALTER_CONFIGS),
    ),
    Row("describe-scram", "describe_user_scram_credentials", 0, {"users": [{"name": "nobody"}]}, _cluster(O.DESCRIBE)),
    Row(
        "alter-scram",
        "alter_user_scram_credentials",
        0,
        {"deletions": [{"name": "nobody", "mechanism": 1}], "upsertions": []},
        _cluster(O.ALTER),
    ),
    Row(
        "create-token",
        "create_delegation_token",
        3,
        {"owner_principal_type": "User", "owner_principal_name": "another", "renewers": [], "max_lifetime": -1},
        _on(_U, "User:another", O.CREATE_TOKENS),
        (
            _on(_U, "User:another", O.DESCRIBE_TOKENS),
            (*_on(_U, "User:other", O.CREATE_TOKENS), *_on(_D, "*", O.DESCRIBE)),
            _cluster(O.ALL),
        ),
    ),
    Row(
        "describe-token",
        "describe_delegation_token",
        3,
        {"owners": [_OWNER, {"principal_type": "User", "principal_name": "nobody"}]},
        _on(_U, f"User:{TOKEN_OWNER}", O.DESCRIBE_TOKENS),
        (
            _on(_D, "*", O.DESCRIBE),
            (*_on(_U, f"User:{TOKEN_OWNER}", O.CREATE_TOKENS), *_on(_U, "User:nobody", O.DESCRIBE_TOKENS)),
            _cluster(O.ALL),
        ),
    ),
    Row(
        "renew-token",
        "renew_delegation_token",
        2,
        {"hmac": TOKEN_HMAC, "renew_period": 600_000},
        (),
        (_EVERY_TOKEN,),
    ),
    Row(
        "expire-token",
        "expire_delegation_token",
        2,
        {"hmac": TOKEN_HMAC, "expiry_time_period": 600_000},
        (),
        (_EVERY_TOKEN,),
    ),
    Row("describe-acls", "describe_acls", 2, _ANY_ACL, _cluster(O.DESCRIBE)),
    Row(
        "create-acls",
        "create_acls",
        2,
        {
            "creations": [
                {
                    "resource_type": 4,
                    "resource_name": "no cluster",
                    "resource_pattern_type": 3,
                    "principal": "User:x",
                    "host": "*",
                    "operation": 3,
                    "permission_type": 3,
                }
            ]
        },
        _cluster(O.ALTER),
    ),
    Row("delete-acls", "delete_acls", 2, {"filters": [_ANY_ACL]}, _cluster(O.ALTER)),
    Row("list-config-resources", "list_config_resources", 1, {"resource_types": [2]}, _cluster(O.DESCRIBE_CONFIGS)),
    Row(
        "rules",
        "metadata",
        10,
        {
            "topics": [{"topic_id": None, "name": name} for name in ("r-a", "r-ab", "r-abc", "r-b")],
            "allow_auto_topic_creation": False,
            "include_cluster_authorized_operations": False,
            "include_topic_authorized_operations": True,
        },
        (),
        ((), (), (), ()),
    ),
)


def _rule(user: str, name: str, pattern: PatternType, host: str, operation: Operation, permission: Permission) -> Acl:
    return Acl(_T, name, pattern, f"User:{user}", host, operation, permission)


_ALLOW, _DENY = Permission.ALLOW, Permission.DENY
_LITERAL, _PREFIXED = PatternType.LITERAL, PatternType.PREFIXED

RULES: Final = (
    _rule("*", "r-b", _LITERAL, "*", O.DELETE, _DENY),
    _rule("rules-1", "r-", _PREFIXED, "*", O.READ, _ALLOW),
    _rule("rules-1", "r-ab", _LITERAL, "*", O.READ, _DENY),
    _rule("rules-2", "*", _LITERAL, "*", O.ALL, _ALLOW),
    _rule("rules-2", "r-ab", _PREFIXED, "*", O.DESCRIBE, _DENY),
    _rule("rules-3", "*", _LITERAL, "*", O.ALL, _ALLOW),
    _rule("rules-3", "r-abc", _LITERAL, "10.9.9.9", O.ALL, _DENY),
    _rule("rules-3", "r-ab", _PREFIXED, "127.0.0.1", O.WRITE, _DENY),
    _rule("rules-4", "r-ab", _PREFIXED, "*", O.ALTER_CONFIGS, _ALLOW),
    _rule("rules-4", "r-", _PREFIXED, "127.0.0.1", O.ALTER, _ALLOW),
    _rule("rules-5", "*", _PREFIXED, "*", O.ALL, _ALLOW),
)
"""ACLs of the users of the row `rules`, whose answer has the operations that they may do on each topic."""
