"""`barnabas doctor client` at a secured broker: the step that fails, and what to change."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from barnabas.commands.main import main
from tests.support.daemon import Daemon
from tests.support.development import entries, init

SASL_SSL, SSL, SASL_PLAINTEXT, PLAINTEXT = range(4)
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@pytest.fixture(scope="module")
def created(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("development") / "secure"
    (password := directory.parent / "password").write_text("canary-of-admin")
    password.chmod(0o600)
    code, output = init(directory, "--host", "127.0.0.1", "--password-file", str(password))
    assert code == 0, output
    return directory


@pytest.fixture(scope="module")
def ports(created: Path) -> Iterator[list[int]]:
    names = ("SASL_SSL", "SSL", "SASL_PLAINTEXT", "PLAINTEXT")
    listeners = ",".join(f"{name}://127.0.0.1:0" for name in names)
    settings = {
        **entries(created / "server.properties"),
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "SCRAM-SHA-512",
    }
    with Daemon(created.parent / "broker", settings) as daemon:
        found = [int(port) for port in re.findall(r"listening, listener=\S+ port=(\d+)", daemon.log)]
        file = str(created / "client.properties")
        secured = ["--bootstrap", f"127.0.0.1:{found[SASL_SSL]}", "--command-config", file]
        (password := created.parent / "bob").write_text("canary-of-bob")
        password.chmod(0o600)
        for command in (
            ["topic", "create", "orders"],
            ["topic", "create", "secrets"],
            ["user", "add", "bob", "--password-file", str(password)],
            ["acl", "add", "--principal", "User:bob", "--topic", "orders", "--operation", "read"],
            ["acl", "add", "--principal", "User:bob", "--group", "readers", "--operation", "read"],
            ["acl", "add", "--principal", "User:bob", "--group", "watched", "--operation", "describe"],
        ):
            done = CliRunner().invoke(main, [*command, *secured])
            assert done.exit_code == 0, done.output
        yield found


class Doctor:
    """Runs the command with the properties of one file, some of them changed."""

    def __init__(self, created: Path, directory: Path) -> None:
        self._created = created
        self._file = directory / "changed.properties"

    def run(self, address: str, base: str | None, *options: str, **changed: str | None) -> dict[str, Any]:
        changes = {key.replace("_", "."): value for key, value in changed.items()}
        values = {**(entries(self._created / base) if base else {}), **changes}
        escaped = {key: value.replace("\\", "\\\\").replace("\n", "\\n") for key, value in values.items() if value}
        self._file.write_text("".join(f"{key}={value}\n" for key, value in escaped.items()))
        command = ["doctor", "client", address, "--json", "--timeout", "5", "--command-config", str(self._file)]
        result = CliRunner().invoke(main, [*command, *options])
        assert "canary" not in result.output
        assert "PRIVATE" not in result.output
        report: dict[str, Any] = json.loads(result.stdout)
        assert result.exit_code == (1 if report["problems"] else 0), result.output
        return report


@pytest.fixture
def doctor(created: Path, tmp_path: Path) -> Doctor:
    return Doctor(created, tmp_path)


def login(user: str, password: str) -> str:
    return f'{SCRAM} username="{user}" password="{password}";'


def test_each_step_with_a_password(ports: list[int], doctor: Doctor) -> None:
    address = f"127.0.0.1:{ports[SASL_SSL]}"
    report = doctor.run(address, "client.properties", "--topic", "orders", "--group", "unknown")

    assert (report["problems"], report["failed_step"]) == ([], None)
    assert report["security_protocol"] == "SASL_SSL"
    expected = [
        r"connected \(127\.0\.0\.1\)",
        r"TLSv1\.3, TLS_\w+; certificate of CN=127\.0\.0\.1 for 127\.0\.0\.1, issued by CN=Barnabas development CA, "
        r"valid until \d{4}-\d\d-\d\d \d\d:\d\d UTC; the host name fits",
        r"speaks Kafka's protocol, \d+ APIs",
        r"offers the mechanism\(s\) SCRAM-SHA-512",
        r"logged in as admin with SCRAM-SHA-512",
        r"cluster \S+, 1 broker\(s\)",
        r"operations on the cluster: CREATE, ALTER, .*",
        r"operations on the topic orders: READ, WRITE, .*",
        r"operations on the group unknown: READ, DELETE, DESCRIBE, .*",
        r"broker 1: \S+ can be reached and belongs to the cluster",
    ]
    steps = [step.removeprefix(f"{address}: ") for step in report["steps"]]
    assert len(steps) == len(expected)
    for step, pattern in zip(steps, expected, strict=True):
        assert re.fullmatch(pattern, step)


def test_each_step_with_a_certificate(ports: list[int], doctor: Doctor) -> None:
    report = doctor.run(f"127.0.0.1:{ports[SSL]}", "client-tls.properties")

    assert report["problems"] == []
    assert report["brokers"][0]["port"] == ports[SSL]


def test_the_operations_of_another_user(ports: list[int], doctor: Doctor) -> None:
    bob = login("bob", "canary-of-bob")
    address = f"127.0.0.1:{ports[SASL_SSL]}"
    report = doctor.run(address, "client.properties", "--topic", "orders", "--topic", "secrets", sasl_jaas_config=bob)

    (problem,) = report["problems"]
    assert report["failed_step"] == "authorization"
    assert "may not describe the topic secrets (TOPIC_AUTHORIZATION_FAILED)" in problem
    assert "barnabas acl add --principal User:bob --topic secrets" in problem
    assert report["operations"] == {"cluster": [], "topics": {"orders": ["READ", "DESCRIBE"], "secrets": []}}


def test_a_group_that_the_client_cannot_join(ports: list[int], doctor: Doctor) -> None:
    bob = login("bob", "canary-of-bob")
    address = f"127.0.0.1:{ports[SASL_SSL]}"
    groups = ("--group", "readers", "--group", "watched", "--group", "closed")
    report = doctor.run(address, "client.properties", *groups, sasl_jaas_config=bob)

    watched, closed = report["problems"]
    assert report["failed_step"] == "authorization"
    assert "may not join the group watched or commit its offsets" in watched
    assert "may not describe the group closed (GROUP_AUTHORIZATION_FAILED)" in closed
    assert "barnabas acl add --principal User:bob --group closed --operation read" in closed
    assert report["operations"]["groups"] == {"readers": ["READ", "DESCRIBE"], "watched": ["DESCRIBE"], "closed": []}


@pytest.mark.parametrize(
    ("listener", "file", "changed", "step", "words"),
    [
        (SASL_SSL, None, {}, "TLS", "speaks TLS, and this client does not: set security.protocol to SSL or SASL_SSL"),
        (SSL, None, {}, "TLS", "set security.protocol to SSL or SASL_SSL"),
        (
            SASL_PLAINTEXT,
            None,
            {},
            "SASL handshake",
            "requires a login: set security.protocol to SASL_PLAINTEXT, sasl.mechanism to one that it offers "
            "(SCRAM-SHA-512)",
        ),
        (
            SASL_SSL,
            "client.properties",
            {"security_protocol": "SSL"},
            "SASL handshake",
            "requires a login: set security.protocol to SASL_SSL",
        ),
        (
            SASL_SSL,
            "client.properties",
            {"security_protocol": "SASL_PLAINTEXT"},
            "TLS",
            "set security.protocol to SASL_SSL",
        ),
        (PLAINTEXT, "client-tls.properties", {}, "TLS", "set security.protocol to PLAINTEXT or SASL_PLAINTEXT"),
        (SASL_PLAINTEXT, "client.properties", {}, "TLS", "set security.protocol to SASL_PLAINTEXT"),
        (
            PLAINTEXT,
            "client.properties",
            {"security_protocol": "SASL_PLAINTEXT"},
            "SASL handshake",
            "set security.protocol to PLAINTEXT",
        ),
        (
            SASL_SSL,
            "client.properties",
            {"sasl_mechanism": "SCRAM-SHA-256"},
            "SASL handshake",
            "does not take sasl.mechanism=SCRAM-SHA-256; it takes SCRAM-SHA-512",
        ),
        (
            SASL_SSL,
            "client.properties",
            {"sasl_jaas_config": login("admin", "another canary")},
            "SASL login",
            "due to invalid credentials with SASL mechanism SCRAM-SHA-512. Check username and password",
        ),
        (
            SASL_SSL,
            "client.properties",
            {"ssl_truststore_certificates": None, "ssl_truststore_type": None},
            "TLS",
            "The certificate there is of CN=127.0.0.1 for 127.0.0.1, issued by CN=Barnabas development CA, valid until",
        ),
        (
            SSL,
            "client-tls.properties",
            {"ssl_keystore_key": None, "ssl_keystore_certificate_chain": None, "ssl_keystore_type": None},
            "TLS",
            "may require a client certificate (ssl.keystore.location)",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else None,
)
def test_the_failing_step_and_its_remedy(
    ports: list[int],
    doctor: Doctor,
    listener: int,
    file: str | None,
    changed: dict[str, str | None],
    step: str,
    words: str,
) -> None:
    report = doctor.run(f"127.0.0.1:{ports[listener]}", file, **changed)

    (problem,) = report["problems"]
    assert words in problem
    assert report["failed_step"] == step


def test_a_host_name_that_the_certificate_does_not_contain(ports: list[int], doctor: Doctor) -> None:
    if "127.0.0.1" not in {entry[4][0] for entry in socket.getaddrinfo("localhost", 0)}:
        pytest.skip("localhost is not 127.0.0.1 here")
    report = doctor.run(f"localhost:{ports[SASL_SSL]}", "client.properties")

    assert report["failed_step"] == "TLS"
    assert "is not for localhost: connect by a name that it contains" in report["problems"][0]
    unchecked = {"ssl_endpoint_identification_algorithm": " "}
    assert doctor.run(f"localhost:{ports[SASL_SSL]}", "client.properties", **unchecked)["problems"] == []


def test_a_trust_store_that_does_not_exist(ports: list[int], tmp_path: Path) -> None:
    (file := tmp_path / "client.properties").write_text(
        f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={tmp_path / 'missing.pem'}\n"
    )
    command = ["doctor", "client", f"127.0.0.1:{ports[SSL]}", "--command-config", str(file)]
    result = CliRunner().invoke(main, command)

    assert result.exit_code == 2
    assert "missing.pem" in result.output


def test_the_text_for_people_names_the_failing_step(ports: list[int]) -> None:
    result = CliRunner().invoke(main, ["doctor", "client", f"127.0.0.1:{ports[SASL_PLAINTEXT]}"])

    assert result.stdout.splitlines()[-2] == "the step that fails: SASL handshake"
    assert result.stdout.splitlines()[-1].startswith("problem: a client begins at 127.0.0.1:")
