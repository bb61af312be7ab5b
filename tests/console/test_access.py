"""Users, ACLs and quotas: shown, added, removed, and what a broker without an authorizer says."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from barnabas.commands.main import main
from tests.support.authorization.table import STANDARD_AUTHORIZER
from tests.support.console import ConsoleClient, Page, running_console
from tests.support.daemon import Daemon, start_daemon

SETTINGS = (f"authorizer.class.name={STANDARD_AUTHORIZER}", "super.users=User:ANONYMOUS")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    daemon = start_daemon(tmp_path_factory.mktemp("secured"), *SETTINGS)
    try:
        yield daemon
    finally:
        daemon.stop()


@pytest.fixture(scope="module")
def secured_console(secured: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleClient]:
    log: Path = tmp_path_factory.mktemp("console") / "stderr"
    with running_console(secured.bootstrap, "--allow-changes", log=log) as client:
        yield client


def hidden_fields(page: Page, action: str) -> dict[str, str]:
    """Return the hidden fields of the first form with this action."""
    form = re.search(rf'action="{action}">(.*?)</form>', page.text, re.DOTALL)
    assert form is not None, page.text
    found = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form[1])
    return {name: html.unescape(value) for name, value in found if name != "csrf_token"}


def test_a_user_gets_a_password_and_loses_it(secured_console: ConsoleClient) -> None:
    assert "No user matches" in secured_console.get("/users").text
    form = {"user": "alice", "password": " s3cret ", "mechanism": "SCRAM-SHA-512"}
    assert secured_console.post("/users", form).status == 303
    page = secured_console.get("/users")
    assert '<th scope="row">alice</th><td>SCRAM-SHA-512</td>' in page.text
    assert "s3cret" not in page.text
    assert "SCRAM names are ASCII" in secured_console.post("/users", {**form, "user": "álice"}).text
    assert secured_console.post("/users", {"user": "alice", "mechanism": "SCRAM-SHA-512"}).status == 409
    assert secured_console.post("/users/delete", hidden_fields(page, "/users/delete")).status == 303
    assert secured_console.post("/users/delete", hidden_fields(page, "/users/delete")).status == 409
    assert "No user matches" in secured_console.get("/users").text


def test_a_rule_is_added_and_deleted(secured_console: ConsoleClient) -> None:
    secured_console.get("/acls")
    form = {
        "principal": "User:bob <b>",
        "permission": "DENY",
        "operation": "READ",
        "resource_type": "TOPIC",
        "pattern": "PREFIXED",
        "resource_name": "secret-",
    }
    assert secured_console.post("/acls", form).status == 303
    page = secured_console.get("/acls")
    assert "User:bob &lt;b&gt; from host * may not READ every TOPIC that begins with secret-" in page.text
    assert "is no principal" in secured_console.post("/acls", {**form, "principal": "bob"}).text
    assert secured_console.post("/acls", {**form, "operation": "DANCE"}).status == 409
    assert secured_console.post("/acls/delete", hidden_fields(page, "/acls/delete")).status == 303
    assert "No rule matches" in secured_console.get("/acls").text


def test_the_deleted_rule_is_the_chosen_one_also_with_a_blank_at_the_end_of_a_name(
    secured: Daemon, secured_console: ConsoleClient
) -> None:
    for user in ("bob", "bob\u00a0"):
        arguments = ["acl", "add", "--principal", f"User:{user}", "--topic", "t", "--operation", "read"]
        assert CliRunner().invoke(main, [*arguments, "--bootstrap", secured.bootstrap]).exit_code == 0
    fields = hidden_fields(secured_console.get("/acls"), "/acls/delete")
    for user in ("bob\u00a0", "bob"):
        assert secured_console.post("/acls/delete", {**fields, "principal": f"User:{user}"}).status == 303
        assert ("User:bob from host" in secured_console.get("/acls").text) is (user != "bob")


def test_a_quota_is_set_and_removed(secured_console: ConsoleClient) -> None:
    secured_console.get("/quotas")
    form = {"user": "carol", "client": "*", "key": "producer_byte_rate", "value": "1048576"}
    assert secured_console.post("/quotas", form).status == 303
    page = secured_console.get("/quotas")
    assert "every client-id, user carol" in page.text
    assert "1,048,576" in page.text
    assert secured_console.post("/quotas", {**form, "value": "much"}).status == 409
    assert secured_console.post("/quotas", {"key": "producer_byte_rate", "value": "1"}).status == 409
    assert secured_console.post("/quotas/delete", hidden_fields(page, "/quotas/delete")).status == 303
    assert "No quota matches" in secured_console.get("/quotas").text


def test_a_broker_without_an_authorizer_says_what_to_set(console: ConsoleClient) -> None:
    page = console.get("/acls")
    assert page.status == 200
    assert "set authorizer.class.name=" in page.text
    assert "Add the rule" not in page.text
    assert "Set the password" not in console.get("/users").text
    for path in ("/users", "/users/delete", "/acls", "/acls/delete", "/quotas", "/quotas/delete"):
        assert console.post(path, {"csrf_token": "guessed"}).status == 403
