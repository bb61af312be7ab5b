"""What a client learns that may only DESCRIBE: one topic, group and transactional id, or the whole cluster.

Every name that it may not know begins with `hidden`; no byte of a response may contain it, unless the request did.
Secrets are `canary`. The codes are those of Kafka's KafkaApis with StandardAuthorizer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.clients.errors import RefusedError
from tests.support.authorization.describe_world import JAAS, admin_of, call, log_in, prepare
from tests.support.authorization.entities import request
from tests.support.daemon import Daemon, start_daemon

CLUSTER, TOPIC, GROUP, TRANSACTION = 31, 29, 30, 53
"""Codes: ..._AUTHORIZATION_FAILED."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    directory = tmp_path_factory.mktemp("describe-only")
    with start_daemon(
        directory,
        "listeners=SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config="
        f"org.apache.kafka.common.security.plain.PlainLoginModule required {JAAS};",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users=User:admin",
        "delegation.token.secret.key=canary-token",
        "connection.failed.authentication.delay.ms=0",
    ) as running:
        yield running


@pytest.fixture(scope="module")
def world(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> None:
    prepare(daemon, tmp_path_factory.mktemp("mirror") / "hidden.properties")


NAMES_NOTHING: list[tuple[str, int, dict[str, Any], int | None]] = [
    ("metadata", 12, {"topics": None, "include_topic_authorized_operations": True}, None),
    ("describe_topic_partitions", 0, {"topics": []}, None),
    ("offset_fetch", 8, {"groups": [{"group_id": "seen", "topics": None}]}, None),
    ("list_groups", 4, {"states_filter": []}, None),
    ("describe_groups", 5, {"groups": ["seen"], "include_authorized_operations": True}, None),
    ("describe_transactions", 0, {"transactional_ids": ["seen"]}, None),
    ("list_transactions", 0, {"state_filters": [], "producer_id_filters": []}, None),
    ("describe_cluster", 0, {"include_cluster_authorized_operations": True}, None),
    ("describe_delegation_token", 3, {"owners": None}, None),
    ("describe_producers", 0, {"topics": [{"name": "seen", "partition_indexes": [0]}]}, TOPIC),
    (
        "describe_configs",
        4,
        {"resources": [{"resource_type": 2, "resource_name": "seen", "configuration_keys": None}]},
        TOPIC,
    ),
    (
        "describe_configs",
        4,
        {"resources": [{"resource_type": 4, "resource_name": "", "configuration_keys": None}]},
        CLUSTER,
    ),
    ("describe_log_dirs", 4, {"topics": None}, CLUSTER),
    (
        "describe_quorum",
        1,
        {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]},
        CLUSTER,
    ),
    ("describe_client_quotas", 1, {"components": [], "strict": False}, CLUSTER),
    ("describe_user_scram_credentials", 0, {"users": None}, CLUSTER),
    ("list_config_resources", 1, {"resource_types": []}, CLUSTER),
    ("list_partition_reassignments", 0, {"topics": None}, CLUSTER),
]


SHOWN_TO_ADMIN = {
    "metadata",
    "describe_topic_partitions",
    "offset_fetch",
    "list_groups",
    "describe_transactions",
    "list_transactions",
    "describe_log_dirs",
    "describe_client_quotas",
    "describe_user_scram_credentials",
}
"""Responses that have a hidden name for the super user."""


def codes(answer: Any) -> set[int]:
    """Return all error codes of a response."""
    return {int(each) for each in re.findall(r"error_code=<ErrorCode\.\w+: (-?\d+)>", repr(answer))}


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize(("api", "version", "values", "code"), NAMES_NOTHING, ids=lambda each: str(each)[:40])
def test_a_client_that_may_describe_one_topic_sees_no_other_name(
    daemon: Daemon, api: str, version: int, values: dict[str, Any], code: int | None
) -> None:
    with log_in(daemon, "viewer") as wire:
        frame, answer = call(wire, api, version, values)
    assert b"hidden" not in frame
    assert b"canary" not in frame
    assert codes(answer) <= ({0} if code is None else {0, code})
    assert code is None or code in codes(answer)
    if api in SHOWN_TO_ADMIN:
        with log_in(daemon, "admin") as wire:
            assert b"hidden" in call(wire, api, version, values)[0]


def topics(name: str, **partition: Any) -> dict[str, Any]:
    return {"topics": [{"name": name, "partitions": [partition]}]}


def named(kind: str) -> tuple[str, str]:
    """Return the names of an existing resource and of one that does not exist, of the same length."""
    return f"hidden-{kind}", f"hidden-{'x' * len(kind)}"


REQUESTS_OF_ONE_NAME: list[tuple[str, int, str, Any, int]] = [
    (
        "metadata",
        12,
        "topic",
        lambda name: {
            "topics": [{"topic_id": None, "name": name}],
            "allow_auto_topic_creation": True,
            "include_topic_authorized_operations": True,
        },
        TOPIC,
    ),
    ("describe_topic_partitions", 0, "topic", lambda name: {"topics": [{"name": name}]}, TOPIC),
    (
        "list_offsets",
        7,
        "topic",
        lambda name: {"replica_id": -1, "isolation_level": 0, **topics(name, partition_index=0, timestamp=-1)},
        TOPIC,
    ),
    (
        "offset_for_leader_epoch",
        3,
        "topic",
        lambda name: {
            "replica_id": -1,
            "topics": [
                {"topic": name, "partitions": [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}]}
            ],
        },
        TOPIC,
    ),
    (
        "describe_producers",
        0,
        "topic",
        lambda name: {"topics": [{"name": name, "partition_indexes": [0]}]},
        TOPIC,
    ),
    (
        "describe_configs",
        4,
        "topic",
        lambda name: {"resources": [{"resource_type": 2, "resource_name": name, "configuration_keys": None}]},
        TOPIC,
    ),
    (
        "delete_records",
        2,
        "topic",
        lambda name: {**topics(name, partition_index=0, offset=0), "timeout": 1000},
        TOPIC,
    ),
    (
        "offset_commit",
        8,
        "topic",
        lambda name: {
            "group_id": "seen",
            "member_id": "",
            **topics(name, partition_index=0, committed_offset=1, committed_metadata=""),
        },
        GROUP,
    ),
    ("offset_fetch", 8, "group", lambda name: {"groups": [{"group_id": name, "topics": None}]}, GROUP),
    ("describe_groups", 5, "group", lambda name: {"groups": [name], "include_authorized_operations": True}, GROUP),
    (
        "consumer_group_describe",
        0,
        "group",
        lambda name: {"group_ids": [name], "include_authorized_operations": False},
        GROUP,
    ),
    ("delete_groups", 2, "group", lambda name: {"groups_names": [name]}, GROUP),
    ("find_coordinator", 4, "group", lambda name: {"key_type": 0, "coordinator_keys": [name]}, GROUP),
    ("find_coordinator", 4, "tx", lambda name: {"key_type": 1, "coordinator_keys": [name]}, TRANSACTION),
    (
        "init_producer_id",
        4,
        "tx",
        lambda name: {"transactional_id": name, "transaction_timeout": 1000},
        TRANSACTION,
    ),
]


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize(
    ("api", "version", "kind", "values", "code"),
    REQUESTS_OF_ONE_NAME,
    ids=[f"{row[0]}-{row[2]}" for row in REQUESTS_OF_ONE_NAME],
)
def test_what_exists_and_what_does_not_are_refused_alike(
    daemon: Daemon, api: str, version: int, kind: str, values: Any, code: int
) -> None:
    existing, missing = named(kind)
    with log_in(daemon, "viewer") as wire:
        wire.send(request(api, version, values(existing)))
        of_existing = wire.receive_frame()[4:]
        wire.send(request(api, version, values(missing)))
        of_missing = wire.receive_frame()[4:]
    assert of_existing.replace(existing.encode(), missing.encode()) == of_missing
    assert code.to_bytes(2, "big") in of_existing


async def test_a_client_that_may_describe_the_cluster_sees_names_and_no_secrets(daemon: Daemon, world: None) -> None:
    with log_in(daemon, "watcher") as wire:
        for api, version, values, code in NAMES_NOTHING:
            if code != CLUSTER or api in ("describe_configs", "describe_client_quotas", "list_config_resources"):
                continue
            frame, answer = call(wire, api, version, values)
            assert codes(answer) <= {0}, api
            assert b"canary" not in frame
            assert (b"hidden" in frame) == (api in SHOWN_TO_ADMIN), api
        for api in ("describe_configs", "describe_client_quotas", "list_config_resources"):
            version, values = next(row[1:3] for row in NAMES_NOTHING if row[0] == api and row[3] == CLUSTER)
            frame, answer = call(wire, api, version, values)
            assert CLUSTER in codes(answer), api
            assert b"hidden" not in frame
    async with admin_of(daemon, "watcher") as admin:
        (found,) = await admin.mirrors.describe_all()
        assert found.name == "hidden-mirror"
        assert "canary" not in repr(found)
        with pytest.raises(RefusedError, match="CLUSTER_AUTHORIZATION_FAILED"):
            await admin.mirrors.pause("hidden-mirror")
    async with admin_of(daemon, "viewer") as admin:
        with pytest.raises(RefusedError, match="CLUSTER_AUTHORIZATION_FAILED"):
            await admin.mirrors.describe_all()
        with pytest.raises(RefusedError, match="CLUSTER_AUTHORIZATION_FAILED"):
            await admin.mirrors.describe("hidden-none")
    assert "canary" not in daemon.log
