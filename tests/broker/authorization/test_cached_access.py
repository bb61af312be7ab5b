"""Remembered decisions: bounded in number and in the length of their names."""

from __future__ import annotations

import pytest

from barnabas.broker.authorization.authorizer import Authorizer
from barnabas.broker.authorization.cached_access import NAME_CHARACTERS_MAX, CachedAccess
from barnabas.protocol.messages.security.resources import Operation, ResourceType

SHORT = "x" * NAME_CHARACTERS_MAX
LONG = SHORT + "x"


@pytest.fixture
def authorizer() -> Authorizer:
    return Authorizer(super_users=["User:admin"])


@pytest.mark.parametrize("principal", ["User:admin", "User:bob"])
def test_decisions_about_long_names_are_not_remembered(authorizer: Authorizer, principal: str) -> None:
    access = CachedAccess(authorizer, principal, "192.0.2.1")
    is_allowed = principal == "User:admin"
    for name in (SHORT, LONG):
        assert access.write_topic[name] is is_allowed
        assert access.allows(Operation.READ, ResourceType.GROUP, name) is is_allowed
        assert bool(access.operations(ResourceType.TOPIC, name)) is is_allowed
    for remembered in (access.write_topic, access._others[Operation.READ, ResourceType.GROUP]):
        assert list(remembered) == [SHORT]
    assert list(access._bits) == [(ResourceType.TOPIC, SHORT)]


def test_all_accesses_together_remember_a_bounded_number_of_decisions(
    authorizer: Authorizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.broker.authorization.authorizer.REMEMBERED_MAX", 10)
    accesses = [authorizer.access_for("User:bob", f"192.0.2.{number}") for number in range(8)]
    most = 0
    for number in range(20):
        for access in accesses:
            assert not access.read_topic[f"made-up-{number}"]
            assert access.operations(ResourceType.TOPIC, f"made-up-{number}") == 0
            most = max(most, sum(each.remembered for each in accesses))
    assert most == 10
    assert {each.generation for each in accesses} == {0}


def test_decisions_of_sessions_that_have_ended_do_not_count(
    authorizer: Authorizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.broker.authorization.authorizer.REMEMBERED_MAX", 10)
    stays = authorizer.access_for("User:alice", "192.0.2.1")
    assert not stays.read_topic["kept"]
    for number in range(30):
        assert not authorizer.access_for("User:bob", f"192.0.2.{number}").read_topic["made-up"]
    assert list(stays.read_topic) == ["kept"]
