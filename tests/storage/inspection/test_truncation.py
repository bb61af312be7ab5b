"""Offline truncation removes what its plan lists, and the log engine opens the rest."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from barnabas.broker.storage.files.checkpoint_file import OffsetCheckpointFile
from barnabas.broker.storage.inspection.truncation import CannotTruncateError, plan_truncation, truncate
from barnabas.broker.storage.inspection.verify_directory import DirectoriesCheck
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.storage.bench import START_MS, TP, LogBench, append, batch, log_config, read_records

CONFIG = log_config(segment_bytes=4096, index_interval_bytes=300)
RECORDS_PER_BATCH = 5
BATCHES = 60
END = RECORDS_PER_BATCH * BATCHES


@pytest.fixture
def bench(tmp_path: Path) -> LogBench:
    bench = LogBench(tmp_path)
    log = bench.open(CONFIG)
    for number in range(BATCHES):
        records = [(START_MS + number, b"k", b"value %d" % number) for _ in range(RECORDS_PER_BATCH)]
        producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": number * RECORDS_PER_BATCH}
        append(log, batch(*records, **producer), leader_epoch=number // 20)
    bench.close(log)
    OffsetCheckpointFile(tmp_path / "recovery-point-offset-checkpoint").write(
        {TP: END, TopicPartition("other", 1): 5000}
    )
    OffsetCheckpointFile(tmp_path / "replication-offset-checkpoint").write({TP: END})
    (tmp_path / ".kafka_cleanshutdown").touch()
    return bench


def contents(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("to_offset", [0, 1, 5, 7, 99, 100, 101, 150, 295, 299, END - 5])
@pytest.mark.parametrize("clean", [True, False])
def test_the_log_ends_at_or_before_the_offset_and_appends_continue_there(
    bench: LogBench, to_offset: int, clean: bool
) -> None:
    new_end = to_offset // RECORDS_PER_BATCH * RECORDS_PER_BATCH
    log_dir = bench.directory.parent
    plan = plan_truncation(bench.directory, TP, to_offset)
    assert (plan.new_end, plan.last_offset) == (new_end, END - 1)
    sizes = sum(path.stat().st_size for path in bench.directory.glob("*.log"))
    truncate(plan, TP, CONFIG)

    assert sizes - sum(path.stat().st_size for path in bench.directory.glob("*.log")) == plan.cut_bytes
    assert not any(path.exists() for path in plan.files)
    assert list(DirectoriesCheck([log_dir]).run()) == []
    assert OffsetCheckpointFile(log_dir / "recovery-point-offset-checkpoint").read() == {
        TP: new_end,
        TopicPartition("other", 1): 5000,
    }
    bench.recovery_point = new_end
    log = bench.open(CONFIG, clean=clean)
    assert log.log_end_offset == new_end
    assert [record.offset for record in read_records(log)] == list(range(new_end))
    if new_end:
        gap = batch((START_MS, b"k", b"v"), producer_id=7, producer_epoch=0, base_sequence=new_end + 1)
        with pytest.raises(BrokerError, match="sequence"):
            append(log, gap, leader_epoch=9)
    # Batches after the cut are no longer in the producer state: sent again, they are not duplicates.
    again = batch((START_MS, b"k", b"v"), producer_id=7, producer_epoch=0, base_sequence=new_end)
    assert append(log, again, leader_epoch=9) == new_end


@pytest.mark.parametrize("to_offset", [END, END + 1, 10**9])
def test_truncating_at_the_end_or_beyond_removes_nothing(bench: LogBench, to_offset: int) -> None:
    plan = plan_truncation(bench.directory, TP, to_offset)
    assert plan.is_empty
    assert plan.new_end == END


def test_a_plan_changes_nothing(bench: LogBench) -> None:
    before = contents(bench.directory.parent)
    plan_truncation(bench.directory, TP, 50)
    assert contents(bench.directory.parent) == before


def test_a_damaged_batch_can_be_cut_off_but_not_kept(bench: LogBench) -> None:
    path = bench.log_path(0)
    content = bytearray(path.read_bytes())
    size = 12 + int.from_bytes(content[8:12], "big")
    content[2 * size + 70] ^= 1  # in the third batch, offsets 10 to 14
    path.write_bytes(content)
    with pytest.raises(CannotTruncateError, match="cut it to offset 10 or below"):
        plan_truncation(bench.directory, TP, 16)
    truncate(plan_truncation(bench.directory, TP, 10), TP, CONFIG)
    assert [record.offset for record in read_records(bench.open(CONFIG))] == list(range(10))


def test_bytes_that_are_not_a_batch_are_cut_off(bench: LogBench) -> None:
    path = sorted(bench.directory.glob("*.log"))[-1]
    before = path.read_bytes()
    path.write_bytes(before + b"torn off")
    plan = plan_truncation(bench.directory, TP, END)
    assert (plan.new_end, plan.cut_bytes, plan.files) == (END, 8, ())
    truncate(plan, TP, CONFIG)
    assert path.read_bytes() == before


@pytest.mark.parametrize(("start", "to_offset"), [(150, 149), (152, 153)])
def test_a_log_is_not_cut_below_its_start(bench: LogBench, start: int, to_offset: int) -> None:
    OffsetCheckpointFile(bench.directory.parent / "log-start-offset-checkpoint").write({TP: start})
    with pytest.raises(CannotTruncateError, match=f"begins at offset {start}"):
        plan_truncation(bench.directory, TP, to_offset)


def test_rows_of_transactions_that_ended_after_the_cut_are_removed(bench: LogBench) -> None:
    rows = [struct.pack(">hqqqq", 0, 7, first, first + 1, first) for first in (3, 13)]
    path = bench.directory / f"{0:020d}.txnindex"
    path.write_bytes(b"".join(rows))
    truncate(plan_truncation(bench.directory, TP, 10), TP, CONFIG)
    assert path.read_bytes() == rows[0]
