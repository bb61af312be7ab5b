"""Sessions of different users on one broker: both dialects, repeated requests, long polls, expressions, assignments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from tests.broker.conftest import Batch
from tests.support.authorization.entities import request
from tests.support.authorization.table import PASSWORD, STANDARD_AUTHORIZER
from tests.support.daemon import Daemon, start_daemon
from tests.support.frame_connection import FrameConnection
from tests.support.kafka.fetch_sessions import SessionFetcher
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.metrics import wait_for_metric
from tests.support.native.native_frames import answer_fields, native_request
from tests.support.storage.records import plain

USERS = ("admin", "alice", "bob", "carol")
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
ANONYMOUS = "User:ANONYMOUS"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    users = " ".join(f'user_{user}="{PASSWORD}"' for user in USERS)
    with start_daemon(
        tmp_path_factory.mktemp("sessions"),
        "listeners=OPEN://127.0.0.1:0,SECURE://127.0.0.1:0",
        "listener.security.protocol.map=OPEN:PLAINTEXT,SECURE:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms=PLAIN",
        f"listener.name.secure.plain.sasl.jaas.config={PLAIN} {users};",
        f"authorizer.class.name={STANDARD_AUTHORIZER}",
        "super.users=User:admin",
    ) as daemon:
        yield daemon
        assert "a bug" not in daemon.log
        assert "Traceback" not in daemon.log


@pytest.fixture
def admin(daemon: Daemon) -> Iterator[KafkaWire]:
    with log_in(daemon, "admin") as kafka:
        yield kafka


def log_in(daemon: Daemon, user: str) -> KafkaWire:
    found = re.search(r"listener=SECURE://127\.0\.0\.1:0 port=(\d+)", daemon.log)
    assert found is not None
    kafka = KafkaWire(daemon.host, int(found[1]))
    assert kafka.call("sasl_handshake", 1, mechanism="PLAIN").error_code.value == 0
    assert kafka.call("sasl_authenticate", 2, auth_bytes=f"\0{user}\0{PASSWORD}".encode()).error_code.value == 0
    return kafka


def ask(kafka: KafkaWire, api: str, version: int, **values: Any) -> Any:
    kafka.send(request(api, version, values))
    return kafka.receive(api, version)


def create(admin: KafkaWire, *topics: str) -> dict[str, UUID]:
    new = [
        {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
        for name in topics
    ]
    answer = ask(admin, "create_topics", 7, topics=new)
    assert {each.error_code.value for each in answer.topics} == {0}
    return {each.name: each.topic_id for each in answer.topics}


def grant(admin: KafkaWire, principal: str, kind: ResourceType, name: str, operation: Operation) -> None:
    acl = {
        "resource_type": int(kind),
        "resource_name": name,
        "resource_pattern_type": 3,
        "principal": principal,
        "host": "*",
        "operation": int(operation),
        "permission_type": 3,
    }
    assert ask(admin, "create_acls", 2, creations=[acl]).results[0].error_code.value == 0


def revoke(admin: KafkaWire, principal: str, kind: ResourceType, name: str) -> None:
    selected = {
        "resource_type_filter": int(kind),
        "resource_name_filter": name,
        "pattern_type_filter": 3,
        "principal_filter": principal,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    (result,) = ask(admin, "delete_acls", 2, filters=[selected]).filter_results
    assert len(result.matching_acls) >= 1


def test_a_producer_is_refused_once_its_acl_is_deleted(daemon: Daemon, admin: KafkaWire, batch: Batch) -> None:
    create(admin, "repeated")
    grant(admin, ANONYMOUS, TOPIC, "repeated", Operation.WRITE)
    with KafkaWire(daemon.host, daemon.port) as kafka:
        codes = [kafka.produce(9, "repeated", batch()).error_code.value for _ in range(5)]
        revoke(admin, ANONYMOUS, TOPIC, "repeated")
        codes += [kafka.produce(9, "repeated", batch()).error_code.value for _ in range(2)]
        grant(admin, ANONYMOUS, TOPIC, "repeated", Operation.ALL)
        codes.append(kafka.produce(9, "repeated", batch()).error_code.value)
    assert codes == [0, 0, 0, 0, 0, 29, 29, 0]


def test_a_repeated_transactional_batch_needs_its_id(daemon: Daemon, admin: KafkaWire, batch: Batch) -> None:
    create(admin, "transactional")
    grant(admin, ANONYMOUS, TOPIC, "transactional", Operation.WRITE)
    changed = batch()
    with KafkaWire(daemon.host, daemon.port) as kafka:
        assert kafka.produce(9, "transactional", changed).error_code.value == 0
        changed = batch()
        changed[22] |= 0x10  # the transactional bit; the CRC is looked at later
        assert kafka.produce(9, "transactional", changed).error_code.value == 53
        assert kafka.produce(9, "transactional", changed).error_code.value == 53


def test_the_native_dialect_is_refused_and_allowed_like_kafkas(daemon: Daemon, admin: KafkaWire, batch: Batch) -> None:
    create(admin, "native")
    with FrameConnection(daemon.host, daemon.port) as native:

        def code(api: ApiKey, row: list[int], records: bytes = b"") -> int:
            native.socket.sendall(native_request(api, {"acks": 1, "topics": [["native", [row]]]}, records))
            *_, error, body = answer_fields(native.receive_frame())
            assert error == 0, body
            found: int = body["topics"][0][1][0][1]
            return found

        def codes() -> tuple[int, int]:
            records = bytes(batch())
            return code(ApiKey.PRODUCE, [0, len(records)], records), code(ApiKey.FETCH, [0, 0, 1 << 20])

        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert codes() == (refused, refused)
        grant(admin, ANONYMOUS, TOPIC, "native", Operation.WRITE)
        assert codes() == (ErrorCode.NONE, refused)
        grant(admin, ANONYMOUS, TOPIC, "native", Operation.READ)
        assert codes() == (ErrorCode.NONE, ErrorCode.NONE)


def test_a_fetch_that_waits_gets_no_records_after_its_acl_is_deleted(
    daemon: Daemon, admin: KafkaWire, batch: Batch
) -> None:
    create(admin, "waits")
    grant(admin, "User:alice", TOPIC, "waits", Operation.READ)
    entry = {"partition": 0, "fetch_offset": 0, "log_start_offset": -1, "partition_max_bytes": 1000}
    with log_in(daemon, "alice") as alice:
        fields = {"replica_id": -1, "max_wait": 20_000, "min_bytes": 1, "forgotten_topics_data": []}
        alice.send(request("fetch", 12, {**fields, "topics": [{"topic": "waits", "partitions": [entry]}]}))
        revoke(admin, "User:alice", TOPIC, "waits")
        assert admin.produce(9, "waits", batch()).error_code.value == 0
        (found,) = alice.receive("fetch", 12).responses[0].partitions
    assert (found.error_code.value, found.records or b"") == (29, b"")


def heartbeat(kafka: KafkaWire, group: str, member: str, epoch: int, **subscription: Any) -> Any:
    return ask(
        kafka,
        "consumer_group_heartbeat",
        1,
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        rebalance_timeout=10_000,
        topic_partitions=[],
        **subscription,
    )


def test_an_expression_matches_only_topics_that_its_client_may_describe(daemon: Daemon, admin: KafkaWire) -> None:
    ids = create(admin, "logs-seen", "logs-hidden")
    grant(admin, "User:bob", GROUP, "expressions", Operation.READ)
    grant(admin, "User:bob", TOPIC, "logs-seen", Operation.READ)
    with log_in(daemon, "bob") as bob:
        answer = heartbeat(bob, "expressions", "m", 0, subscribed_topic_regex="logs-.*")
    assert answer.error_code.value == 0, answer
    assert [each.topic_id for each in answer.assignment.topic_partitions] == [ids["logs-seen"]]


def test_a_group_with_a_hidden_topic_is_described_without_its_members(daemon: Daemon, admin: KafkaWire) -> None:
    create(admin, "group-seen", "group-hidden")
    joined = heartbeat(admin, "described", "m", 0, subscribed_topic_names=["group-seen", "group-hidden"])
    assert joined.error_code.value == 0, joined
    grant(admin, "User:carol", GROUP, "described", Operation.DESCRIBE)
    grant(admin, "User:carol", TOPIC, "group-seen", Operation.DESCRIBE)
    with log_in(daemon, "carol") as carol:
        fields = {"group_ids": ["described"], "include_authorized_operations": True}
        (hidden,) = ask(carol, "consumer_group_describe", 0, **fields).groups
        grant(admin, "User:carol", TOPIC, "group-hidden", Operation.DESCRIBE)
        (shown,) = ask(carol, "consumer_group_describe", 0, **fields).groups
    assert (hidden.error_code.value, hidden.members) == (29, ())
    assert hidden.error_message == "The group has described topic(s) that the client is not authorized to describe."
    assert (shown.error_code.value, len(shown.members), shown.authorized_operations) == (0, 1, 1 << 8)


def test_a_name_of_an_id_shows_only_to_clients_that_may_describe_it(daemon: Daemon, admin: KafkaWire) -> None:
    (topic_id,) = create(admin, "by-id").values()
    with log_in(daemon, "carol") as carol:

        def answers() -> tuple[Any, ...]:
            deleted = ask(carol, "delete_topics", 6, topics=[{"name": None, "topic_id": topic_id}], timeout=1000)
            fields = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": False}
            asked = [{"topic_id": topic_id, "name": None}]
            described = ask(carol, "metadata", 12, topics=asked, **fields)
            return tuple((each.error_code.value, each.name) for each in (deleted.responses[0], described.topics[0]))

        assert answers() == ((29, None), (29, None))
        grant(admin, "User:carol", TOPIC, "by-id", Operation.DESCRIBE)
        assert answers() == ((29, "by-id"), (0, "by-id"))


def test_a_fetch_session_obeys_acls_that_change_and_the_user_who_continues_it(daemon: Daemon, admin: KafkaWire) -> None:
    create(admin, "settled", "open")
    places = {("settled", 0): 0, ("open", 0): 0}
    for topic, _ in places:
        grant(admin, ANONYMOUS, TOPIC, topic, Operation.READ)
    grant(admin, "User:bob", TOPIC, "open", Operation.READ)
    denied = ("settled", 0, int(ErrorCode.TOPIC_AUTHORIZATION_FAILED), -1, -1, 0)
    allowed = ("settled", 0, 0, 0, 0, 0)
    with KafkaWire(daemon.host, daemon.port) as kafka, log_in(daemon, "bob") as bob:
        fetcher = SessionFetcher(kafka, 12)
        fetcher.open(places)
        assert fetcher.fetch({}).results == []
        revoke(admin, ANONYMOUS, TOPIC, "settled")
        assert fetcher.fetch({}).results == [denied]
        fetcher.send({}, max_wait_ms=20_000)
        wait_for_metric(daemon, "barnabas_fetches_waiting", 1)
        assert admin.produce(9, "open", plain(1)).error_code == 0
        records, refused = fetcher.receive().results
        assert (records[:5], refused) == (("open", 0, 0, 1, 0), denied)
        assert fetcher.fetch({("open", 0): 1}).results == [denied]
        grant(admin, ANONYMOUS, TOPIC, "settled", Operation.READ)
        assert fetcher.fetch({}).results == [allowed]
        assert fetcher.fetch({}).results == []
        fetcher.wire = bob
        assert fetcher.fetch({}).results == [denied]
        fetcher.wire = kafka
        assert fetcher.fetch({}).results == [allowed]
