"""Users, ACLs and quotas: one directory in turn with Apache Kafka, and Kafka's own tools on a running broker.

A client that logs in as alice may read one topic, whichever broker serves the directory and whichever created the user
and the rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.clients.testing import BrokerProcess
from barnabas.commands.main import main
from tests.support.daemon import Daemon, start_daemon
from tests.support.eventually import eventually
from tests.support.free_ports import free_port
from tests.support.kafka.apache_kafka import HandedOver, Kafka, KafkaError, need_kafka

pytestmark = pytest.mark.timeout(300)

CONFIGS = "kafka.admin.ConfigCommand"
SCRAM = "SCRAM-SHA-512"
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "sasl.enabled.mechanisms": SCRAM,
}
OURS = (
    *(f"{name}={value}" for name, value in AUTHORIZER.items()),
    "listeners=PLAINTEXT://127.0.0.1:0,SECURE://127.0.0.1:0",
    "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SECURE:SASL_PLAINTEXT",
    "metadata.log.max.record.bytes.between.snapshots=1",
    "metadata.max.retention.bytes=0",
)
JAAS = "listener.name.secure.scram-sha-512.sasl.jaas.config"


def kafka_of(version: str, data: Path, scratch: Path) -> Kafka:
    login = {JAAS: "org.apache.kafka.common.security.scram.ScramLoginModule required;"}
    kafka = Kafka(version, data, scratch)
    kafka.settings |= AUTHORIZER | login
    kafka.extra_listeners = {"SECURE": "SASL_PLAINTEXT"}
    return kafka


def acl_tool(version: str) -> str:
    return "kafka.admin.AclCommand" if version.startswith("3.") else "org.apache.kafka.tools.AclCommand"


def secure_port(daemon: Daemon) -> int:
    found = re.findall(r"listener=SECURE://127\.0\.0\.1:0 port=(\d+)", daemon.log)
    return int(found[-1])


def login_of(port: int, user: str, password: str) -> dict[str, Any]:
    """Return librdkafka's configuration of a client that logs in by SCRAM."""
    return {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": SCRAM,
        "sasl.username": user,
        "sasl.password": password,
        "log_level": 0,
    }


def visible_topics(port: int, user: str, password: str) -> set[str]:
    """Log in by SCRAM and list topics. Raises KafkaException."""
    return set(AdminClient(login_of(port, user, password)).list_topics(timeout=20).topics)


def security_of(kafka: Kafka, bootstrap: str) -> list[str]:
    """Return the ACLs, users and quotas that Kafka's admin client describes."""
    lines = kafka.java_program("ClusterState", bootstrap, "describe").splitlines()
    return [line for line in lines if line.startswith(("acl ", "user ", "quota "))]


def command(daemon: Daemon, *arguments: str, password: str | None = None) -> None:
    given = None if password is None else f"{password}\n"
    done = CliRunner().invoke(main, [*arguments, "--bootstrap", daemon.bootstrap], input=given)
    assert done.exit_code == 0, done.output


def await_snapshot_of_all_changes(data: Path) -> None:
    """Wait until the metadata log has nothing after its newest snapshot, which begins a segment."""
    directory = data / "__cluster_metadata-0"

    def snapshot() -> Path | None:
        newest = max(directory.glob("*.log"))
        return next(directory.glob(f"{newest.stem}-*.checkpoint"), None) if newest.stat().st_size == 0 else None

    eventually(snapshot, what="a snapshot of all changes")


@pytest.mark.parametrize("version", ["4.3.0", "3.9.1"])
def test_a_directory_in_turn_keeps_users_acls_and_quotas(tmp_path: Path, version: str) -> None:
    need_kafka(version)
    data = tmp_path / "barnabas" / "data"
    kafka = kafka_of(version, data, tmp_path / "kafka")
    kafka.format("--add-scram", f"{SCRAM}=[name=alice,password=secret]")
    with kafka.running() as broker:
        kafka.java_program("ClusterState", broker.bootstrap, "make")
        before = security_of(kafka, broker.bootstrap)
        assert visible_topics(kafka.extra_ports["SECURE"], "alice", "secret") == {"topic-1"}
    assert [line.split()[0] for line in before] == ["acl", "quota", "user"]

    with start_daemon(tmp_path / "barnabas", *OURS) as daemon:
        port = secure_port(daemon)
        assert security_of(kafka, daemon.bootstrap) == before
        assert visible_topics(port, "alice", "secret") == {"topic-1"}
        with pytest.raises(KafkaException):
            visible_topics(port, "alice", "wrong")
        command(daemon, "user", "add", "carol", password="carols")
        command(daemon, "acl", "add", "--principal", "User:carol", "--topic", "topic-2", "--operation", "describe")
        command(daemon, "acl", "add", "--principal", "User:*", "--topic", "topic-1", "--operation", "all", "--deny")
        command(daemon, "quota", "set", "consumer_byte_rate=2048", "--user", "carol")
        command(daemon, "quota", "delete", "producer_byte_rate", "--user", "alice")
        assert visible_topics(port, "carol", "carols") == {"topic-2"}
        assert visible_topics(port, "alice", "secret") == set()
        ours = security_of(kafka, daemon.bootstrap)
        await_snapshot_of_all_changes(data)
        assert daemon.stop() == 0
    if version == "4.3.0":
        snapshot = max((data / "__cluster_metadata-0").glob("*.checkpoint"))
        assert kafka.metadata_shell(snapshot, "ls", f"/image/scram/{SCRAM}").split() == ["alice", "carol"]
        assert len(kafka.metadata_shell(snapshot, "ls", "/image/acls/byId").split()) == 3
        assert kafka.metadata_shell(snapshot, "ls", "/image/clientQuotas").split() == ["user(carol)"]

    with kafka.running() as broker:
        port = kafka.extra_ports["SECURE"]
        assert security_of(kafka, broker.bootstrap) == ours
        assert visible_topics(port, "carol", "carols") == {"topic-2"}
        assert visible_topics(port, "alice", "secret") == set()


def test_kafka_starts_on_the_handed_over_security(tmp_path: Path) -> None:
    need_kafka("4.3.0")
    data, ours = tmp_path / "data", tmp_path / "server.properties"
    settings = {
        "log.dirs": str(data),
        "listeners": f"SECURE://127.0.0.1:{free_port()}",
        "listener.security.protocol.map": "SECURE:SASL_PLAINTEXT",
        "transaction.state.log.num.partitions": "1",
        **AUTHORIZER,
        "super.users": "User:admin",
    }
    ours.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    added = CliRunner().invoke(main, ["user", "add", "admin", "--config", str(ours)], input="secret\n")
    assert added.exit_code == 0, added.output
    port = int(settings["listeners"].rpartition(":")[2])
    login = login_of(port, "admin", "secret")
    barnabas = BrokerProcess(tmp_path / "barnabas", settings)
    barnabas.start()
    admin = AdminClient(login)  # its requests end with the object
    (created,) = admin.create_topics([NewTopic("orders", 1, 1)]).values()
    created.result(30)
    assert barnabas.stop() == 0, barnabas.log_tail()

    kafka = HandedOver("4.3.0", data, tmp_path / "kafka")
    kafka.properties, kafka.port = tmp_path / "kafka.properties", port
    internal, controller = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    words = ["--listener", internal, "--controller-listener", controller, "--output", str(kafka.properties)]
    command_line = ["handover", str(data), "--kafka-version", "4.3.0", "--config", str(ours), *words, "--execute"]
    done = CliRunner().invoke(main, command_line)
    assert done.exit_code == 0, done.output
    with kafka.running():
        # End markers go over Kafka's own listener.
        producer = Producer({**login, "transactional.id": "tx"})
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.produce("orders", b"paid")
        producer.commit_transaction(60)
        consumer = Consumer({**login, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        message = consumer.poll(60)
        consumer.close()
        assert message is not None
        assert message.value() == b"paid"
        with pytest.raises(KafkaException):
            visible_topics(port, "admin", "wrong")


class Tools:
    """Kafka's tools of one version on our broker and on Kafka's."""

    def __init__(self, kafka: Kafka, ours: str, theirs: str) -> None:
        self._kafka = kafka
        self.addresses = ours, theirs
        self.acls = acl_tool(kafka.version)

    def both(self, tool: str, *arguments: str) -> list[str]:
        """Return what the tool prints for us, which must be what it prints for Kafka."""
        ours, theirs = (self._lines(address, tool, *arguments) for address in self.addresses)
        assert ours == theirs
        return ours

    def _lines(self, address: str, tool: str, *arguments: str) -> list[str]:
        try:
            said = self._kafka.tool(tool, "--bootstrap-server", address, *arguments)
        except KafkaError as error:
            said = "\n".join(re.findall(r"(?:Exception|Error[^:]*): .*", str(error)))
        return sorted(filter(None, (line.strip() for line in said.splitlines())))


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    directory = tmp_path_factory.mktemp("tools")
    need_kafka("4.3.0")
    kafka = kafka_of("4.3.0", directory / "kafka", directory / "scratch")
    kafka.format()
    with kafka.running() as theirs, start_daemon(directory / "ours", *OURS) as ours:
        yield Tools(kafka, ours.bootstrap, theirs.bootstrap)


def test_kafka_acls_prints_the_same(tools: Tools) -> None:
    topic = ("--topic", "orders", "--resource-pattern-type", "prefixed")
    added = tools.both(tools.acls, "--add", "--allow-principal", "User:alice", "--producer", *topic)
    assert any("operation=WRITE" in line for line in added)
    tools.both(tools.acls, "--add", "--deny-principal", "User:bob", "--operation", "All", "--cluster")
    listed = tools.both(tools.acls, "--list")
    assert sum("principal=User:alice" in line for line in listed) == 3
    tools.both(tools.acls, "--list", "--topic", "orders-eu", "--resource-pattern-type", "match")
    tools.both(tools.acls, "--remove", "--force", "--allow-principal", "User:alice", "--producer", *topic)
    assert len(tools.both(tools.acls, "--list")) == 2


def test_kafka_configs_changes_users_and_quotas(tools: Tools) -> None:
    alice = ("--entity-type", "users", "--entity-name", "alice")
    tools.both(CONFIGS, "--alter", *alice, "--add-config", f"{SCRAM}=[iterations=8192,password=secret]")
    tools.both(CONFIGS, "--alter", *alice, "--add-config", "producer_byte_rate=1024,request_percentage=50")
    clients = ("--entity-type", "clients", "--entity-default")
    tools.both(CONFIGS, "--alter", *alice, *clients, "--add-config", "consumer_byte_rate=5")
    described = tools.both(CONFIGS, "--describe", "--entity-type", "users")
    assert any(f"{SCRAM}=iterations=8192" in line for line in described)
    assert any("producer_byte_rate=1024.0" in line for line in described)
    address = ("--entity-type", "ips", "--entity-name", "10.0.0.1")
    tools.both(CONFIGS, "--alter", *address, "--add-config", "connection_creation_rate=7")
    tools.both(CONFIGS, "--alter", *alice, "--delete-config", SCRAM)
    refused = tools.both(CONFIGS, "--alter", *alice, "--delete-config", SCRAM)
    assert any("Attempt to delete a user credential that does not exist" in line for line in refused)


def test_our_commands_print_the_same_for_kafka(tools: Tools) -> None:
    ours, theirs = tools.addresses

    def run(address: str, arguments: tuple[str, ...], password: str | None) -> tuple[int, str]:
        given = None if password is None else f"{password}\n"
        done = CliRunner().invoke(main, [*arguments, "--bootstrap", address], input=given)
        return done.exit_code, done.output

    def both(*arguments: str, password: str | None = None) -> str:
        said = run(ours, arguments, password)
        assert run(theirs, arguments, password) == said
        return said[1]

    def shown(*arguments: str) -> str:
        """Kafka's broker shows a change a moment after its controller has confirmed it."""
        said = run(ours, arguments, None)
        eventually(
            lambda: True if run(theirs, arguments, None) == said else None, what=f"{said} in Kafka", timeout_s=20
        )
        return said[1]

    both("user", "add", "dave", "--mechanism", "SCRAM-SHA-256", "--mechanism", SCRAM, password="secret")
    assert shown("user", "list").count("dave") == 2
    of_dave = ("--principal", "User:dave")
    both("acl", "add", *of_dave, "--consumer", "--topic", "in", "--group", "g", "--pattern", "prefixed")
    assert shown("acl", "list", *of_dave, "--json").count("User:dave") == 3
    assert shown("acl", "list", "--topic", "incoming", "--pattern", "match").count("PREFIXED") == 2
    both("acl", "add", "--principal", "dave", "--topic", "t", "--operation", "read")
    assert both("acl", "delete", *of_dave, "--group", "g", "--pattern", "any").startswith("deleted:")
    both("quota", "set", "request_percentage=12.5", "--user", "dave", "--client-defaults")
    both("quota", "set", "producer_byte_rate=1.5", "--user", "dave")
    both("quota", "set", "connection_creation_rate=5", "--ip", "no.such.host.invalid")
    assert "12.5" in shown("quota", "list", "--user", "dave")
    both("quota", "delete", "request_percentage", "--user", "dave", "--client-defaults")
    both("user", "delete", "dave")
