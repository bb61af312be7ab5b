"""Decisions against the rules of Kafka's StandardAuthorizer, written down here once more in their slowest form."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.broker.authorization import index as index_module
from barnabas.broker.authorization.authorizer import Authorizer
from barnabas.broker.authorization.decisions import DEFAULT_ALLOW, DEFAULT_DENY, allowed_operations, decide, decide_any
from barnabas.broker.authorization.index import AclIndex
from barnabas.broker.authorization.rules import Action
from barnabas.protocol.messages.security.acls import Acl
from barnabas.protocol.messages.security.resources import Operation, PatternType, Permission, ResourceType

NAMES = ["*", "*a", "a", "ab", "abc", "b", "#a1", "#a2", ""]
PRINCIPALS = ["User:alice", "User:bob", "User:*", "Group:alice"]
HOSTS = ["*", "10.0.0.1", "10.0.0.2"]
TYPES = [ResourceType.TOPIC, ResourceType.GROUP]
OPERATIONS = [each for each in Operation if each > Operation.ALL]

acls = st.builds(
    Acl,
    resource_type=st.sampled_from(TYPES),
    resource_name=st.sampled_from(NAMES[:-1]),
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    principal=st.sampled_from(PRINCIPALS),
    host=st.sampled_from(HOSTS),
    operation=st.sampled_from([Operation.ALL, *OPERATIONS]),
    permission=st.sampled_from([Permission.DENY, Permission.ALLOW, Permission.ALLOW]),
)
actions = st.builds(
    Action,
    principal=st.sampled_from(["User:alice", "User:bob", "User:root", "Group:alice"]),
    host=st.sampled_from(["10.0.0.1", "10.0.0.2"]),
    operation=st.sampled_from(OPERATIONS),
    resource=st.sampled_from(TYPES),
    name=st.sampled_from(NAMES),
)


def slow_decision(rules: list[Acl], action: Action, *, super_users: set[str], allow_without: bool) -> bool:
    """The rules as Kafka's documentation and its StandardAuthorizerData state them, one after the other."""
    if action.principal in super_users:
        return True
    on_resource = [
        acl
        for acl in rules
        if acl.resource_type == action.resource
        and (
            (acl.pattern_type == PatternType.LITERAL and acl.resource_name in (action.name, "*"))
            or (acl.pattern_type == PatternType.PREFIXED and action.name.startswith(acl.resource_name))
        )
    ]
    if not on_resource:
        return allow_without
    about_client = [
        acl for acl in on_resource if acl.principal in (action.principal, "User:*") and acl.host in (action.host, "*")
    ]
    for acl in about_client:
        if acl.permission == Permission.DENY and acl.operation in (Operation.ALL, action.operation):
            return False
    grants = {Operation.ALL, action.operation}
    if action.operation == Operation.DESCRIBE:
        grants |= {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    if action.operation == Operation.DESCRIBE_CONFIGS:
        grants |= {Operation.ALTER_CONFIGS}
    return any(acl.permission == Permission.ALLOW and acl.operation in grants for acl in about_client)


def slow_any(rules: list[Acl], action: Action, *, super_users: set[str], allow_without: bool) -> bool:
    """Authorizer.authorizeByResourceType, as its Java text has it."""
    hardcode = action._replace(name="hardcode")
    if slow_decision(rules, hardcode, super_users=super_users, allow_without=allow_without):
        return True
    deny: dict[int, set[str]] = {PatternType.LITERAL: set(), PatternType.PREFIXED: set()}
    allow: dict[int, set[str]] = {PatternType.LITERAL: set(), PatternType.PREFIXED: set()}
    wildcard_allow = False
    for acl in rules:
        if acl.resource_type != action.resource or acl.host not in (action.host, "*"):
            continue
        if acl.principal not in (action.principal, "User:*"):
            continue
        if acl.operation not in (action.operation, Operation.ALL):
            continue
        is_wildcard = acl.pattern_type == PatternType.LITERAL and acl.resource_name == "*"
        if acl.permission == Permission.DENY:
            if is_wildcard:
                return False
            deny[acl.pattern_type].add(acl.resource_name)
        elif is_wildcard:
            wildcard_allow = True
        else:
            allow[acl.pattern_type].add(acl.resource_name)
    if wildcard_allow:
        return True
    for pattern, names in allow.items():
        for name in names:
            if pattern == PatternType.LITERAL and name in deny[PatternType.LITERAL]:
                continue
            if not any(name.startswith(prefix) for prefix in deny[PatternType.PREFIXED]):
                return True
    return False


@settings(max_examples=300, deadline=None)
@given(st.lists(acls, max_size=8), actions, st.booleans(), st.booleans())
def test_decisions_are_those_of_the_rules(rules: list[Acl], action: Action, super_user: bool, allow: bool) -> None:
    super_users = {"User:root", "User:alice"} if super_user else {"User:root"}
    default = DEFAULT_ALLOW if allow else DEFAULT_DENY
    index = AclIndex(rules)

    decision = decide(index, action, super_users=super_users, default=default)
    found = decide_any(index, action, super_users=super_users, default=default)
    bits = allowed_operations(index, action, OPERATIONS, super_users=super_users, default=default)

    assert decision.allowed == slow_decision(rules, action, super_users=super_users, allow_without=allow)
    assert found == slow_any(rules, action, super_users=super_users, allow_without=allow)
    assert [each for each in OPERATIONS if bits & 1 << each] == [
        each
        for each in OPERATIONS
        if slow_decision(rules, action._replace(operation=each), super_users=super_users, allow_without=allow)
    ]
    assert decision.acl is None or decision.acl in rules
    assert decision.acl is None or decision.allowed == (decision.acl.permission == Permission.ALLOW)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(0, 5), acls), max_size=4), max_size=5), st.lists(actions, max_size=6))
def test_a_session_follows_every_change_of_the_acls(changes: list[list[tuple[int, Acl]]], asked: list[Action]) -> None:
    acls_by_id: dict[bytes, Acl] = {}
    authorizer = Authorizer()
    accesses = [(each, authorizer.access_for(each.principal, each.host)) for each in asked]
    for change in changes:
        present = dict(acls_by_id)
        for number, acl in change:
            identity = bytes([number])
            if identity in present:
                del present[identity]
            else:
                present[identity] = acl
        authorizer.replace(authorizer.prepare(present))
        acls_by_id = present
        rules = list(present.values())
        for each, access in accesses:
            expected = slow_decision(rules, each, super_users=set(), allow_without=False)
            assert access.allows(each.operation, each.resource, each.name) == expected
            if (each.operation, each.resource) == (Operation.READ, ResourceType.TOPIC):
                assert access.read_topic[each.name] == expected


def test_many_acls_of_one_name_are_sorted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ordered: list[Acl] = []
    real = index_module._order

    def counted(acl: Acl) -> tuple[int, str, str, int]:
        ordered.append(acl)
        return real(acl)

    monkeypatch.setattr(index_module, "_order", counted)
    count = 500
    by_id = {
        bytes([number // 256, number % 256]): Acl(
            ResourceType.TOPIC, "t", PatternType.LITERAL, f"User:{number}", "*", Operation.READ, Permission.ALLOW
        )
        for number in range(count)
    }
    authorizer = Authorizer()
    authorizer.replace(authorizer.prepare(by_id))
    assert len(list(authorizer.index.matching(ResourceType.TOPIC, "t"))) == count
    half = dict(list(by_id.items())[: count // 2])
    authorizer.replace(authorizer.prepare(half))
    assert set(authorizer.index) == set(half.values())
    assert len(ordered) <= 2 * count


def test_the_first_deny_decides_and_else_the_last_allow() -> None:
    topic, literal, prefixed = ResourceType.TOPIC, PatternType.LITERAL, PatternType.PREFIXED
    wide = Acl(topic, "*", literal, "User:*", "*", Operation.ALL, Permission.ALLOW)
    exact = Acl(topic, "orders", literal, "User:alice", "*", Operation.READ, Permission.ALLOW)
    short = Acl(topic, "o", prefixed, "User:alice", "*", Operation.READ, Permission.DENY)
    action = Action("User:alice", "10.0.0.1", Operation.READ, topic, "orders")

    def deciding(*rules: Acl) -> Acl | None:
        return decide(AclIndex(rules), action, super_users=(), default=DEFAULT_DENY).acl

    assert deciding(wide, exact) == wide
    assert deciding(exact) == exact
    assert deciding(wide, exact, short) == short


def test_operations_are_the_bits_of_allowed_operations() -> None:
    topic = ResourceType.TOPIC
    rules = {
        b"1": Acl(topic, "t", PatternType.LITERAL, "User:alice", "*", Operation.WRITE, Permission.ALLOW),
        b"2": Acl(topic, "t", PatternType.LITERAL, "User:alice", "*", Operation.ALTER_CONFIGS, Permission.ALLOW),
        b"3": Acl(topic, "t", PatternType.LITERAL, "User:alice", "*", Operation.DESCRIBE, Permission.DENY),
    }
    authorizer = Authorizer()
    authorizer.replace(authorizer.prepare(rules))
    access = authorizer.access_for("User:alice", "10.0.0.1")

    assert access.operations(topic, "t") == 1 << 4 | 1 << 11 | 1 << 10
    assert access.operations(topic, "other") == 0


def test_super_users_are_compared_as_whole_texts() -> None:
    authorizer = Authorizer(super_users=["User:admin", "User:*"])

    assert authorizer.access_for("User:admin", "h").write_topic["t"]
    assert not authorizer.access_for("User:Admin", "h").write_topic["t"]
    assert not authorizer.access_for("User:bob", "h").write_topic["t"]
