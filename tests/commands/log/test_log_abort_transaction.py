"""`barnabas log abort-transaction`: aborts open transactions as Kafka's coordinator would, and changes nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from barnabas.broker.metadata.directories.meta_properties import write_meta_properties
from barnabas.broker.storage.directories.lock import DirectoryLock
from barnabas.broker.storage.files.clean_shutdown import CleanShutdownMarker
from barnabas.broker.storage.inspection.open_transactions import open_transactions
from barnabas.broker.storage.inspection.transaction_decisions import transaction_decisions
from barnabas.broker.storage.log.loading.loader import LoadRequest
from barnabas.broker.storage.log.opening import open_log
from barnabas.commands.main import main
from barnabas.protocol.metadata.partition_state import PartitionState
from barnabas.protocol.metadata.records import PartitionRecord, TopicRecord
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.transactions.records import (
    TransactionLogKey,
    TransactionLogValue,
    TransactionPartitions,
)
from tests.support.storage.bench import LogBench, append, batch, log_config
from tests.support.storage.metadata_store import append as append_metadata
from tests.support.storage.transactions import end, send

ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT = 1, 2, 4


@pytest.fixture
def bench(tmp_path: Path) -> LogBench:
    return LogBench(tmp_path)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["log", "abort-transaction", *map(str, arguments)])


def two_open(bench: LogBench) -> None:
    """Producer 7 opens at 1, producer 8 at 2; producer 9 has ended. The stop is clean."""
    log = bench.open()
    append(log, batch((1, b"k", b"plain")))
    send(log, 7, 0, b"a")
    send(log, 8, 0, b"b", b"b")
    send(log, 9, 0, b"c")
    end(log, 9, is_commit=True, coordinator_epoch=3)
    append(log, batch((1, b"k", b"plain")))
    bench.close(log)
    CleanShutdownMarker(bench.directory.parent).write()


def state_record(name: bytes, producer_id: int, status: int, version: int = 0) -> tuple[int, bytes, bytes]:
    value = TransactionLogValue(producer_id, 0, 60_000, status, (TransactionPartitions("topic", (0,)),), 0, 0)
    return 1, TransactionLogKey(name.decode()).to_bytes(), value.to_bytes(version)


def write_state(bench: LogBench, *records: tuple[int, bytes | None, bytes | None]) -> None:
    """Write the coordinator's records into `__transaction_state-0` beside the log."""
    partition = TopicPartition("__transaction_state", 0)
    directory = bench.directory.parent / "__transaction_state-0"
    directory.mkdir()
    log = open_log(
        LoadRequest(directory, partition, log_config(), True, 0, 0), bench.services, topic_id=bytes([5] * 16)
    )
    append(log, batch(*records))
    log.close()


def test_each_open_transaction_gets_its_abort_marker(bench: LogBench) -> None:
    two_open(bench)
    assert [found.first_offset for found in open_transactions(bench.directory)] == [1, 2]
    result = run(bench.directory.parent, "--yes")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "orders-0: transaction open since offset 1, producer_id=7 producer_epoch=0",
        "orders-0: transaction open since offset 2, producer_id=8 producer_epoch=0",
    ]
    assert "2 transactions aborted" in result.stderr
    assert open_transactions(bench.directory) == []
    assert (bench.directory.parent / ".kafka_cleanshutdown").exists()
    log = bench.open()
    assert (log.last_stable_offset, log.log_end_offset) == (9, 9)
    rows = [row for segment in log.segments for row in segment.transaction_index.rows()]
    assert [(row.producer_id, row.first_offset, row.last_offset) for row in rows] == [(7, 1, 7), (8, 2, 8)]
    bench.close(log)
    verified = CliRunner().invoke(main, ["log", "verify", str(bench.directory)])
    assert verified.exit_code == 0, verified.output


def test_transactions_are_aborted_after_a_crash_too(bench: LogBench) -> None:
    log = bench.open()
    send(log, 7, 0, b"a")
    log.flush()
    send(log, 8, 0, b"b")
    bench.crash(log)
    torn = bench.log_path()
    torn.write_bytes(torn.read_bytes()[:-3])
    assert [found.producer_id for found in open_transactions(bench.directory)] == [7]
    result = run(bench.directory, "--yes")
    assert result.exit_code == 0, result.output
    assert open_transactions(bench.directory) == []
    assert not (bench.directory.parent / ".kafka_cleanshutdown").exists()


def test_only_the_named_producers_transactions_are_aborted(bench: LogBench) -> None:
    two_open(bench)
    assert run(bench.directory, "--producer-id", 8, "--yes").exit_code == 0
    assert [found.producer_id for found in open_transactions(bench.directory)] == [7]


def test_a_dry_run_and_no_answer_change_nothing(bench: LogBench) -> None:
    two_open(bench)
    before = {path: path.read_bytes() for path in bench.directory.iterdir()}
    dry = run(bench.directory, "--dry-run", "--json")
    assert dry.exit_code == 0
    found: list[dict[str, Any]] = [json.loads(line) for line in dry.stdout.splitlines()]
    assert [(each["topic"], each["partition"], each["producer_id"], each["status"]) for each in found] == [
        ("orders", 0, 7, None),
        ("orders", 0, 8, None),
    ]
    refused = run(bench.directory)
    assert refused.exit_code == 2
    assert "give --yes" in refused.stderr
    assert {path: path.read_bytes() for path in bench.directory.iterdir()} == before


def test_transactions_that_the_coordinator_had_committed_are_left_alone(bench: LogBench) -> None:
    two_open(bench)
    write_state(
        bench,
        state_record(b"seven", 7, ONGOING),
        state_record(b"eight", 8, ONGOING),
        state_record(b"eight", 8, PREPARE_COMMIT, version=1),
    )
    result = run(bench.directory.parent, "--yes")
    assert result.exit_code == 1
    assert "transaction of eight (PrepareCommit) open since offset 2" in result.stdout
    assert "1 transaction left alone" in result.stderr
    assert [found.producer_id for found in open_transactions(bench.directory)] == [8]


@pytest.mark.parametrize(
    ("metadata_here", "sentence"),
    [
        (True, "__transaction_state-0 is in none of these directories: name all of log.dirs"),
        (False, "the metadata log is in none of these directories: name all of log.dirs"),
    ],
    ids=["metadata here", "metadata elsewhere"],
)
def test_without_the_directory_of_the_coordinator_nothing_is_aborted(
    bench: LogBench, metadata_here: bool, sentence: str
) -> None:
    two_open(bench)
    log_dir = bench.directory.parent
    write_meta_properties(log_dir, node_id=1, cluster_id="c", directory_id=bytes([9] * 16))
    if metadata_here:
        state = PartitionState((1,), (1,), 1, directories=(bytes([8] * 16),))
        topic = TopicRecord("__transaction_state", bytes([5] * 16))
        append_metadata(log_dir, topic, PartitionRecord(0, topic.topic_id, state))
    result = run(log_dir, "--yes")
    assert (result.exit_code, sentence in result.stderr) == (1, True), result.output
    assert [found.producer_id for found in open_transactions(bench.directory)] == [7, 8]


def test_an_expired_transactional_id_has_no_decision(bench: LogBench) -> None:
    record = state_record(b"eight", 8, PREPARE_COMMIT)
    write_state(bench, record, (1, record[1], None))
    assert transaction_decisions([bench.directory.parent]) == {}


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        (b"\0", b"", "neither key nor value of a coordinator's record"),
        (None, b"", "the record has no key"),
        (b"\0\0\0\1a", b"\0\0rt", "the message ends within this field"),
        (b"\0\0\0\1a", b"\0\2" + bytes(20), "has version 2"),
    ],
)
def test_a_state_that_cannot_be_read_stops_the_command(
    bench: LogBench, key: bytes | None, value: bytes, sentence: str
) -> None:
    two_open(bench)
    write_state(bench, (1, key, value))
    result = run(bench.directory.parent, "--yes")
    assert result.exit_code == 1
    assert sentence in result.stderr
    assert len(open_transactions(bench.directory)) == 2


def test_a_directory_that_a_broker_uses_is_refused(bench: LogBench) -> None:
    two_open(bench)
    lock = DirectoryLock(bench.directory.parent)
    lock.acquire()
    try:
        result = run(bench.directory.parent, "--yes")
    finally:
        lock.release()
    assert result.exit_code == 1
    assert "another broker" in result.stderr
    assert len(open_transactions(bench.directory)) == 2


def test_without_open_transactions_a_note_says_so(bench: LogBench) -> None:
    bench.close(bench.open())
    result = run(bench.directory, "--yes")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no transaction is open" in result.stderr


def test_a_damaged_producer_snapshot_is_skipped(bench: LogBench) -> None:
    two_open(bench)
    snapshots = list(bench.directory.glob("*.snapshot"))
    assert snapshots
    for path in snapshots:
        path.write_bytes(b"damaged")
    assert [found.first_offset for found in open_transactions(bench.directory)] == [1, 2]
