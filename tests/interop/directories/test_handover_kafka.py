"""`barnabas handover`: Apache Kafka starts with the server.properties that it wrote, on the prepared directories."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.broker.metadata.directories.examine import examine
from barnabas.clients.testing import BrokerProcess
from barnabas.commands.main import main
from tests.support.free_ports import free_port
from tests.support.kafka.apache_kafka import HandedOver, Kafka, KafkaError, need_kafka
from tests.support.kafka.turns import CLIENT_TIMEOUT_S, Address, configs_of, observe
from tests.support.storage.directories import ORDERS, RECORDS, make_directories

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("version", ["4.3.0", "3.9.1"])
def test_kafka_starts_by_the_file_and_serves_what_barnabas_left(tmp_path: Path, version: str) -> None:
    need_kafka(version)
    data = make_directories(tmp_path, transaction_version=2)
    dirs = (data / "one", data / "two")
    kafka = HandedOver(version, dirs, tmp_path / "kafka")
    kafka.port = free_port()
    kafka.properties = tmp_path / "server.properties"
    words = ["--listener", f"127.0.0.1:{kafka.port}", "--controller-listener", f"127.0.0.1:{free_port()}"]
    command = [
        *("handover", *map(str, dirs), "--kafka-version", version, "--output", str(kafka.properties)),
        *words,
        "--execute",
    ]

    result = CliRunner().invoke(main, command)

    assert result.exit_code == 0, result.output
    with kafka.running():
        seen = observe(Address("127.0.0.1", kafka.port), ["workers"])
        assert sum(seen.ends["orders", number] for number in range(ORDERS)) == RECORDS
        assert seen.committed["workers"] == {("orders", 0): 5}
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{kafka.port}"})
        expected = "1048576" if version.startswith("4.") else "16384"
        assert configs_of(admin, "small") == {"segment.bytes": expected}
    checked = CliRunner().invoke(main, ["doctor", "dir", *map(str, dirs), "--kafka-version", version])
    assert checked.exit_code == 0, checked.output
    assert "last writer of the metadata: Apache Kafka" in checked.output


def test_doctor_says_no_where_kafka_4_does_not_start(tmp_path: Path) -> None:
    need_kafka("4.3.0")
    data = make_directories(tmp_path)
    dirs = (data / "one", data / "two")
    refused = CliRunner().invoke(main, ["doctor", "dir", *map(str, dirs), "--kafka-version", "4.3.0"])
    assert refused.exit_code == 1
    with pytest.raises(KafkaError):
        Kafka("4.3.0", dirs, tmp_path / "kafka").start()


def write_standalone(path: Path, data: Path, port: int) -> None:
    """Write a server.properties for a quorum whose voters are in the metadata log."""
    controller = f"127.0.0.1:{free_port()}"
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": controller,
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://{controller}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(data),
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
    }
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))


def write_some(address: Address, topic: str) -> None:
    """Create a topic with ten records."""
    admin = AdminClient({"bootstrap.servers": address.bootstrap})
    (created,) = admin.create_topics([NewTopic(topic, 1, 1)]).values()
    created.result(CLIENT_TIMEOUT_S)
    producer = Producer({"bootstrap.servers": address.bootstrap, "enable.idempotence": True})
    for number in range(10):
        producer.produce(topic, str(number))
    assert producer.flush(CLIENT_TIMEOUT_S) == 0


def test_a_directory_with_its_voters_in_the_log_goes_over_and_comes_back(tmp_path: Path) -> None:
    need_kafka("4.3.0")
    data = tmp_path / "data"
    kafka = HandedOver("4.3.0", data, tmp_path / "kafka")
    kafka.port, kafka.properties = free_port(), tmp_path / "standalone.properties"
    write_standalone(kafka.properties, data, kafka.port)
    kafka.format("--standalone")
    address = Address("127.0.0.1", kafka.port)
    with kafka.running():
        write_some(address, "of-kafka")
        before = observe(address, [])
    voters = voters_of(data)

    often = {"metadata.log.max.record.bytes.between.snapshots": "1", "metadata.max.retention.bytes": "0"}
    barnabas = BrokerProcess(tmp_path, {"log.dirs": str(data), "listeners": f"127.0.0.1:{kafka.port}", **often})
    barnabas.start()
    assert observe(address, []) == before
    write_some(address, "of-barnabas")
    between = observe(address, [])
    assert barnabas.stop() == 0, barnabas.log_tail()
    # only Barnabas' snapshot, which contains the voters
    assert len(list((data / "__cluster_metadata-0").glob("*.checkpoint"))) == 1
    assert voters_of(data) == voters

    kafka.properties = tmp_path / "server.properties"
    words = ["--listener", f"127.0.0.1:{kafka.port}", "--controller-listener", f"127.0.0.1:{free_port()}"]
    command = ["handover", str(data), "--kafka-version", "4.3.0", "--output", str(kafka.properties), *words]
    result = CliRunner().invoke(main, [*command, "--execute"])
    assert result.exit_code == 0, result.output
    assert "controller.quorum.voters" not in kafka.properties.read_text()
    with kafka.running():
        assert observe(address, []) == between
        write_some(address, "of-kafka-again")
        after = observe(address, [])

    barnabas.start()
    assert observe(address, []) == after
    assert barnabas.stop() == 0, barnabas.log_tail()


def voters_of(data: Path) -> object:
    """Return the Raft voters in the log or its snapshot."""
    replayed = examine([data]).replayed
    assert replayed is not None
    assert replayed.kraft_version == 1
    assert replayed.voters is not None
    return replayed.voters
