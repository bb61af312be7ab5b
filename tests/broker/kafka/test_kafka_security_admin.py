"""AlterUserScramCredentials, AlterClientQuotas and the ACL APIs over the wire, and the checks before them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.handlers.security.acls import CreateAclsHandler, DeleteAclsHandler, DescribeAclsHandler
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.image_builder import ImageBuilder
from barnabas.broker.security.principal import ANONYMOUS, user
from barnabas.config.tables.security_properties import STANDARD_AUTHORIZER
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.security.acls import (
    Acl,
    AclFilter,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from barnabas.protocol.messages.security.resources import CLUSTER_NAME, Operation, Permission, ResourceType
from barnabas.protocol.messages.topics.topics import NewTopic
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire, metadata_request, schema
from tests.support.storage.metadata_store import opened
from tests.support.storage.security_records import acl_record
from tests.support.turns import answer_of

ACL = Acl(2, "orders", 3, "User:alice", "*", 3, 3)


class Access:
    """Allows some operations on the cluster."""

    def __init__(self, *allowed: Operation) -> None:
        self._allowed = allowed

    def allows(self, operation: Operation, resource: ResourceType, name: str, **_: object) -> bool:
        assert (resource, name) == (ResourceType.CLUSTER, CLUSTER_NAME)
        return operation in self._allowed


class Changes:
    """MetadataChanges without a log."""

    def __init__(self) -> None:
        self.image = MetadataImage()

    async def change(self, make_plan: Any) -> Any:
        plan = make_plan(self.image)
        builder = ImageBuilder(self.image)
        for record in plan.records:
            builder.apply(record)
        self.image = builder.build()
        return plan.results


def session(*allowed: Operation, authorizer: bool = True) -> Any:
    return SimpleNamespace(access=Access(*allowed) if authorizer else None, principal=ANONYMOUS)


def described(changes: Any, admin: Any, request: DescribeAclsRequest) -> list[Acl]:
    response: DescribeAclsResponse = answer_of(DescribeAclsHandler(changes)(admin, request))
    return response.acls


def test_acls_are_created_described_and_deleted() -> None:
    changes = cast(Any, Changes())
    admin, probe = session(Operation.ALTER, Operation.DESCRIBE), cast(Any, None)
    other = ACL._replace(resource_name="other")
    created = asyncio.run(CreateAclsHandler(changes, probe)(admin, CreateAclsRequest.of([ACL, other])))
    assert [each.error for each in created.results] == [ErrorCode.NONE] * 2
    everything = DescribeAclsRequest.of(AclFilter())
    assert described(changes, admin, everything) == [ACL, other]
    filters = [AclFilter(resource_name="orders")]
    deleted = asyncio.run(DeleteAclsHandler(changes, probe)(admin, DeleteAclsRequest(filters=filters)))
    assert deleted.results[0].deleted == [ACL]
    assert described(changes, admin, everything) == [other]


def test_the_name_of_who_changes_acls_is_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    admin = session(Operation.ALTER)
    admin.principal = user("CN=a\nERROR everything is lost")
    with caplog.at_level("INFO"):
        asyncio.run(CreateAclsHandler(cast(Any, Changes()), cast(Any, None))(admin, CreateAclsRequest.of([ACL])))
    assert [each.message.count("\n") for each in caplog.records] == [0]


BAD_FILTER = AclFilter(operation=0)


@pytest.mark.parametrize(
    ("client", "code"),
    [
        (session(), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (session(authorizer=False), ErrorCode.SECURITY_DISABLED),
        (session(Operation.DESCRIBE), ErrorCode.INVALID_REQUEST),
    ],
)
def test_describing_acls_needs_permission_then_an_authorizer_then_a_filter(client: Any, code: ErrorCode) -> None:
    with pytest.raises(BrokerError) as refused:
        DescribeAclsHandler(cast(Any, Changes()))(client, DescribeAclsRequest.of(BAD_FILTER))
    assert refused.value.code is code


@pytest.mark.parametrize(
    ("client", "code"),
    [
        (session(Operation.DESCRIBE), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (session(authorizer=False), ErrorCode.SECURITY_DISABLED),
    ],
)
def test_changing_acls_needs_permission_then_an_authorizer(client: Any, code: ErrorCode) -> None:
    changes, probe = cast(Any, Changes()), cast(Any, None)
    with pytest.raises(BrokerError) as refused:
        asyncio.run(CreateAclsHandler(changes, probe)(client, CreateAclsRequest.of([ACL])))
    assert refused.value.code is code
    with pytest.raises(BrokerError) as refused:
        asyncio.run(DeleteAclsHandler(changes, probe)(client, DeleteAclsRequest(filters=[BAD_FILTER])))
    assert refused.value.code is code
    assert changes.image == MetadataImage()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_broker_without_an_authorizer_refuses_acls(daemon: Daemon, version: int) -> None:
    disabled = ErrorCode.SECURITY_DISABLED
    of_filter = {"operation": 1, "permission_type": 1, "resource_type_filter": 1, "pattern_type_filter": 1}
    names = dict.fromkeys(("resource_name_filter", "principal_filter", "host_filter"))
    creation = schema("create_acls", version, "request").AclCreation(
        resource_type=2,
        resource_name="orders",
        resource_pattern_type=3,
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=3,
    )
    deletion = schema("delete_acls", version, "request").DeleteAclsFilter(**of_filter, **names)
    with KafkaWire(daemon.host, daemon.port) as kafka:
        described = kafka.call("describe_acls", version, **of_filter, **names)
        created = kafka.call("create_acls", version, creations=(creation, creation))
        deleted = kafka.call("delete_acls", version, filters=(deletion,))
    assert (described.error_code, described.error_message) == (disabled, "No Authorizer is configured on the broker")
    assert [(each.error_code, each.error_message) for each in created.results] == [
        (disabled, "No Authorizer is configured.")
    ] * 2
    assert [each.error_code for each in deleted.filter_results] == [disabled]


def test_users_are_set_described_and_deleted(daemon: Daemon) -> None:
    kinds = schema("alter_user_scram_credentials", 0, "request")
    alice = kinds.ScramCredentialUpsertion(
        name="alice", mechanism=2, iterations=8192, salt=b"salt", salted_password=b"salted secret"
    )
    bob = kinds.ScramCredentialDeletion(name="bob", mechanism=1)
    with KafkaWire(daemon.host, daemon.port) as kafka:
        results = kafka.call("alter_user_scram_credentials", 0, deletions=(bob,), upsertions=(alice,)).results
        assert [(each.user, each.error_code) for each in results] == [
            ("alice", ErrorCode.NONE),
            ("bob", ErrorCode.RESOURCE_NOT_FOUND),
        ]
        (user,) = kafka.call("describe_user_scram_credentials", 0, users=None).results
        assert (user.user, [(info.mechanism, info.iterations) for info in user.credential_infos]) == (
            "alice",
            [(2, 8192)],
        )
        deletion = kinds.ScramCredentialDeletion(name="alice", mechanism=2)
        (result,) = kafka.call("alter_user_scram_credentials", 0, deletions=(deletion,), upsertions=()).results
        assert (result.user, result.error_code) == ("alice", ErrorCode.NONE)
        assert kafka.call("describe_user_scram_credentials", 0, users=None).results == ()
    assert "SCRAM credential of user alice set by" in daemon.log
    assert "salted secret" not in daemon.log
    assert "user alice cannot log in with SCRAM" not in daemon.log


def test_a_user_whose_name_is_not_ascii_is_warned_about(daemon: Daemon) -> None:
    kinds = schema("alter_user_scram_credentials", 0, "request")
    user = kinds.ScramCredentialUpsertion(
        name="zoë", mechanism=2, iterations=8192, salt=b"salt", salted_password=b"salted secret"
    )
    deletion = kinds.ScramCredentialDeletion(name="zoë", mechanism=2)
    with KafkaWire(daemon.host, daemon.port) as kafka:
        for changes in ({"deletions": (), "upsertions": (user,)}, {"deletions": (deletion,), "upsertions": ()}):
            (result,) = kafka.call("alter_user_scram_credentials", 0, **changes).results
            assert (result.user, result.error_code) == ("zoë", ErrorCode.NONE)
    warning = "user zoë cannot log in with SCRAM: user names in its messages are ASCII"
    assert [line for line in daemon.log.splitlines() if "WARN" in line and warning in line]
    assert daemon.log.count(warning) == 1


@pytest.mark.parametrize("version", [0, 1])
def test_quotas_are_set_described_and_removed(daemon: Daemon, version: int) -> None:
    kinds = schema("alter_client_quotas", version, "request")

    def alter(*ops: Any, validate_only: bool = False, name: str | None = None) -> Any:
        entity = (kinds.EntityData(entity_type="ip", entity_name=name),)
        entry = kinds.EntryData(entity=entity, ops=ops)
        (result,) = kafka.call("alter_client_quotas", version, entries=(entry,), validate_only=validate_only).entries
        return result

    def described() -> list[Any]:
        entries = kafka.call("describe_client_quotas", version, components=(), strict=False).entries
        return [(entry.entity[0].entity_name, [(each.key, each.value) for each in entry.values]) for entry in entries]

    rate = kinds.OpData(key="connection_creation_rate", value=1000.0, remove=False)
    with KafkaWire(daemon.host, daemon.port) as kafka:
        assert alter(rate, validate_only=True).error_code == ErrorCode.NONE
        assert described() == []
        assert alter(rate).error_code == ErrorCode.NONE
        assert described() == [(None, [("connection_creation_rate", 1000.0)])]
        unknown = alter(rate, name="no such host")
        assert unknown.error_code == ErrorCode.INVALID_REQUEST
        assert unknown.error_message == "no such host is not a valid IP or resolvable host."
        removal = kinds.OpData(key="connection_creation_rate", value=0.0, remove=True)
        assert alter(removal).error_code == ErrorCode.NONE
        assert described() == []


def test_of_an_entity_type_that_is_given_twice_the_last_name_counts(daemon: Daemon) -> None:
    kinds = schema("alter_client_quotas", 1, "request")

    def entry(*names: str, remove: bool = False) -> Any:
        rate = kinds.OpData(key="producer_byte_rate", value=0.0 if remove else 1000.0, remove=remove)
        entity = tuple(kinds.EntityData(entity_type="user", entity_name=name) for name in names)
        return kinds.EntryData(entity=entity, ops=(rate,))

    with KafkaWire(daemon.host, daemon.port) as kafka:
        for remove in (False, True):
            entries = (entry("good", remove=remove), entry("u", "v", remove=remove))
            results = kafka.call("alter_client_quotas", 1, entries=entries, validate_only=False).entries
            assert [(each.error_code, each.entity[-1].entity_name) for each in results] == [(0, "good"), (0, "v")]
            found = kafka.call("describe_client_quotas", 1, components=(), strict=False).entries
            assert {each.entity[0].entity_name for each in found} == (set() if remove else {"good", "v"})


@pytest.mark.parametrize("read_only", ["false", "true"])
def test_acls_in_the_directory_decide_from_the_first_request_on(tmp_path: Path, read_only: str) -> None:
    with opened(tmp_path / "data") as store:
        store.create(NewTopic(name="orders", partitions=1), NewTopic(name="open", partitions=1))
        store.store.commit([acl_record(principal="User:*", permission=Permission.DENY, operation=Operation.ALL)])
    settings = (f"authorizer.class.name={STANDARD_AUTHORIZER}", "allow.everyone.if.no.acl.found=true")
    with (
        start_daemon(tmp_path, *settings, f"read.only={read_only}") as daemon,
        KafkaWire(daemon.host, daemon.port) as kafka,
    ):
        kafka.send(metadata_request(12, "orders", "open"))
        answer = kafka.receive("metadata", 12)
    codes = {topic.name: int(topic.error_code.value) for topic in answer.topics}
    assert codes == {"orders": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "open": ErrorCode.NONE}
