"""`barnabas doctor dir` on a stopped broker's directories: its report, its exit code, and that it writes nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from barnabas.broker.metadata.log.log_replay import METADATA_DIRECTORY
from barnabas.broker.storage.files.clean_shutdown import CLEAN_SHUTDOWN_FILE
from barnabas.commands.main import main
from barnabas.protocol.metadata.partition_state import PartitionDelta
from barnabas.protocol.metadata.records import FeatureLevelRecord, PartitionChangeRecord
from barnabas.protocol.uuids import parse_uuid
from tests.support.daemon import start_daemon
from tests.support.storage.directories import (
    ORDERS,
    RECORDS,
    append_metadata,
    copy_of,
    make_directories,
    put_transaction_state,
)
from tests.support.storage.files import snapshot_of
from tests.support.storage.records import plain
from tests.support.storage.security_records import acl_record, quota_record, scram_record


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Left by a clean stop."""
    return make_directories(tmp_path_factory.mktemp("made"))


def ask(*arguments: str | Path) -> Result:
    """The result. Checks that no file has changed below the parent of the last named directory."""
    parent = next(each for each in reversed(arguments) if isinstance(each, Path)).parent
    before = snapshot_of(parent)
    result = CliRunner().invoke(main, ["doctor", "dir", *map(str, arguments)])
    assert snapshot_of(parent) == before
    return result


def told(*arguments: str | Path) -> Any:
    return json.loads(ask("--json", *arguments).stdout)


def test_the_report_describes_a_directory(data: Path) -> None:
    found = told(data / "one", data / "two")
    assert (found["last_writer"], found["node_id"], found["clean"], found["metadata_version"]) == (
        "Barnabas",
        1,
        True,
        19,
    )
    assert len({each["directory_id"] for each in found["directories"]}) == 2
    topics = {each["name"]: each for each in found["topics"]}
    assert (topics["orders"]["partitions"], topics["orders"]["partitions_here"]) == (ORDERS, ORDERS)
    assert topics["orders"]["size_bytes"] == RECORDS * len(plain(1))
    assert topics["small"]["configs"] == {"segment.bytes": "16384"}
    assert found["groups"] == [{"group_id": "workers", "offsets": 1}]
    assert found["open_transactions"] == []


def test_the_exit_code_is_for_barnabas_or_the_named_kafka(data: Path) -> None:
    dirs = (data / "one", data / "two")
    assert ask(*dirs).exit_code == 0
    assert ask("--kafka-version", "3.9.1", *dirs).exit_code == 0
    assert ask("--kafka-version", "4.3.0", *dirs).exit_code == 1
    assert ask("--kafka-version", "5.0", *dirs).exit_code == 2


def test_the_text_has_the_programs_that_open_it_and_the_remedies(data: Path) -> None:
    lines = ask(data / "one", data / "two").stdout
    assert "barnabas: opens it\n" in lines
    assert "kafka 3.9: opens it\n" in lines
    assert "kafka 4.1: no: small-segments\n" in lines
    assert "topic small has segment.bytes=16384" in lines
    assert "stopped cleanly" in lines


def test_one_of_two_directories_is_reported_as_incomplete(data: Path, tmp_path: Path) -> None:
    _, two = copy_of(data, tmp_path)
    result = ask(two)
    assert result.exit_code == 1
    assert "barnabas read.only: opens it" in result.stdout
    found = told(two)
    assert not found["programs"]["barnabas"]["can_open"]
    assert found["programs"]["barnabas read.only"]["can_open"]


def test_an_unclean_stop_and_an_open_transaction_are_reported(data: Path, tmp_path: Path) -> None:
    one, two = copy_of(data, tmp_path)
    for each in (one, two):
        (each / CLEAN_SHUTDOWN_FILE).unlink()
    (orders,) = tmp_path.glob("data/*/orders-0")
    with max(orders.glob("*.log")).open("ab") as file:
        file.write(plain(1, base_offset=10, producer_id=77, producer_epoch=2, base_sequence=0, is_transactional=True))
    found = told(one, two)
    assert not found["clean"]
    assert found["open_transactions"] == [
        {"topic": "orders", "partition": 0, "producer_id": 77, "producer_epoch": 2, "first_offset": 10}
    ]
    lines = ask(one, two).stdout
    assert "not stopped cleanly" in lines
    assert "barnabas log abort-transaction" in lines


def test_a_level_of_a_newer_kafka_is_reported_for_each_version(data: Path, tmp_path: Path) -> None:
    one, two = copy_of(data, tmp_path)
    append_metadata(one, FeatureLevelRecord("metadata.version", 22))
    programs = told(one, two)["programs"]
    assert [name for name, each in programs.items() if "feature-level" in each["problems"]] == [
        "kafka 3.7",
        "kafka 3.8",
        "kafka 3.9",
    ]


def test_a_directory_of_a_cluster_can_only_be_read(data: Path, tmp_path: Path) -> None:
    one, two = copy_of(data, tmp_path)
    topic_id = bytes_of(told(one, two))
    append_metadata(one, PartitionChangeRecord(0, topic_id, PartitionDelta(replicas=(1, 2), isr=(1, 2))))
    found = told(one, two)
    assert found["programs"]["barnabas"] == {"can_open": False, "problems": ["several-brokers"]}
    assert found["programs"]["barnabas read.only"]["can_open"]
    assert found["programs"]["kafka 3.9"]["can_open"]


def bytes_of(found: Any) -> bytes:
    return parse_uuid(next(each["topic_id"] for each in found["topics"] if each["name"] == "orders"))


def test_a_damaged_metadata_log_is_reported_with_its_position(data: Path, tmp_path: Path) -> None:
    one, two = copy_of(data, tmp_path)
    path = max((one / METADATA_DIRECTORY).glob("*.log"))
    content = bytearray(path.read_bytes())
    content[90] ^= 0xFF
    path.write_bytes(content)
    result = ask(one, two)
    assert result.exit_code == 1
    assert f"problem damaged-metadata: {path} is damaged at position" in result.stdout
    assert "barnabas read.only: opens it" in result.stdout


def test_a_running_brokers_directories_are_described_without_their_logs(data: Path, tmp_path: Path) -> None:
    one, two = copy_of(data, tmp_path)
    with start_daemon(tmp_path / "daemon", f"log.dirs={one},{two}") as daemon:
        result = CliRunner().invoke(main, ["doctor", "dir", str(one), str(two)])
        assert result.exit_code == 0
        assert f"open in process {daemon.pid}" in result.stdout
        assert "stop it to see groups and open transactions" in result.stdout


def test_a_directory_that_is_not_a_brokers_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = ask(tmp_path / "empty")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.endswith("/empty is not a broker's log directory: no meta.properties and no partitions\n")
    assert len(result.stderr.splitlines()) == 1


def test_a_directory_from_zookeeper_days_is_opened_by_no_program_unasked(data: Path, tmp_path: Path) -> None:
    one, two = copy_of(data, tmp_path)
    shutil.rmtree(one / METADATA_DIRECTORY)
    for each in (one, two):
        (each / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=abc\n")
    found = told(one, two)
    assert found["last_writer"] == "Apache Kafka with ZooKeeper"
    assert found["programs"]["barnabas read.only"]["can_open"]
    assert found["programs"]["barnabas"]["problems"] == found["programs"]["kafka 4.3"]["problems"] == ["zookeeper"]
    assert "nothing in them until their configs are set" in found["problems"][0]["remedy"]


@pytest.mark.parametrize(
    ("status", "state", "end"),
    [
        (1, "Ongoing", "it goes on after a start, until its producer or its timeout ends it"),
        (2, "PrepareCommit", "its end markers are written after the next start"),
        (4, None, ""),
    ],
)
def test_unfinished_transactions_of_the_coordinator_are_reported(
    data: Path, tmp_path: Path, status: int, state: str | None, end: str
) -> None:
    one, two = copy_of(data, tmp_path)
    put_transaction_state(one, "billing", 77, status)
    found = told(one, two)["unfinished_transactions"]
    report = ask(one, two).stdout
    if state is None:
        assert found == []
        assert "billing" not in report
        return
    assert found == [{"transactional_id": "billing", "state": state, "producer_id": 77, "producer_epoch": 3}]
    assert f"\ntransaction of billing: {state}, producer 77, epoch 3; {end}\n" in report
    (orders,) = tmp_path.glob("data/*/orders-0")
    with max(orders.glob("*.log")).open("ab") as file:
        for producer in (77, 78):
            offset = 10 + producer - 77
            batch: dict[str, Any] = {
                "base_offset": offset,
                "producer_id": producer,
                "producer_epoch": 2,
                "base_sequence": 0,
            }
            file.write(plain(1, is_transactional=True, **batch))
    for each in (one, two):
        (each / CLEAN_SHUTDOWN_FILE).unlink()
    lines = ask(one, two).stdout.splitlines()
    known, hanging = (line for line in lines if line.startswith("open transaction: "))
    assert known.endswith(
        "producer 77, epoch 2: read_committed consumers stop before it; its coordinator ends it after a start"
    )
    assert "; no coordinator ends it: `barnabas log abort-transaction` does" in hanging


def test_security_is_counted_and_stops_no_start(data: Path, tmp_path: Path) -> None:
    one, two = copy_of(data, tmp_path)
    append_metadata(one, acl_record(), scram_record(), quota_record())
    (one / CLEAN_SHUTDOWN_FILE).unlink()  # it names the log's end
    result = ask(one, two)
    assert result.exit_code == 0, result.output
    assert "security in the metadata log: 1 SCRAM credential, 1 ACL, 1 client quota" in result.output
    assert "a start needs a configuration that enforces it, or --ignore-security" in result.output
    assert told(one, two)["security"] == {"users": 1, "acls": 1, "delegation_tokens": 0, "quotas": 1}
