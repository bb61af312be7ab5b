"""The authorization table: the answers of every API are those that Apache Kafka 4.3.0 gave with the same ACLs.

Kafka's answers are in data/kafka-4.3.0.json; tests/interop/security/test_authorization_kafka.py compares and records
them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.protocol.kafka.apis import KAFKA_APIS
from barnabas.protocol.messages.api_key import ApiKey
from tests.support.authorization.entities import request
from tests.support.authorization.rows import ROWS, Row
from tests.support.authorization.table import (
    STANDARD_AUTHORIZER,
    TOKEN_SECRET,
    answers,
    jaas,
    log_in,
    prepare,
    start_coordinators,
)
from tests.support.daemon import Daemon, start_daemon
from tests.support.eventually import eventually

RECORDED = json.loads((Path(__file__).parent / "data" / "kafka-4.3.0.json").read_text())
WITHOUT_CHECKS = {
    ApiKey.API_VERSIONS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(
        tmp_path_factory.mktemp("authorization"),
        "listeners=SECURE://127.0.0.1:0",
        "listener.security.protocol.map=SECURE:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms=PLAIN",
        f"listener.name.secure.plain.sasl.jaas.config={jaas()}",
        f"authorizer.class.name={STANDARD_AUTHORIZER}",
        "super.users=User:admin",
        f"delegation.token.secret.key={TOKEN_SECRET}",
        "audit.log.path=audit.log",
        "unstable.api.versions.enable=true",
        "transaction.two.phase.commit.enable=true",
    ) as daemon:
        yield daemon
        assert "a bug" not in daemon.log
        assert "Traceback" not in daemon.log


@pytest.fixture(scope="module")
def port(daemon: Daemon) -> int:
    found = re.search(r"listener=SECURE://127\.0\.0\.1:0 port=(\d+)", daemon.log)
    assert found is not None
    port = int(found[1])
    prepare(port)
    start_coordinators(port)
    return port


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_each_user_gets_the_answer_of_kafka(port: int, row: Row) -> None:
    assert answers(port, row) == RECORDED[row.name]


def test_every_api_that_checks_anything_is_in_the_table() -> None:
    rows = {row.api for row in ROWS}
    served = {api.key for api in KAFKA_APIS}
    assert {each.label for each in served - WITHOUT_CHECKS} == rows


def test_denials_and_allowed_requests_differ_in_each_row() -> None:
    for name, answers_of_kafka in RECORDED.items():
        if name == "metadata-creates":
            continue  # neither DESCRIBE nor nothing creates a topic
        assert len({tuple(each) for each in answers_of_kafka.values()}) > 1, name


def test_a_created_acl_holds_with_the_next_request_and_a_deleted_one_no_more(port: int) -> None:
    acl = {"resource_type": 2, "resource_name": "orders", "principal": "User:fetch-0", "host": "*"}
    row = next(row for row in ROWS if row.name == "fetch")
    with log_in(port, "admin") as admin:
        denied = answers(port, row)["fetch-0"]
        changes = {**acl, "operation": 3, "permission_type": 3}
        admin.send(request("create_acls", 2, {"creations": [{**changes, "resource_pattern_type": 3}]}))
        assert admin.receive("create_acls", 2).results[0].error_code.value == 0
        allowed = answers(port, row)["fetch-0"]
        gone = {
            "resource_type_filter": 2,
            "resource_name_filter": "orders",
            "pattern_type_filter": 3,
            "principal_filter": "User:fetch-0",
            "host_filter": None,
            "operation": 1,
            "permission_type": 1,
        }
        admin.send(request("delete_acls", 2, {"filters": [gone]}))
        assert len(admin.receive("delete_acls", 2).filter_results[0].matching_acls) == 1
    assert "responses[orders].partitions[0].error_code=29" in denied
    assert "responses[orders].partitions[0].error_code=0" in allowed
    assert answers(port, row)["fetch-0"] == denied


def test_a_missing_topic_is_created_for_clients_that_may_create_it(port: int) -> None:
    fields = {
        "topics": [{"topic_id": None, "name": "t-auto"}],
        "allow_auto_topic_creation": True,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    }
    acl = {"resource_type": 2, "resource_name": "t-auto", "resource_pattern_type": 3, "host": "*"}
    with log_in(port, "admin") as admin, log_in(port, "metadata-creates-0") as client:

        def ask(*operations: int) -> int:
            for operation in operations:
                granted = {**acl, "principal": "User:metadata-creates-0", "operation": operation, "permission_type": 3}
                admin.send(request("create_acls", 2, {"creations": [granted]}))
                assert admin.receive("create_acls", 2).results[0].error_code.value == 0
            client.send(request("metadata", 10, fields))
            return int(client.receive("metadata", 10).topics[0].error_code.value)

        describe, create = 8, 5
        assert ask() == 29
        assert ask(describe) == 29
        assert ask(create) == 0
        # The table has an API that lists all topics.
        gone = {"topics": [{"name": "t-auto", "topic_id": None}], "timeout": 5000}
        admin.send(request("delete_topics", 6, gone))
        assert admin.receive("delete_topics", 6).responses[0].error_code.value == 0


def test_denials_are_lines_of_the_audit_log(port: int, daemon: Daemon) -> None:
    row = next(row for row in ROWS if row.name == "end-transaction")
    path = Path(daemon.directory) / "audit.log"

    def find() -> dict[str, str] | None:
        answers(port, row)  # again, where the denials of other tests used up the lines of this second
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert not [line for line in lines if line["result"] == "allowed"]
        return next((line for line in lines if line.get("principal") == "User:end-transaction-0"), None)

    line = eventually(find, what="the denial in the audit log")
    assert line.pop("time").endswith("Z")
    assert line == {
        "result": "denied",
        "principal": "User:end-transaction-0",
        "host": "127.0.0.1",
        "api": "end_txn",
        "operation": "WRITE",
        "resource": "TRANSACTIONAL_ID",
        "name": "tx",
        "rule": "DefaultDeny",
    }
