"""`barnabas acl` on a running broker, and on the directories of a stopped one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from barnabas.commands.main import main
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire, metadata_request
from tests.support.storage.metadata_store import append, opened
from tests.support.storage.security_records import acl_record

AUTHORIZER = (
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users=User:ANONYMOUS",
)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("daemon"), *AUTHORIZER) as running:
        yield running


@pytest.fixture(autouse=True)
def no_acls(daemon: Daemon) -> Iterator[None]:
    yield
    run(daemon, "delete", "--all")


def run(daemon: Daemon, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["acl", *arguments, "--bootstrap", daemon.bootstrap])


def listed(daemon: Daemon, *arguments: str) -> list[tuple[Any, ...]]:
    result = run(daemon, "list", "--json", *arguments)
    assert result.exit_code == 0, result.output
    return [tuple(each.values()) for each in json.loads(result.output)]


def test_rules_are_added_listed_and_deleted(daemon: Daemon) -> None:
    added = run(daemon, "add", "--principal", "User:alice", "--topic", "orders", "--operation", "read", "--host", "::1")
    assert added.output == "User:alice from host ::1 may READ TOPIC orders\n"
    run(daemon, "add", "--principal", "User:*", "--cluster", "--operation", "alter-configs", "--deny")
    of_orders = ("TOPIC", "orders", "LITERAL", "User:alice", "::1", "READ", "ALLOW")
    assert listed(daemon) == [
        of_orders,
        ("CLUSTER", "kafka-cluster", "LITERAL", "User:*", "*", "ALTER_CONFIGS", "DENY"),
    ]
    assert listed(daemon, "--permission", "allow") == [of_orders]
    assert "orders" in run(daemon, "list", "--topic", "orders").output
    deleted = run(daemon, "delete", "--topic", "orders")
    assert deleted.output == "deleted: User:alice from host ::1 may READ TOPIC orders\n"
    assert len(listed(daemon)) == 1
    none = run(daemon, "delete", "--topic", "orders")
    assert (none.exit_code, none.stderr) == (1, "barnabas: no rule is selected\n")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--topic", "*", "--operation", "all", "--deny"), "may not do anything with every TOPIC"),
        (("--topic", "*", "--operation", "all"), "may do everything with every TOPIC"),
        (
            ("--topic", "logs-", "--pattern", "prefixed", "--operation", "read"),
            "may READ every TOPIC that begins with logs-",
        ),
        (("--group", "g", "--operation", "read", "--deny"), "may not READ GROUP g"),
    ],
)
def test_a_rule_is_a_sentence(daemon: Daemon, options: tuple[str, ...], sentence: str) -> None:
    added = run(daemon, "add", "--principal", "User:alice", *options)
    assert added.output == f"User:alice from host * {sentence}\n"


def test_roles_give_what_kafka_acls_gives(daemon: Daemon) -> None:
    prefixed = ("--pattern", "prefixed")
    run(daemon, "add", "--principal", "User:p", "--producer", "--topic", "in-", "--transactional-id", "tx", *prefixed)
    run(daemon, "add", "--principal", "User:c", "--consumer", "--topic", "orders", "--group", "g")
    rules = {(who, kind, name, pattern, operation) for kind, name, pattern, who, _, operation, _ in listed(daemon)}
    assert rules == {
        *(("User:p", "TOPIC", "in-", "PREFIXED", each) for each in ("WRITE", "DESCRIBE", "CREATE")),
        *(("User:p", "TRANSACTIONAL_ID", "tx", "PREFIXED", each) for each in ("WRITE", "DESCRIBE")),
        *(("User:c", "TOPIC", "orders", "LITERAL", each) for each in ("READ", "DESCRIBE")),
        ("User:c", "GROUP", "g", "LITERAL", "READ"),
    }
    assert {rule[1] for rule in listed(daemon, "--topic", "in-stock", "--pattern", "match")} == {"in-"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("add", "--principal", "User:a", "--operation", "read"), "name a resource: --topic,"),
        (("add", "--principal", "User:a", "--topic", "t"), "give an --operation for the topic"),
        (("add", "--principal", "User:a", "--consumer", "--topic", "t"), "--consumer needs a --group"),
        (("add", "--principal", "User:a", "--producer", "--group", "g"), "give an --operation for the group"),
        (("delete",), "or give --all"),
    ],
)
def test_incomplete_options_are_refused(daemon: Daemon, arguments: tuple[str, ...], sentence: str) -> None:
    refused = run(daemon, *arguments)
    assert refused.exit_code == 2
    assert sentence in refused.stderr


def test_the_brokers_refusal_is_one_sentence(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as open_to_all:
        refused = run(open_to_all, "list")
        assert (refused.exit_code, refused.stderr) == (
            1,
            "barnabas: No Authorizer is configured on the broker: set authorizer.class.name="
            "org.apache.kafka.metadata.authorizer.StandardAuthorizer (SECURITY_DISABLED)\n",
        )


def test_rules_of_a_stopped_broker_are_listed(daemon: Daemon, tmp_path: Path) -> None:
    with opened(tmp_path / "data"):
        pass
    append(tmp_path / "data", acl_record(1, name="orders"), acl_record(2, name="other"))
    directory = ("--log-dir", str(tmp_path / "data"))
    assert [rule[1] for rule in listed(daemon, *directory)] == ["orders", "other"]
    assert [rule[1] for rule in listed(daemon, "--topic", "other", *directory)] == ["other"]


def test_rules_of_a_stopped_broker_are_added_and_deleted(daemon: Daemon, tmp_path: Path) -> None:
    directory = ("--log-dir", str(tmp_path / "data"))
    missing = run(daemon, "delete", "--all", *directory)
    assert (missing.exit_code, missing.stderr) == (1, "barnabas: no rule is selected\n")
    assert not (tmp_path / "data").exists(), "a deletion creates no directory"
    reading = ("--principal", "User:alice", "--topic", "orders", "--operation", "read")
    added = run(daemon, "add", *reading, "--operation", "write", *directory)
    assert added.exit_code == 0, added.output
    assert [rule[5] for rule in listed(daemon, *directory)] == ["READ", "WRITE"]
    deleted = run(daemon, "delete", "--operation", "write", *directory)
    assert deleted.output == "deleted: User:alice from host * may WRITE TOPIC orders\n"
    assert [rule[5] for rule in listed(daemon, *directory)] == ["READ"]
    with start_daemon(tmp_path / "daemon", f"log.dirs={tmp_path / 'data'}", *AUTHORIZER) as started:
        assert [rule[1:6] for rule in listed(started)] == [("orders", "LITERAL", "User:alice", "*", "READ")]
    running = run(daemon, "add", *reading, "--log-dir", str(daemon.data_directory))
    assert running.exit_code == 1
    assert "a broker is running on this data directory" in running.stderr


@pytest.fixture(scope="module")
def permissive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    settings = (*AUTHORIZER[:1], "super.users=User:admin", "allow.everyone.if.no.acl.found=true")
    with start_daemon(tmp_path_factory.mktemp("permissive"), *settings) as running:
        yield running


def test_a_rule_decides_before_its_creation_is_answered(permissive: Daemon) -> None:
    """A client without rights gets them, and loses them, with the command's return."""
    with KafkaWire(permissive.host, permissive.port) as kafka:

        def error_of_orders() -> int:
            kafka.send(metadata_request(12, "orders"))
            return int(kafka.receive("metadata", 12).topics[0].error_code.value)

        assert error_of_orders() != 29
        everyone = ("--principal", "User:*", "--operation")
        assert run(permissive, "add", *everyone, "read", "--topic", "orders", "--deny").exit_code == 0
        assert error_of_orders() == 29
        assert run(permissive, "delete", "--topic", "orders").exit_code == 0
        assert error_of_orders() != 29


def test_explain_asks_a_running_broker_for_super_users_where_it_may(permissive: Daemon) -> None:
    question = ("explain", "--principal", "User:bob", "--topic", "orders", "--operation", "read")
    assert json.loads(run(permissive, *question, "--json").output)["rule"] == "DefaultAllow"
    everyone = ("--principal", "User:*", "--cluster")
    rights = ("--operation", "describe", "--operation", "alter")  # together: the first rule denies what it omits
    assert run(permissive, "add", *everyone, *rights).exit_code == 0
    answer = run(permissive, *question)
    assert answer.output.startswith("User:bob from host 127.0.0.1 may not READ TOPIC orders, unless it is in super")
    assert "to this client (CLUSTER_AUTHORIZATION_FAILED); that needs DESCRIBE_CONFIGS on the cluster" in answer.output


def test_explain_names_the_deciding_rule_and_what_the_others_do(daemon: Daemon) -> None:
    orders = ("--topic", "orders")
    run(daemon, "add", "--principal", "User:alice", *orders, "--operation", "write")
    on_prefix = ("--topic", "ord", "--pattern", "prefixed")
    run(daemon, "add", "--principal", "User:*", *on_prefix, "--operation", "all", "--deny", "--host", "10.0.0.9")
    run(daemon, "add", "--principal", "User:bob", "--topic", "*", "--operation", "all")

    allowed = run(daemon, "explain", "--principal", "User:alice", *orders, "--operation", "describe")
    denied = run(daemon, "explain", "--principal", "User:alice", *orders, "--operation", "read", "--json")
    elsewhere = run(
        daemon, "explain", "--principal", "User:bob", *orders, "--operation", "read", "--host", "10.0.0.9", "--json"
    )

    assert allowed.output.startswith(
        "User:alice from host 127.0.0.1 may DESCRIBE TOPIC orders: an ACL allows WRITE, which implies DESCRIBE.\n"
    )
    assert "not known" not in allowed.output
    of_super_user = run(daemon, "explain", "--principal", "User:ANONYMOUS", *orders, "--operation", "delete", "--json")
    assert json.loads(of_super_user.output)["rule"] == "SuperUser"
    found = json.loads(denied.output)
    assert found["settings_known"] is True
    assert (found["allowed"], found["rule"], found["acl"]) == (False, "DefaultDeny", None)
    assert found["reason"] == "ACLs match TOPIC orders, but none of them allows this"
    effects = [(each["principal"], each["effect"]) for each in found["considered"]]
    assert effects == [
        ("User:alice", "about another operation"),
        ("User:*", "about another host"),
        ("User:bob", "about another principal"),
    ]
    found = json.loads(elsewhere.output)
    assert (found["allowed"], found["acl"]["permission"]) == (False, "DENY")
    assert [each["effect"] for each in found["considered"]] == [
        "about another principal",
        "decides",
        "allows, but a denial wins",
    ]


def test_explain_with_a_configuration_knows_super_users_and_the_default(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with opened(data):
        pass
    append(data, acl_record(1))
    config = tmp_path / "server.properties"
    config.write_text(
        f"log.dirs={data}\nauthorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
        "super.users=User:root\nallow.everyone.if.no.acl.found=true\n"
    )

    def explained(principal: str) -> Any:
        arguments = ["--principal", principal, "--group", "unmentioned", "--operation", "read", "--json"]
        result = CliRunner().invoke(main, ["acl", "explain", *arguments, "--config", str(config)])
        assert result.exit_code == 0, result.output
        return json.loads(result.output)["rule"]

    assert explained("User:root") == "SuperUser"
    assert explained("User:bob") == "DefaultAllow"


def test_explain_needs_one_resource_and_one_operation(daemon: Daemon) -> None:
    two = run(daemon, "explain", "--principal", "User:a", "--topic", "a", "--topic", "b", "--operation", "read")
    every = run(daemon, "explain", "--principal", "User:a", "--topic", "a", "--operation", "all")
    assert (two.exit_code, every.exit_code) == (2, 2)


@pytest.mark.parametrize("command", ["add", "list", "delete", "explain"])
def test_a_principal_without_its_type_is_refused(daemon: Daemon, command: str) -> None:
    operation = ("--operation", "read")
    refused = run(daemon, command, "--principal", "alice", "--topic", "orders", *operation)
    assert refused.exit_code == 2
    assert "write User:NAME" in refused.stderr
