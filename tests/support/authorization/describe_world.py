"""A broker with names that a client with DESCRIBE on one of each kind may not learn: they begin with `hidden`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from barnabas import Admin, AdminConfig
from barnabas.clients.security.settings import SecuritySettings
from barnabas.protocol.messages.security.resources import CLUSTER_NAME, Operation, ResourceType
from tests.support.authorization.entities import request
from tests.support.daemon import Daemon
from tests.support.kafka.kafka_wire import KafkaWire, answer_of
from tests.support.storage.records import plain

USERS = ("admin", "viewer", "watcher")
JAAS = " ".join(f'user_{user}="canary-{user}"' for user in USERS)
DESCRIBE = Operation.DESCRIBE
GRANTS = (
    ("viewer", ResourceType.TOPIC, "seen"),
    ("viewer", ResourceType.GROUP, "seen"),
    ("viewer", ResourceType.TRANSACTIONAL_ID, "seen"),
    ("watcher", ResourceType.CLUSTER, CLUSTER_NAME),
)


def log_in(daemon: Daemon, user: str) -> KafkaWire:
    wire = KafkaWire(daemon.host, daemon.port)
    assert wire.call("sasl_handshake", 1, mechanism="PLAIN").error_code.value == 0
    assert wire.call("sasl_authenticate", 2, auth_bytes=f"\0{user}\0canary-{user}".encode()).error_code.value == 0
    return wire


def admin_of(daemon: Daemon, user: str) -> Admin:
    security = SecuritySettings.from_properties(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": f"canary-{user}",
        }
    )
    return Admin(AdminConfig(bootstrap=daemon.bootstrap, security=security))


def call(wire: KafkaWire, api: str, version: int, values: dict[str, Any]) -> tuple[bytes, Any]:
    """Return the bytes of a response and the response."""
    wire.send(request(api, version, values))
    frame = wire.receive_frame()
    return frame, answer_of(api, version, frame)[1]


def prepare(daemon: Daemon, login: Path) -> None:
    """Create topics, groups with offsets, transactions, users, quotas, a token, ACLs, and a mirror with the login."""
    login.touch(mode=0o600)
    login.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=m\nsasl.password=canary\n")
    commit = {"partition_index": 0, "committed_offset": 1, "committed_metadata": "hidden-metadata"}
    with log_in(daemon, "admin") as wire:
        for name in ("seen", "hidden-topic"):
            wire.topic_id(name)
            assert wire.produce(9, name, bytes(plain(3))).error_code == 0
        topics = [{"name": "hidden-topic", "partitions": [commit]}]
        for group_id in ("seen", "hidden-group"):
            call(wire, "offset_commit", 8, {"group_id": group_id, "member_id": "", "topics": topics})
        for name in ("seen", "hidden-tx"):
            values = {"transactional_id": name, "transaction_timeout": 60_000}
            producer = call(wire, "init_producer_id", 4, values)[1]
            assert producer.error_code == 0
            begun = {
                "v3_and_below_transactional_id": name,
                "v3_and_below_producer_id": producer.producer_id,
                "v3_and_below_producer_epoch": producer.producer_epoch,
                "v3_and_below_topics": [{"name": each, "partitions": [0]} for each in ("seen", "hidden-topic")],
            }
            call(wire, "add_partitions_to_txn", 3, begun)
        upsertion = {
            "name": "hidden-user",
            "mechanism": 1,
            "iterations": 4096,
            "salt": b"canary",
            "salted_password": b"canary",
        }
        assert (
            call(wire, "alter_user_scram_credentials", 0, {"deletions": [], "upsertions": [upsertion]})[1]
            .results[0]
            .error_code
            == 0
        )
        entity = [{"entity_type": "user", "entity_name": "hidden-user"}]
        operation = {"key": "producer_byte_rate", "value": 1e9, "remove": False}
        quota = {"entries": [{"entity": entity, "ops": [operation]}], "validate_only": False}
        assert call(wire, "alter_client_quotas", 1, quota)[1].entries[0].error_code == 0
        creations = [
            {
                "resource_type": int(kind),
                "resource_name": name,
                "resource_pattern_type": 3,
                "principal": f"User:{user}",
                "host": "*",
                "operation": int(DESCRIBE),
                "permission_type": 3,
            }
            for user, kind, name in GRANTS
        ]
        assert {
            each.error_code.value for each in call(wire, "create_acls", 2, {"creations": creations})[1].results
        } == {0}
        token: dict[str, Any] = {
            "owner_principal_type": None,
            "owner_principal_name": None,
            "renewers": [],
            "max_lifetime": -1,
        }
        wire.send(request("create_delegation_token", 3, token))
        assert wire.receive_frame()[5:7] == bytes(2)

    async def mirror() -> None:
        async with admin_of(daemon, "admin") as admin:
            await admin.mirrors.create(
                "hidden-mirror", bootstrap=["127.0.0.1:1"], topics=["m"], command_config=str(login)
            )

    asyncio.run(mirror())
