"""`--command-config` and BARNABAS_* variables: commands of both dialects at a broker that requires a login."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from barnabas.commands.main import main
from tests.support.daemon import Daemon, start_daemon
from tests.support.forked_commands import run_forked

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(
        tmp_path_factory.mktemp("daemon"),
        "listeners=SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512",
        f'listener.name.sasl_plaintext.plain.sasl.jaas.config={MODULE} required user_alice="pencil";',
        "connection.failed.authentication.delay.ms=0",
        # A container has one environment for its broker and for commands in it.
        environ={"BARNABAS_SECURITY_PROTOCOL": "SASL_PLAINTEXT", "BARNABAS_SASL_PASSWORD": "canary"},
    ) as running:
        yield running


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "client.properties"
    path.write_text(
        "# of Kafka's tools, too\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={MODULE} required \\\n  username="alice" password="pencil";\n'
    )
    return path


def run(daemon: Daemon, *arguments: object, text: str = "", env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(
        main, [*map(str, arguments), "--bootstrap", daemon.bootstrap], input=text, env=env, catch_exceptions=False
    )


def in_a_process(daemon: Daemon, *arguments: object, text: str = "") -> str:
    """Run a command that uses the descriptors of its standard streams."""
    command = [*map(str, arguments), "--bootstrap", daemon.bootstrap]
    done = run_forked(*command, environ=os.environ, stdin=text.encode())
    assert done.returncode == 0, done
    return done.stdout.decode()


def test_commands_of_both_dialects_log_in(daemon: Daemon, config: Path) -> None:
    given = ("--command-config", config)
    assert run(daemon, "topic", "create", "t", *given).exit_code == 0
    assert in_a_process(daemon, "produce", "t", *given, text="one\ntwo\n") == ""
    assert in_a_process(daemon, "consume", "t", "--from-beginning", "--exit-at-end", *given) == "one\ntwo\n"
    assert run(daemon, "user", "add", "bob", *given, text="secret\n").exit_code == 0
    assert json.loads(run(daemon, "user", "list", "--json", *given).stdout)[0]["user"] == "bob"


def test_variables_name_the_file_or_the_properties(daemon: Daemon, config: Path) -> None:
    listed = run(daemon, "user", "list", "--json", env={"BARNABAS_COMMAND_CONFIG": str(config)})
    assert listed.exit_code == 0
    variables = {
        "BARNABAS_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "BARNABAS_SASL_MECHANISM": "PLAIN",
        "BARNABAS_SASL_USERNAME": "alice",
        "BARNABAS_SASL_PASSWORD": "pencil",
    }
    assert run(daemon, "topic", "list", env=variables).exit_code == 0
    refused = run(daemon, "topic", "list", env={**variables, "BARNABAS_SASL_PASSWORD": "canary"})
    assert refused.exit_code == 1
    assert "refuses the PLAIN login: Authentication failed: Invalid username or password" in refused.stderr
    assert "canary" not in refused.stderr
    misspelled = run(daemon, "topic", "list", env={**variables, "BARNABAS_SASL_PASWORD": "canary"})
    assert misspelled.exit_code == 2
    assert "BARNABAS_SASL_PASWORD in the environment: clients have no such property" in misspelled.stderr
    assert "did you mean BARNABAS_SASL_PASSWORD?" in misspelled.stderr
    assert "canary" not in misspelled.stderr
    of_others = {"BARNABAS_SSL_CLIENT_AUTH": "none", "BARNABAS_SSL_PORT_9092_TCP": "tcp://10.0.0.1:9092"}
    assert run(daemon, "topic", "list", env={**variables, **of_others}).exit_code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("security.protocol=TLS", "security.protocol=TLS is not one of"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=canary", "sasl.jaas.config: "),
        ("security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location=/no/ca.pem", "/no/ca.pem"),
        ("security.protocol=\\uZZZZ", "client.properties, line 1: "),
    ],
)
def test_a_faulty_file_is_a_usage_error(daemon: Daemon, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "client.properties"
    path.write_text(text)
    refused = run(daemon, "topic", "list", "--command-config", path)
    assert refused.exit_code == 2
    assert message in refused.stderr
    assert "canary" not in refused.stderr


def test_the_file_names_the_broker_unless_the_command_does(daemon: Daemon, config: Path) -> None:
    complete = config.with_name("complete.properties")
    complete.write_text(f"bootstrap.servers={daemon.bootstrap}\n{config.read_text()}")
    elsewhere = config.with_name("elsewhere.properties")
    elsewhere.write_text(f"bootstrap.servers=127.0.0.1:1\n{config.read_text()}")
    variable = {"BARNABAS_COMMAND_CONFIG": str(complete)}
    for arguments, env in (((), variable), (("--command-config", str(complete)), None)):
        done = CliRunner().invoke(main, ["topic", "list", *arguments], env=env, catch_exceptions=False)
        assert done.exit_code == 0, done.stderr
    assert run(daemon, "topic", "list", "--command-config", elsewhere).exit_code == 0
    chosen = {"BARNABAS_BOOTSTRAP": daemon.bootstrap, "BARNABAS_COMMAND_CONFIG": str(elsewhere)}
    assert CliRunner().invoke(main, ["topic", "list"], env=chosen, catch_exceptions=False).exit_code == 0


def test_misspelled_names_in_the_file_are_refused(daemon: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "misspelled.properties"
    path.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechansim=PLAIN\n")
    refused = run(daemon, "topic", "list", "--command-config", path)
    assert refused.exit_code == 2
    assert "sasl.mechansim: clients have no such property; did you mean sasl.mechanism?" in refused.stderr
