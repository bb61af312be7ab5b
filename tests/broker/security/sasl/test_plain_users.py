"""PLAIN's users in the JAAS line of a listener."""

from __future__ import annotations

from typing import Any, cast

import pytest

from barnabas.broker.security.sasl.plain_users import PlainUsers
from barnabas.config.security.jaas import PLAIN_MODULE, SCRAM_MODULE, JaasError
from barnabas.config.security.listener_properties import ListenerProperties
from barnabas.config.security.secret import Secret


class Properties:
    """A listener whose JAAS line the test sets."""

    listener = "SECURE"

    def __init__(self, text: str | None) -> None:
        self.set(text)

    def set(self, text: str | None) -> None:
        self.secret = None if text is None else Secret(text)

    def get_secret(self, name: str, *, mechanism: str | None = None) -> Secret | None:
        assert (name, mechanism) == ("sasl.jaas.config", "PLAIN")
        return self.secret


def users_of(properties: Any) -> PlainUsers:
    return PlainUsers(cast("ListenerProperties", properties))


def test_options_that_begin_with_user_are_the_users() -> None:
    options = 'username="admin" password="admins" user_alice="pencil" user_admin="admins" user_="x" user_A.b-c="d"'
    users = users_of(Properties(f"{PLAIN_MODULE} required {options};"))
    assert users.verify("alice", "pencil")
    assert users.verify("admin", "admins")
    assert users.verify("A.b-c", "d")
    for user, password in [("alice", "admins"), ("Alice", "pencil"), ("nobody", ""), ("name", "admin"), ("alice", "")]:
        assert not users.verify(user, password)


def test_a_line_that_cannot_be_used_leaves_the_users_as_they_were(caplog: pytest.LogCaptureFixture) -> None:
    properties = Properties(f'{PLAIN_MODULE} required user_alice="first";')
    users = users_of(properties)
    properties.set(f'{PLAIN_MODULE} required user_alice="second";')
    assert users.verify("alice", "second")
    for line in (f'{PLAIN_MODULE} required user_alice="third"', f'{SCRAM_MODULE} required user_alice="third";', None):
        properties.set(line)
        for _ in range(3):
            assert users.verify("alice", "second")
    assert len(caplog.records) == 3
    assert "third" not in caplog.text
    assert "listener SECURE" in caplog.text


@pytest.mark.parametrize(
    ("line", "reason"),
    [(None, "not set"), (f"{SCRAM_MODULE} required;", "login module must be"), ("", "no login module")],
)
def test_a_start_refuses_a_listener_without_users_of_plain(line: str | None, reason: str) -> None:
    with pytest.raises(JaasError, match=reason):
        users_of(Properties(line))
