"""Runs the authorization table against a broker with StandardAuthorizer and SASL/PLAIN users."""

from __future__ import annotations

import time
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.security.acls import Acl
from barnabas.protocol.messages.security.resources import PatternType, Permission
from barnabas.protocol.uuids import uuid_text
from tests.support.authorization.entities import outcome, request
from tests.support.authorization.rows import (
    NOWHERE,
    RENEWERS,
    ROWS,
    RULES,
    STATE_OF_NOWHERE,
    TOKEN_HMAC,
    TOKEN_OWNER,
    Grant,
    Row,
)
from tests.support.authorization.tokens import described_tokens, token_outcome
from tests.support.eventually import eventually
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.wire_producer import WAIT_S

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SUPER_USER = "admin"
PASSWORD = "secret"
TOKEN_SECRET = "token-secret"
"""The delegation.token.secret.key of both brokers."""


def cases(row: Row) -> list[tuple[str, tuple[Grant, ...]]]:
    """Return the users of a row with their grants: none, each stage, all."""
    stages = [(), *row.stages, row.grants]
    return [(f"{row.name}-{number}", grants) for number, grants in enumerate(stages)]


def users() -> list[str]:
    """Return all users that log in."""
    return [SUPER_USER, *(user for row in ROWS for user, _ in cases(row))]


def jaas() -> str:
    """Return the JAAS line of the users, for sasl.jaas.config of PLAIN."""
    options = " ".join(f'user_{user}="{PASSWORD}"' for user in users())
    return f"org.apache.kafka.common.security.plain.PlainLoginModule required {options};"


def log_in(port: int, user: str) -> KafkaWire:
    """Return a connection of a user."""
    kafka = KafkaWire("127.0.0.1", port)
    assert kafka.call("sasl_handshake", 1, mechanism="PLAIN").error_code.value == 0
    token = f"\0{user}\0{PASSWORD}".encode()
    assert kafka.call("sasl_authenticate", 2, auth_bytes=token).error_code.value == 0
    return kafka


def prepare(port: int) -> None:
    """Create the world of the rows, and the ACLs of all users."""
    with log_in(port, SUPER_USER) as kafka:
        topics: list[dict[str, Any]] = [
            {"name": name, "num_partitions": 2, "replication_factor": 1, "assignments": [], "configs": []}
            for name in ("orders", "hidden")
        ]
        kafka.send(request("create_topics", 7, {"topics": topics}))
        assert [each.error_code.value for each in kafka.receive("create_topics", 7).topics] == [0, 0]
        granted = [
            Acl(kind, name, PatternType.LITERAL, f"User:{user}", "*", operation, Permission.ALLOW)
            for row in ROWS
            for user, grants in cases(row)
            for kind, name, operation in grants
        ]
        creations = [
            {
                "resource_type": int(acl.resource_type),
                "resource_name": acl.resource_name,
                "resource_pattern_type": int(acl.pattern_type),
                "principal": acl.principal,
                "host": acl.host,
                "operation": int(acl.operation),
                "permission_type": int(acl.permission),
            }
            for acl in (*granted, *RULES)
        ]
        kafka.send(request("create_acls", 2, {"creations": creations}))
        assert {each.error_code.value for each in kafka.receive("create_acls", 2).results} == {0}
        create_token(kafka)


def create_token(kafka: KafkaWire) -> None:
    """Create the token of the rows; wait until it is described, which Kafka's broker does a moment later."""
    values = {
        "owner_principal_type": "User",
        "owner_principal_name": TOKEN_OWNER,
        "renewers": [{"principal_type": "User", "principal_name": name} for name in RENEWERS],
        "max_lifetime": -1,
    }
    kafka.send(request("create_delegation_token", 3, values))
    assert token_outcome("create_delegation_token", kafka.receive_frame()) == ["error_code=0"]
    eventually(lambda: _token_hmac(kafka), what="the token is described")


def _token_hmac(kafka: KafkaWire) -> bytes | None:
    kafka.send(request("describe_delegation_token", 3, {"owners": None}))
    tokens = described_tokens(kafka.receive_frame())
    return next((token.hmac for token in tokens if token.owner == f"User:{TOKEN_OWNER}"), None)


def start_coordinators(port: int) -> None:
    """Create the groups and the transactional id of the rows; Kafka's coordinators take a moment."""
    commit = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
    topics = [{"name": name, "partitions": [commit]} for name in ("orders", "hidden")]
    codes: set[int] = set()
    with log_in(port, SUPER_USER) as kafka:
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            kafka.call("find_coordinator", 4, key_type=0, coordinator_keys=("readers",))
            kafka.call("find_coordinator", 4, key_type=1, coordinator_keys=("tx2",))
            kafka.send(request("init_producer_id", 4, {"transactional_id": "tx2", "transaction_timeout": 1000}))
            codes = {kafka.receive("init_producer_id", 4).error_code.value}
            for group_id in ("readers", "g-commit"):
                kafka.send(request("offset_commit", 8, {"group_id": group_id, "member_id": "", "topics": topics}))
                answer = kafka.receive("offset_commit", 8)
                codes.update(part.error_code.value for topic in answer.topics for part in topic.partitions)
            kafka.call("find_coordinator", 6, key_type=2, coordinator_keys=(f"readers:{uuid_text(NOWHERE.bytes)}:0",))
            kafka.send(request("read_share_group_state_summary", 1, STATE_OF_NOWHERE))
            (state,) = kafka.receive("read_share_group_state_summary", 1).results
            codes.discard(0)
            codes.update({state.partitions[0].error_code.value} - {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
            if not codes:
                return
            time.sleep(0.02)  # polling another process with a deadline
    raise AssertionError(f"the coordinators did not start: {codes}")


def answers(port: int, row: Row) -> dict[str, list[str]]:
    """Return the outcomes of a row's request, by user."""
    return {user: _answer(port, user, row) for user, _ in cases(row)}


def _answer(port: int, user: str, row: Row) -> list[str]:
    """Send a row's request, again while the broker is loading: Kafka's first producer ids take a moment."""
    values = row.request
    if values.get("hmac") == TOKEN_HMAC:
        with log_in(port, SUPER_USER) as kafka:
            values = {**values, "hmac": _token_hmac(kafka)}
    with log_in(port, user) as kafka:
        deadline = time.monotonic() + WAIT_S
        while True:
            kafka.send(request(row.api, row.version, values))
            if row.api.endswith("_delegation_token"):
                found = token_outcome(row.api, kafka.receive_frame())
            else:
                found = outcome(kafka.receive(row.api, row.version))
            is_loading = any(each.endswith(("error_code=14", "error_code=15")) for each in found)
            if not is_loading or time.monotonic() > deadline:
                return found
            time.sleep(0.02)  # polling another process with a deadline
