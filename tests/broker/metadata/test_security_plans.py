"""Plans that change users, ACLs, quotas and tokens: Kafka's errors, and records of what changed."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import Any

import pytest

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.image_builder import ImageBuilder
from barnabas.broker.metadata.plan import Plan
from barnabas.broker.metadata.security import acls
from barnabas.broker.metadata.security.acls import plan_create_acls, plan_delete_acls
from barnabas.broker.metadata.security.quotas import plan_alter_quotas
from barnabas.broker.metadata.security.scram import plan_alter_scram
from barnabas.broker.metadata.security.tokens import plan_put_token, plan_remove_expired_tokens, plan_remove_tokens
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.security.acls import Acl, AclFilter
from barnabas.protocol.messages.security.client_quotas import QuotaAlteration, QuotaOp, entity_of
from barnabas.protocol.messages.security.resources import Operation, PatternType, Permission, ResourceType
from barnabas.protocol.messages.security.scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramDeletion,
    ScramUpsertion,
)
from barnabas.protocol.metadata.levels import METADATA_VERSION
from barnabas.protocol.metadata.records import FeatureLevelRecord, MetadataRecord
from barnabas.protocol.metadata.security_records import RemoveUserScramCredentialRecord
from tests.support.storage.security_records import acl_record, quota_record, scram_record, token_record

ALLOW = Acl(ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:alice", "*", Operation.READ, Permission.ALLOW)


def image_with(*records: MetadataRecord, level: int = 19) -> MetadataImage:
    builder = ImageBuilder(MetadataImage())
    for record in (FeatureLevelRecord(METADATA_VERSION, level), *records):
        builder.apply(record)
    return builder.build()


def applied(image: MetadataImage, plan: Plan[Any]) -> MetadataImage:
    builder = ImageBuilder(image)
    for record in plan.records:
        builder.apply(record)
    return builder.build()


# ACLs


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"resource_type": 0}, "Invalid resourceType UNKNOWN"),
        ({"resource_type": 1}, "Invalid resourceType ANY"),
        ({"resource_type": 8}, "Invalid resourceType UNKNOWN"),
        ({"resource_type": -1}, "Invalid resourceType UNKNOWN"),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_type": ResourceType.CLUSTER}, "The only valid name for the CLUSTER resource is kafka-cluster"),
        ({"pattern_type": PatternType.MATCH}, "Invalid patternType MATCH"),
        ({"pattern_type": 5}, "Invalid patternType UNKNOWN"),
        ({"operation": 1}, "Invalid operation ANY"),
        ({"operation": 16}, "Invalid operation UNKNOWN"),
        ({"permission": 1}, "Invalid permissionType ANY"),
        ({"permission": 4}, "Invalid permissionType UNKNOWN"),
        (
            {"principal": "alice"},
            "Could not parse principal from `alice` (no colon is present separating the principal type from the "
            "principal name)",
        ),
    ],
)
def test_an_impossible_acl_is_refused_and_the_others_are_created(change: dict[str, Any], message: str) -> None:
    plan = plan_create_acls(image_with(), [ALLOW._replace(**change), ALLOW])
    assert [(each.error, each.message) for each in plan.results] == [
        (ErrorCode.INVALID_REQUEST, message),
        (ErrorCode.NONE, None),
    ]
    assert list(applied(image_with(), plan).security.acls.values()) == [ALLOW]


def test_an_acl_that_exists_is_a_success_without_a_record() -> None:
    image = applied(image_with(), plan_create_acls(image_with(), [ALLOW, ALLOW]))
    assert len(image.security.acls) == 1
    again = plan_create_acls(image, [ALLOW])
    assert (again.results[0].error, again.records) == (ErrorCode.NONE, [])


def test_the_cluster_and_every_operation_can_be_named() -> None:
    cluster = ALLOW._replace(resource_type=ResourceType.CLUSTER, resource_name="kafka-cluster")
    wanted = [cluster._replace(operation=operation) for operation in Operation if operation > Operation.ANY]
    plan = plan_create_acls(image_with(), wanted)
    assert not any(each.error for each in plan.results)
    assert len(plan.records) == 14


def test_deletion_lists_an_acl_at_every_filter_and_deletes_it_once() -> None:
    image = image_with(acl_record(1), acl_record(2, operation=Operation.WRITE), acl_record(3, name="other"))
    filters = [AclFilter(resource_name="orders"), AclFilter(operation=Operation.READ), AclFilter(operation=99)]
    plan = plan_delete_acls(image, filters)
    assert [(each.error, len(each.deleted)) for each in plan.results] == [
        (ErrorCode.NONE, 2),
        (ErrorCode.NONE, 2),
        (ErrorCode.INVALID_REQUEST, 0),
    ]
    assert plan.results[2].message == "Unknown entryFilter."
    assert len(plan.records) == 3
    assert applied(image, plan).security.acls == {}


def test_an_excessive_number_of_acls_refuses_the_whole_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acls, "MAX_RECORDS", 2)
    image = image_with(*(acl_record(number) for number in range(3)))
    with pytest.raises(BrokerError, match="Cannot remove more than 2 acls") as refused:
        plan_delete_acls(image, [AclFilter()])
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    with pytest.raises(BrokerError, match="excessively large batch") as refused:
        plan_create_acls(image, [ALLOW._replace(host=host) for host in "abc"])
    assert refused.value.code is ErrorCode.POLICY_VIOLATION


@pytest.mark.parametrize(
    ("name", "pattern", "found"),
    [
        (None, PatternType.ANY, ["*", "or", "orders", "orders/"]),
        ("orders", PatternType.ANY, ["orders", "orders/"]),
        ("orders", PatternType.MATCH, ["*", "or", "orders", "orders/"]),
        ("ord", PatternType.MATCH, ["*", "or"]),
        ("orders", PatternType.LITERAL, ["orders"]),
        ("orders", PatternType.PREFIXED, ["orders/"]),
        ("*", PatternType.LITERAL, ["*"]),
        ("*", PatternType.MATCH, ["*"]),
        ("nothing", PatternType.ANY, []),
    ],
)
def test_a_filter_finds_patterns_as_kafka_does(name: str | None, pattern: PatternType, found: list[str]) -> None:
    """`orders/` is the prefix `orders`, `or` the prefix `or`."""
    patterns = {
        "*": ALLOW._replace(resource_name="*"),
        "or": ALLOW._replace(resource_name="or", pattern_type=PatternType.PREFIXED),
        "orders": ALLOW,
        "orders/": ALLOW._replace(pattern_type=PatternType.PREFIXED),
    }
    wanted = AclFilter(resource_name=name, pattern_type=pattern)
    assert [label for label, acl in patterns.items() if wanted.matches(acl)] == found


# SCRAM


def upsertion(name: str = "alice", mechanism: int = 1, iterations: int = 4096, salted: bytes = b"s") -> ScramUpsertion:
    return ScramUpsertion(name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=salted)


def altered(image: MetadataImage, *changes: ScramDeletion | ScramUpsertion) -> tuple[list[Any], Plan[Any]]:
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in changes if isinstance(each, ScramDeletion)],
        upsertions=[each for each in changes if isinstance(each, ScramUpsertion)],
    )
    plan = plan_alter_scram(image, request)
    return [(each.user, each.error, each.message) for each in plan.results], plan


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (upsertion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (ScramDeletion(name="", mechanism=1), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (upsertion(mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion(mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion(iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (upsertion(iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (upsertion(salted=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "The salted password is empty"),
        (
            ScramDeletion(name="alice", mechanism=2),
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        ),
    ],
)
def test_an_impossible_change_of_a_user_is_refused(
    change: ScramDeletion | ScramUpsertion, error: ErrorCode, message: str
) -> None:
    results, plan = altered(image_with(scram_record("alice", 1)), change)
    assert results == [(change.name, error, message)]
    assert plan.records == []


def test_two_changes_of_one_user_are_refused_and_the_others_are_carried_out() -> None:
    image = image_with(scram_record("alice", 1), scram_record("bob", 1))
    twice = (ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
    results, plan = altered(
        image,
        ScramDeletion(name="alice", mechanism=1),
        ScramDeletion(name="bob", mechanism=1),
        upsertion("alice", 2),
        upsertion("carol", 1),
        upsertion("carol", 2),
    )
    assert results == [("bob", ErrorCode.NONE, None), ("alice", *twice), ("carol", *twice)]
    assert plan.records == [RemoveUserScramCredentialRecord("bob", 1)]


@pytest.mark.parametrize("level", [7, 10])
def test_users_need_level_11(level: int) -> None:
    results, plan = altered(image_with(level=level), upsertion())
    message = "The current metadata.version does not support SCRAM"
    assert (results, plan.records) == ([("alice", ErrorCode.UNSUPPORTED_VERSION, message)], [])
    assert altered(image_with(level=11), upsertion())[0] == [("alice", ErrorCode.NONE, None)]


@pytest.mark.parametrize(("mechanism", "digest"), [(1, "sha256"), (2, "sha512")])
def test_the_record_has_keys_derived_from_the_salted_password(mechanism: int, digest: str) -> None:
    salted = hashlib.pbkdf2_hmac(digest, b"secret", b"salt", 4096)
    _, plan = altered(image_with(), upsertion(mechanism=mechanism, salted=salted))
    client_key = hmac.digest(salted, b"Client Key", digest)
    expected = (b"salt", hashlib.new(digest, client_key).digest(), hmac.digest(salted, b"Server Key", digest), 4096)
    assert applied(image_with(), plan).security.scram == {("alice", mechanism): expected}


# Quotas


def changed(
    image: MetadataImage, entity: Sequence[tuple[str, str | None]], *ops: QuotaOp
) -> tuple[ErrorCode, str | None]:
    plan = plan_alter_quotas(
        image, [QuotaAlteration(entity=entity_of(entity), ops=ops)], resolves=lambda name: name == "10.0.0.1"
    )
    (result,) = plan.results
    assert (result.error is ErrorCode.NONE) or not plan.records
    return result.error, result.message


USER = [("user", "alice")]
RATE = QuotaOp(key="producer_byte_rate", value=1024.0)


@pytest.mark.parametrize(
    ("entity", "op", "message"),
    [
        ([], RATE, "Invalid empty client quota entity"),
        ([("group", "g")], RATE, "Unhandled client quota entity type: group"),
        ([("user", "")], RATE, "Empty user not supported"),
        (
            [("user", "alice"), ("ip", "10.0.0.1")],
            RATE,
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
        (
            [("ip", "no.host")],
            QuotaOp(key="connection_creation_rate", value=1.0),
            "no.host is not a valid IP or resolvable host.",
        ),
        ([("ip", "10.0.0.1")], RATE, "Invalid configuration key producer_byte_rate"),
        (
            USER,
            QuotaOp(key="connection_creation_rate", value=1.0),
            "Invalid configuration key connection_creation_rate",
        ),
        (USER, RATE.replaced(value=0.0), "Quota producer_byte_rate must be greater than 0"),
        (USER, RATE.replaced(value=-1.0), "Quota producer_byte_rate must be greater than 0"),
        (USER, RATE.replaced(value=1.5), "producer_byte_rate cannot be a fractional value."),
        (USER, RATE.replaced(value=1e19), "Proposed value for producer_byte_rate is too large for a LONG."),
        (
            USER,
            QuotaOp(key="request_percentage", value=float("nan")),
            "Quota request_percentage must be a finite number",
        ),
        (
            USER,
            QuotaOp(key="request_percentage", value=float("inf")),
            "Quota request_percentage must be a finite number",
        ),
        (
            [("ip", None)],
            QuotaOp(key="connection_creation_rate", value=3e9),
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
    ],
)
def test_an_impossible_quota_is_refused(entity: list[tuple[str, str | None]], op: QuotaOp, message: str) -> None:
    assert changed(image_with(), entity, op) == (ErrorCode.INVALID_REQUEST, message)


@pytest.mark.parametrize(
    ("entity", "op"),
    [
        (USER, RATE),
        ([("user", None), ("client-id", "c")], QuotaOp(key="request_percentage", value=12.5)),
        ([("client-id", None)], QuotaOp(key="controller_mutation_rate", value=0.5)),
        ([("ip", "10.0.0.1")], QuotaOp(key="connection_creation_rate", value=5.0)),
        ([("ip", None)], QuotaOp(key="connection_creation_rate", value=5.0)),
        (USER, QuotaOp(key="any key", value=0.0, remove=True)),
    ],
)
def test_a_possible_quota_is_set(entity: list[tuple[str, str | None]], op: QuotaOp) -> None:
    assert changed(image_with(), entity, op) == (ErrorCode.NONE, None)


def test_only_changes_of_limits_are_recorded() -> None:
    image = image_with(quota_record("producer_byte_rate", 1024.0), quota_record("request_percentage", 5.0))
    ops = (
        RATE,
        QuotaOp(key="request_percentage", value=0.0, remove=True),
        QuotaOp(key="consumer_byte_rate", value=0.0, remove=True),
    )
    plan = plan_alter_quotas(image, [QuotaAlteration(entity=entity_of(USER), ops=ops)], resolves=lambda _: True)
    assert len(plan.records) == 1
    assert applied(image, plan).security.quotas == {(("user", "alice"),): {"producer_byte_rate": 1024.0}}


def test_an_entity_or_key_that_occurs_twice_is_refused() -> None:
    pair = entity_of([("user", "u"), ("client-id", "c")])
    twice = [
        QuotaAlteration(entity=pair, ops=(RATE,)),
        QuotaAlteration(entity=pair[::-1], ops=(RATE.replaced(value=5.0),)),
    ]
    plan = plan_alter_quotas(image_with(), twice, resolves=lambda _: True)
    assert [each.message for each in plan.results] == [
        "Ignoring duplicate entity ClientQuotaEntity(entries={client-id=c, user=u})"
    ]
    error, message = changed(image_with(), USER, RATE, RATE)
    assert (error, message) == (
        ErrorCode.INVALID_REQUEST,
        "Ignoring duplicate entity ClientQuotaEntity(entries={user=alice})",
    )


# Tokens


def test_a_token_is_created_renewed_and_removed() -> None:
    image = image_with(token_record("t", expires_ms=2_000))
    token = image.security.tokens["t"]
    renewed = applied(image, plan_put_token(image, token._replace(expires_ms=3_000)))
    assert renewed.security.tokens["t"].expires_ms == 3_000
    plan = plan_remove_tokens(renewed, ["t", "unknown", "t"])
    assert plan.results == ["t"]
    assert applied(renewed, plan).security.tokens == {}


def test_tokens_need_level_14() -> None:
    image = image_with(level=13)
    with pytest.raises(BrokerError) as refused:
        plan_put_token(image, image_with(token_record()).security.tokens["token"])
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_expired_tokens_are_removed() -> None:
    image = image_with(token_record("old", 1_000), token_record("now", 2_000), token_record("new", 3_000))
    plan = plan_remove_expired_tokens(image, now_ms=2_000)
    assert [token.token_id for token in plan.results] == ["old"]
    assert list(applied(image, plan).security.tokens) == ["now", "new"]

    assert len(plan_remove_expired_tokens(image, now_ms=9_001).results) == 3
