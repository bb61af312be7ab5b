"""A broker with TLS and users in a user's tests: logins, users, ACLs and a restart."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient

from barnabas import Admin, AdminConfig
from barnabas.clients.errors import AuthenticationError
from barnabas.clients.secure_testing import SecureBrokerProcess
from barnabas.clients.security.settings import SecuritySettings
from barnabas.clients.testing import secure_broker
from barnabas.commands.main import main

PASSWORD = 'with "quotes", \\ and\nlines'


@pytest.fixture(scope="module")
def running() -> Iterator[SecureBrokerProcess]:
    with secure_broker({"node.id": 7}) as broker:
        broker.create_topic("orders")
        yield broker


def topics(properties: Mapping[str, str]) -> set[str]:
    async def listed() -> set[str]:
        security = SecuritySettings.from_properties(properties)
        async with Admin(AdminConfig(bootstrap=properties["bootstrap.servers"], security=security)) as admin:
            return {topic.name for topic in await admin.list_topics()}

    return asyncio.run(listed())


def command_config(properties: Mapping[str, str], directory: Path) -> list[str]:
    """Write the properties to a file; return the option that names it."""
    (file := directory / "client.properties").write_text(
        "".join(
            f"{name}={value.replace(chr(92), chr(92) * 2).replace(chr(10), chr(92) + 'n')}\n"
            for name, value in properties.items()
        )
    )
    return ["--command-config", str(file)]


def test_the_properties_of_the_admin_log_in(running: SecureBrokerProcess) -> None:
    assert running.client_properties["sasl.mechanism"] == "SCRAM-SHA-512"
    assert topics(running.client_properties) >= {"orders"}
    assert running.security.protocol == "SASL_SSL"
    assert "\nnode.id=7\n" in (running.data_directory / "meta.properties").read_text()


def test_another_client_library_logs_in(running: SecureBrokerProcess) -> None:
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": running.bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(running.ca_path),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "admin",
        "sasl.password": running.password,
    }
    assert "orders" in AdminClient(settings).list_topics(timeout=30).topics


def test_a_user_logs_in_until_the_password_changes(running: SecureBrokerProcess) -> None:
    properties = running.add_user("alice", PASSWORD)
    assert topics(properties) >= {"orders"}

    changed = running.add_user("alice", "another")
    assert topics(changed) >= {"orders"}
    with pytest.raises(AuthenticationError, match="invalid credentials"):
        topics(properties)


def test_a_client_with_a_certificate_is_its_user(running: SecureBrokerProcess, tmp_path: Path) -> None:
    running.create_topic("certified")
    connect = command_config(running.issue_certificate("admin"), tmp_path)
    rule = ["--principal", "User:dave", "--topic", "certified", "--operation", "read"]
    done = CliRunner().invoke(main, ["acl", "add", *rule, *connect])
    assert done.exit_code == 0, done.output

    assert topics(running.issue_certificate("dave")) >= {"certified", "orders"}
    assert "certified" not in topics(running.issue_certificate("erin"))
    certificate = running.issue_certificate("dave")
    for name in ("ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.keystore.type"):
        certificate.pop(name)
    with pytest.raises(AuthenticationError, match="may require a client certificate"):
        topics(certificate)


def test_acls_are_enforced(running: SecureBrokerProcess, tmp_path: Path) -> None:
    running.create_topic("secrets")
    connect = command_config(running.client_properties, tmp_path)
    rule = ["--principal", "User:admin", "--topic", "secrets", "--operation", "all"]
    done = CliRunner().invoke(main, ["acl", "add", *rule, *connect])
    assert done.exit_code == 0, done.output

    assert "secrets" not in topics(running.add_user("bob", "password"))
    assert "secrets" in topics(running.client_properties)


def test_files_with_keys_are_for_their_owner_and_no_password_is_logged(running: SecureBrokerProcess) -> None:
    for name in ("broker.pem", "secure.properties"):
        assert stat.S_IMODE((running.directory / name).stat().st_mode) == 0o600
    assert running.password not in running.log
    assert running.password not in Path(f"/proc/{running.pid}/cmdline").read_text()


def test_users_and_the_port_survive_a_crash(running: SecureBrokerProcess) -> None:
    properties = running.add_user("carol", "password")
    running.restart(clean=False)

    assert properties == running.add_user("carol", "password")
    assert "orders" in topics(properties)
