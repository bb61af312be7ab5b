"""`barnabas quota` on a running broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from barnabas.commands.main import main
from tests.support.daemon import Daemon, start_daemon


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("daemon")) as running:
        yield running


def run(daemon: Daemon, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["quota", *arguments, "--bootstrap", daemon.bootstrap])


def test_quotas_are_set_listed_and_deleted(daemon: Daemon) -> None:
    limits = ("producer_byte_rate=1048576", "request_percentage=12.5")
    set_ = run(daemon, "set", *limits, "--user", "alice", "--client-defaults")
    assert set_.output == "user alice, default client-id: producer_byte_rate=1048576, request_percentage=12.5\n"
    run(daemon, "set", "connection_creation_rate=100", "--ip", "10.0.0.1")
    assert json.loads(run(daemon, "list", "--json").output) == [
        {
            "entity": {"client-id": None, "user": "alice"},
            "limits": {"producer_byte_rate": 1048576.0, "request_percentage": 12.5},
        },
        {"entity": {"ip": "10.0.0.1"}, "limits": {"connection_creation_rate": 100.0}},
    ]
    table = run(daemon, "list", "--user", "alice").output.splitlines()
    assert [line.split()[-2:] for line in table[1:]] == [
        ["producer_byte_rate", "1048576"],
        ["request_percentage", "12.5"],
    ]
    run(daemon, "delete", "request_percentage", "producer_byte_rate", "--user", "alice", "--client-defaults")
    assert ": producer_byte_rate=1048576, request_percentage=12.5\n" in daemon.log
    assert ": request_percentage removed, producer_byte_rate removed\n" in daemon.log
    run(daemon, "delete", "connection_creation_rate", "--ip", "10.0.0.1")
    assert json.loads(run(daemon, "list", "--json").output) == []


def test_a_limit_that_is_not_set_is_not_deleted(daemon: Daemon) -> None:
    run(daemon, "set", "producer_byte_rate=5", "--user", "bob")
    for keys, entity in (
        (("producer_byte_rate", "request_percentage"), ("--user", "bob")),
        (("request_percentage",), ("--user-defaults",)),
        (("request_percentage",), ("--user", "bob", "--client", "c")),
    ):
        refused = run(daemon, "delete", *keys, *entity)
        assert refused.exit_code == 1
        assert ": request_percentage not set; nothing was deleted" in refused.stderr
    assert run(daemon, "delete", "producer_byte_rate", "--user", "bob").exit_code == 0
    assert json.loads(run(daemon, "list", "--json").output) == []


def test_limits_of_a_stopped_broker_are_set_listed_and_deleted(daemon: Daemon, tmp_path: Path) -> None:
    directory = ("--log-dir", str(tmp_path / "data"))
    assert run(daemon, "set", "producer_byte_rate=5", "--user", "bob", *directory).exit_code == 0
    assert run(daemon, "set", "request_percentage=9", "--user", "bob", "--client", "c", *directory).exit_code == 0
    assert run(daemon, "set", "connection_creation_rate=7", "--ip", "127.0.0.1", *directory).exit_code == 0
    of_bob = json.loads(run(daemon, "list", "--user", "bob", "--json", *directory).output)
    assert [entry["limits"] for entry in of_bob] == [{"producer_byte_rate": 5.0}, {"request_percentage": 9.0}]
    assert len(json.loads(run(daemon, "list", "--json", *directory).output)) == 3
    assert run(daemon, "delete", "producer_byte_rate", "--user", "bob", *directory).exit_code == 0
    refused = run(daemon, "delete", "producer_byte_rate", "--user", "bob", *directory)
    assert "not set; nothing was deleted" in refused.stderr
    fractional = run(daemon, "set", "producer_byte_rate=1.5", "--user", "bob", *directory)
    assert "cannot be a fractional value" in fractional.stderr
    assert json.loads(run(daemon, "list", "--json").output) == [], "the running broker is not concerned"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("set", "producer_byte_rate=5"), 2, "name a --user, a --client or an --ip, or their defaults"),
        (("set", "rate=5", "--user", "u"), 2, "'rate' is not a limit; known are producer_byte_rate,"),
        (("set", "request_percentage=all", "--user", "u"), 2, "'all' is not a number"),
        (("set", "request_percentage=5", "--user", "u", "--user-defaults"), 2, "give --user or --user-defaults"),
        (("set", "producer_byte_rate=1.5", "--user", "u"), 1, "cannot be a fractional value. (INVALID_REQUEST)"),
        (("set", "producer_byte_rate", "--user", "u"), 2, "producer_byte_rate has no value: write producer_byte_rate="),
        (
            ("set", "request_percentage=5", "--ip", "10.0.0.1"),
            2,
            "is a limit of users and client ids, not of addresses",
        ),
        (
            ("set", "connection_creation_rate=5", "--user", "u"),
            2,
            "is a limit of addresses: give --ip or --ip-defaults",
        ),
    ],
)
def test_an_impossible_limit_is_refused(daemon: Daemon, arguments: tuple[str, ...], code: int, sentence: str) -> None:
    refused = run(daemon, *arguments)
    assert refused.exit_code == code
    assert sentence in refused.stderr
