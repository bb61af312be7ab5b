"""`barnabas user`: on a running broker, and in the directories of a stopped one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from barnabas.broker.metadata.log.log_replay import replay_metadata_directory
from barnabas.commands.main import main
from barnabas.protocol.sasl.scram_keys import SCRAM_SHA_512, keys_of_password
from tests.support.daemon import Daemon, start_daemon
from tests.support.storage.metadata_store import opened


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("daemon")) as running:
        yield running


def run(*arguments: str, password: str | None = None) -> Result:
    return CliRunner().invoke(main, ["user", *arguments], input=None if password is None else f"{password}\n")


def test_users_are_added_listed_and_deleted(daemon: Daemon) -> None:
    online = ("--bootstrap", daemon.bootstrap)
    both = ("--mechanism", "scram-sha-256", "--mechanism", "SCRAM-SHA-512")
    added = run("add", "alice", *both, "--iterations", "8192", *online, password="secret")
    assert added.output == "user alice has a password for SCRAM-SHA-256 and SCRAM-SHA-512\n"
    listed = run("list", "--json", *online)
    assert json.loads(listed.output) == [
        {"user": "alice", "mechanism": "SCRAM-SHA-256", "iterations": 8192},
        {"user": "alice", "mechanism": "SCRAM-SHA-512", "iterations": 8192},
    ]
    run("delete", "alice", "--mechanism", "SCRAM-SHA-256", *online)
    assert run("list", *online).output.split()[3:] == ["alice", "SCRAM-SHA-512", "8192"]
    assert run("delete", "alice", *online).exit_code == 0
    gone = run("delete", "alice", *online)
    assert (gone.exit_code, gone.stderr) == (1, "barnabas: user alice does not exist\n")
    assert "secret" not in daemon.log


def test_the_first_user_is_added_to_new_directories_of_a_stopped_broker(tmp_path: Path) -> None:
    data = tmp_path / "data"
    password_file = tmp_path / "password"
    password_file.write_text("a secret\nnot this\n")
    password_file.chmod(0o600)
    offline = ("--log-dir", str(data))
    added = run("add", "alice", "--password-file", str(password_file), "--iterations", "8192", *offline)
    assert added.exit_code == 0, added.output
    credential = replay_metadata_directory(data / "__cluster_metadata-0").image.security.scram["alice", 2]
    assert tuple(credential) == tuple(keys_of_password(SCRAM_SHA_512, "a secret", credential.salt, 8192))
    alice = {"user": "alice", "mechanism": "SCRAM-SHA-512", "iterations": 8192}
    assert json.loads(run("list", "--json", *offline).output) == [alice]
    assert run("delete", "alice", *offline).exit_code == 0
    assert json.loads(run("list", "--json", *offline).output) == []


def test_directories_come_from_a_server_properties(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(f"node.id=7\nlog.dirs={tmp_path}/one,{tmp_path}/two\nmetadata.log.dir={tmp_path}/two\n")
    assert run("add", "alice", "--config", str(properties), password="secret").exit_code == 0
    image = replay_metadata_directory(tmp_path / "two" / "__cluster_metadata-0").image
    assert list(image.security.scram) == [("alice", 2)]
    assert "node.id=7" in (tmp_path / "one" / "meta.properties").read_text()


def test_a_running_brokers_directories_are_not_changed(daemon: Daemon) -> None:
    refused = run("add", "bob", "--log-dir", str(daemon.data_directory), password="secret")
    assert refused.exit_code == 1
    assert "leave out --log-dir and --config, and name the broker with --bootstrap" in refused.stderr
    assert "bob" not in run("list", "--bootstrap", daemon.bootstrap).output


def test_a_list_from_a_running_brokers_directories_is_noted(daemon: Daemon, tmp_path: Path) -> None:
    listed = run("list", "--json", "--log-dir", str(daemon.data_directory))
    assert listed.exit_code == 0, listed.output
    assert f"{daemon.data_directory} has a .lock file: a broker is running there" in listed.stderr
    assert run("add", "alice", "--log-dir", str(tmp_path / "data"), password="secret").exit_code == 0
    assert run("list", "--log-dir", str(tmp_path / "data")).stderr == ""


def test_a_level_below_11_is_refused_with_the_command_that_raises_it(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text(f"log.dirs={tmp_path}/data\ninitial.features=metadata.version=10\n")
    with opened(tmp_path / "data", initial_features="metadata.version=10"):
        pass
    refused = run("add", "alice", "--log-dir", str(tmp_path / "data"), password="secret")
    assert refused.exit_code == 1
    assert "level 11" in refused.stderr
    assert "--feature metadata.version=11" in refused.stderr


def test_an_empty_password_is_refused(tmp_path: Path) -> None:
    refused = run("add", "alice", "--log-dir", str(tmp_path / "data"), password="")
    assert (refused.exit_code, refused.stderr) == (2, "barnabas: the password is empty\n")
    assert not (tmp_path / "data").exists()


def test_a_password_file_that_others_can_read_is_noted(tmp_path: Path) -> None:
    password_file = tmp_path / "password"
    password_file.write_text("secret")
    password_file.chmod(0o644)
    added = run("add", "alice", "--password-file", str(password_file), "--log-dir", str(tmp_path / "data"))
    assert added.exit_code == 0
    assert f"chmod 600 {password_file}" in added.stderr


def test_a_name_that_scram_cannot_transport_is_refused(tmp_path: Path) -> None:
    refused = run("add", "zoé", "--log-dir", str(tmp_path / "data"), password="secret")
    assert (refused.exit_code, refused.stderr) == (2, "barnabas: user zoé could not log in: SCRAM names are ASCII\n")
    assert not (tmp_path / "data").exists()
