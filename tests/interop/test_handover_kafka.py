"""`barnabas handover`: Apache Kafka starts with the server.properties that it wrote, on what it made ready."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient

from barnabas.clients.commands.main import main
from tests.support.directories import ORDERS, RECORDS, make_directories
from tests.support.kafka import Kafka, KafkaError, need_kafka
from tests.support.turns import Address, configs_of, free_port, observe

pytestmark = pytest.mark.timeout(300)


class HandedOver(Kafka):
    """Apache Kafka that takes the file as it was written."""

    properties = Path()
    port = 0

    def write_properties(self) -> tuple[Path, int]:
        """The file that is there."""
        return self.properties, self.port


@pytest.mark.parametrize("version", ["4.3.0", "3.9.1"])
def test_kafka_starts_by_the_file_and_serves_what_barnabas_left(tmp_path: Path, version: str) -> None:
    need_kafka(version)
    data = make_directories(tmp_path)
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
