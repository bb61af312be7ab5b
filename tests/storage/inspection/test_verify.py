"""`verify` on real logs: no findings in undamaged files, and every kind of damage with its position."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.broker.storage.files.partition_metadata_file import write_partition_metadata
from barnabas.broker.storage.inspection.findings import Circumstances, Finding
from barnabas.broker.storage.inspection.index_entries import read_transaction_index
from barnabas.broker.storage.inspection.lock_probe import lock_holder
from barnabas.broker.storage.inspection.verify_directory import DirectoriesCheck
from barnabas.broker.storage.inspection.verify_log import LogCheck
from barnabas.broker.storage.producers.snapshot import decode_snapshot, write_snapshot
from barnabas.protocol.compression import CODECS
from barnabas.protocol.records import RecordBatch
from tests.support.kafka.bodies import bodies
from tests.support.storage.bench import START_MS, TOPIC_ID, LogBench, append, batch, log_config
from tests.support.storage.cleaning import clean
from tests.support.storage.records import plain, reseal
from tests.support.storage.transactions import end, send

SEGMENT = f"{0:020d}"


def findings(*directories: Path) -> list[Finding]:
    return list(DirectoriesCheck(directories).run())


class Written:
    """A data directory with one cleanly closed log of several segments: codecs, producers, small index intervals."""

    def __init__(self, log_dir: Path) -> None:
        self.log_dir = log_dir
        self.bench = LogBench(log_dir)
        self.directory = self.bench.directory
        log = self.bench.open(log_config(segment_bytes=8192, index_interval_bytes=300))
        for number in range(120):
            records = [(START_MS + number * 7 + i % 2, b"key", b"value %d " % number * 5) for i in range(3)]
            producer = {"producer_id": 2000 + number % 3, "producer_epoch": 0, "base_sequence": number // 3 * 3}
            append(log, batch(*records, codec=CODECS[number % 5], **producer), leader_epoch=number // 50)
        self.end_offset = log.log_end_offset
        self.bases = [segment.base_offset for segment in log.segments]
        self.bench.close(log)
        write_partition_metadata(self.directory, TOPIC_ID)
        (log_dir / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":-1}')
        (log_dir / "recovery-point-offset-checkpoint").write_text(f"0\n1\norders 0 {self.end_offset}\n")

    def file(self, name: str) -> Path:
        return self.directory / name

    def patch(self, name: str, position: int, data: bytes) -> Path:
        path = self.file(name)
        content = bytearray(path.read_bytes())
        content[position : position + len(data)] = data
        path.write_bytes(content)
        return path

    def batches(self, base_offset: int = 0) -> list[RecordBatch]:
        from barnabas.protocol.records import iter_batches

        return list(iter_batches(self.file(f"{base_offset:020d}.log").read_bytes()))


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path / "data")


def test_nothing_is_found_in_a_cleanly_closed_directory_and_nothing_is_changed(written: Written) -> None:
    before = {
        path: (path.stat().st_mtime_ns, path.read_bytes()) for path in written.log_dir.rglob("*") if path.is_file()
    }
    check = DirectoriesCheck([written.log_dir, written.directory])

    assert list(check.run()) == []
    assert check.logs == 2
    assert len(written.bases) > 2
    after = {
        path: (path.stat().st_mtime_ns, path.read_bytes()) for path in written.log_dir.rglob("*") if path.is_file()
    }
    assert after == before


def test_every_byte_of_the_log_files_is_counted(written: Written) -> None:
    counted: list[int] = []
    list(DirectoriesCheck([written.log_dir], advance=counted.append).run())
    assert sum(counted) == sum(path.stat().st_size for path in written.directory.glob("*.log"))


def test_every_flipped_bit_that_a_crc_covers_is_found_at_its_batch(written: Written) -> None:
    second = written.batches()[1]
    name = f"{SEGMENT}.log"
    for inside in (17, 21, 30, 43, 60, second.size_bytes - 1):
        original = written.file(name).read_bytes()
        position = second.position + inside
        written.patch(name, position, bytes([original[position] ^ 0x10]))
        found = findings(written.log_dir)
        assert [(finding.path.name, finding.position) for finding in found][:1] == [(name, second.position)], inside
        assert "crc" in found[0].message
        written.file(name).write_bytes(original)


@pytest.mark.parametrize(
    ("position", "field", "message"),
    [
        (57, (2).to_bytes(4, "big"), "bytes are left over"),
        (57, (4).to_bytes(4, "big"), "record 3"),
        (35, (5).to_bytes(8, "big"), "maximum timestamp 5"),
        (23, (1).to_bytes(4, "big"), "offset delta"),
    ],
    ids=["count too low", "count too high", "maximum timestamp", "last offset delta"],
)
def test_a_header_that_contradicts_its_records_is_found_despite_a_correct_crc(
    tmp_path: Path, position: int, field: bytes, message: str
) -> None:
    data = plain(3)
    data[position : position + len(field)] = field
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (partition / f"{SEGMENT}.log").write_bytes(reseal(data))
    found = [finding for finding in findings(partition) if finding.path.suffix == ".log"]
    assert [finding.position for finding in found] == [0]
    assert message in found[0].message


def test_a_batch_that_kafkas_decoders_do_not_read_is_found(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    linked = next(body for body in bodies() if body.name == "lz4: linked blocks")
    (partition / f"{SEGMENT}.log").write_bytes(linked.batch())
    found = [finding for finding in findings(partition) if finding.path.suffix == ".log"]
    assert [finding.position for finding in found] == [0]
    assert "the lz4 frame has linked blocks, which Kafka's clients do not read" in found[0].message


def test_offsets_that_do_not_increase_are_found(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    first = plain(3)
    (partition / f"{SEGMENT}.log").write_bytes(first + plain(3, base_offset=2) + plain(1, base_offset=9))
    (partition / f"{8:020d}.log").write_bytes(plain(1, base_offset=8))
    found = [(finding.path.name, finding.position) for finding in findings(partition) if ".log" in finding.path.name]
    assert found == [(f"{SEGMENT}.log", len(first)), (f"{8:020d}.log", None)]


@pytest.mark.parametrize("base_offset", [2**31 - 1, 2**40])
def test_offsets_beyond_the_range_of_an_index_are_found(tmp_path: Path, base_offset: int) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    first = plain(3)
    (partition / f"{SEGMENT}.log").write_bytes(first + plain(2, base_offset=base_offset))
    messages = [finding.message for finding in findings(partition) if finding.position == len(first)]
    assert messages == [f"last offset {base_offset + 1} does not fit base offset {base_offset} in this segment"]


def test_a_decreasing_leader_epoch_is_found(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    first = plain(3, partition_leader_epoch=4)
    (partition / f"{SEGMENT}.log").write_bytes(first + plain(3, base_offset=3, partition_leader_epoch=3))
    messages = [finding.message for finding in findings(partition) if finding.position == len(first)]
    assert messages == ["leader epoch 3 comes after epoch 4"]


@pytest.mark.parametrize("tail", [b"\0" * 300, b"garbage" * 20, b"\1"])
@pytest.mark.parametrize("is_newest", [True, False])
def test_bytes_after_the_last_whole_batch_of_a_clean_directory_are_found(
    written: Written, tail: bytes, is_newest: bool
) -> None:
    path = written.file(f"{written.bases[-1 if is_newest else 0]:020d}.log")
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + tail)
    found = findings(written.log_dir)
    assert [(finding.path, finding.position) for finding in found] == [(path, size)]
    assert f"{len(tail)} bytes after the last whole batch" in found[0].message


def test_unused_space_is_accepted_after_a_crash_in_the_newest_segment_only(written: Written) -> None:
    (written.log_dir / ".kafka_cleanshutdown").unlink()
    for base in (written.bases[-1], written.bases[0]):
        for suffix in (".log", ".index", ".timeindex"):
            path = written.file(f"{base:020d}{suffix}")
            path.write_bytes(path.read_bytes() + bytes(240))
        names = {finding.path.name for finding in findings(written.log_dir)}
        expected = {f"{base:020d}{suffix}" for suffix in (".log", ".index", ".timeindex")}
        assert names == (set() if base == written.bases[-1] else expected)


def test_a_torn_batch_after_a_crash_is_found(written: Written) -> None:
    (written.log_dir / ".kafka_cleanshutdown").unlink()
    path = written.file(f"{written.bases[-1]:020d}.log")
    path.write_bytes(path.read_bytes() + plain(3, base_offset=written.end_offset)[:-5])
    (found,) = findings(written.log_dir)
    assert found.path == path


@pytest.mark.parametrize(
    ("slot", "entry", "message"),
    [
        (1, (1, 1), "is not above"),
        (0, (5, 61), "matches no batch"),
        (-1, (10_000, 100_000), "outside of a log"),
    ],
)
def test_a_wrong_offset_entry_is_found_at_its_position(
    written: Written, slot: int, entry: tuple[int, int], message: str
) -> None:
    name = f"{SEGMENT}.index"
    slots = written.file(name).stat().st_size // 8
    place = slot % slots * 8
    path = written.patch(name, place, struct.pack(">ii", *entry))
    (found, *_) = findings(written.log_dir)
    assert (found.path, found.position) == (path, place)
    assert message in found.message


@pytest.mark.parametrize(
    ("slot", "timestamp", "message"), [(1, 5, "is not above"), (1, START_MS + 16, "matches no batch")]
)
def test_a_wrong_time_entry_is_found_at_its_position(written: Written, slot: int, timestamp: int, message: str) -> None:
    path = written.patch(f"{SEGMENT}.timeindex", slot * 12, struct.pack(">q", timestamp))
    (found, *_) = findings(written.log_dir)
    assert (found.path, found.position) == (path, slot * 12)
    assert message in found.message


def test_a_sealed_time_index_that_does_not_reach_the_maximum_is_found(written: Written) -> None:
    path = written.file(f"{SEGMENT}.timeindex")
    path.write_bytes(path.read_bytes()[:-12])
    (found,) = findings(written.log_dir)
    assert found.path == path
    assert "the segment's maximum" in found.message


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_missing_cut_and_orphaned_indexes_are_found(written: Written, suffix: str) -> None:
    path = written.file(SEGMENT + suffix)
    content = path.read_bytes()
    path.write_bytes(content + b"\1")
    assert [finding.path for finding in findings(written.log_dir)] == [path]
    path.unlink()
    (missing,) = findings(written.log_dir)
    assert missing.path == path
    assert "missing" in missing.message
    path.write_bytes(content)
    orphan = written.file(f"{99_999:020d}{suffix}")
    orphan.write_bytes(b"")
    assert [finding.path for finding in findings(written.log_dir)] == [orphan]


def test_producer_snapshots_are_checked_by_crc_size_and_offset(written: Written) -> None:
    name = f"{written.bases[1]:020d}.snapshot"
    original = written.file(name).read_bytes()
    for damaged in (original[:-1], original[:-1] + bytes([original[-1] ^ 1]), b"", b"\0\7" + original[2:]):
        written.file(name).write_bytes(damaged)
        assert [finding.path.name for finding in findings(written.log_dir)] == [name]
    written.file(name).write_bytes(original)
    beyond = written.file(f"{written.end_offset + 1:020d}.snapshot")
    beyond.write_bytes(original)
    (found,) = findings(written.log_dir)
    assert found.path == beyond
    assert f"the log ends at {written.end_offset}" in found.message


def test_a_producer_beyond_its_snapshot_is_found(written: Written) -> None:
    name = f"{written.bases[1]:020d}.snapshot"
    path = written.file(name)
    rows = decode_snapshot(path.read_bytes(), path)
    write_snapshot(path, [rows[0]._replace(last_offset=written.bases[1])], durably=False)
    (found,) = findings(written.log_dir)
    assert found.path == path
    assert f"producer {rows[0].producer_id}" in found.message


@pytest.mark.parametrize(
    ("rows", "position"),
    [
        ([(0, 7, 3, 4, 3), (0, 7, 5, 9, 11)], 0),
        ([(1, 7, 3, 4, 3)], 0),
        ([(0, 7, 3, 4, 3), (0, 7, 9, 8, 5)], 34),
        ([(0, 7, 3, 6, 3), (0, 7, 1, 5, 5)], 34),
    ],
)
def test_a_wrong_transaction_index_is_found_at_its_row(
    written: Written, rows: list[tuple[int, ...]], position: int
) -> None:
    path = written.file(f"{SEGMENT}.txnindex")
    content = b"".join(struct.pack(">hqqqq", *row) for row in rows)
    path.write_bytes(content)
    assert findings(written.log_dir)[0].position == position
    path.write_bytes(content + b"\0")
    assert findings(written.log_dir)[0] == Finding(path, None, "1 bytes at the end are not a whole row")


@pytest.fixture
def transactional(tmp_path: Path) -> LogBench:
    """Overlapping transactions of two producers over several segments, about half of them aborted, one left open."""
    bench = LogBench(tmp_path)
    log = bench.open(log_config(segment_bytes=1024))
    sequences = {7: 0, 8: 0}
    for number in range(12):
        for producer in (7, 8, 7):
            send(log, producer, sequences[producer], b"value-%d" % number, size=40)
            sequences[producer] += 1
        end(log, 7, is_commit=number % 2 == 0)
        if number % 3 == 2:
            end(log, 8, is_commit=number % 4 == 1)
    send(log, 8, sequences[8], b"open")
    assert log.segment_count > 3
    bench.close(log)
    (tmp_path / ".kafka_cleanshutdown").touch()
    return bench


def transaction_indexes(bench: LogBench) -> list[Path]:
    return sorted(path for path in bench.directory.glob("*.txnindex") if path.stat().st_size)


def test_the_rows_of_transaction_indexes_are_compared_with_the_markers(transactional: LogBench) -> None:
    log_dir = transactional.directory.parent
    assert len(transaction_indexes(transactional)) > 2
    assert findings(log_dir) == []
    path = transaction_indexes(transactional)[1]
    rows = read_transaction_index(path).entries
    for changes, message in (
        ({"producer_id": 9}, "aborts a transaction of producer 9"),
        ({"last_offset": rows[0].last_offset - 1}, f"no marker at offset {rows[0].last_offset - 1}"),
        ({"first_offset": rows[0].first_offset + 1}, f"producer {rows[0].producer_id} has data of it"),
        ({"last_stable_offset": rows[0].last_offset + 2}, "it can be"),
    ):
        content = path.read_bytes()
        path.write_bytes(struct.pack(">hqqqq", *rows[0]._replace(**changes)) + content[34:])
        found = findings(log_dir)
        assert (found[0].path, message in " ".join(finding.message for finding in found)) == (path, True), found
        path.write_bytes(content)
    path.unlink()
    found = findings(log_dir)
    assert {finding.path for finding in found} == {path}
    assert len(found) == len(rows)
    assert f"that offset {rows[0].last_offset} aborts" in found[0].message


@pytest.mark.parametrize("rows", [0, -1])
def test_rows_that_a_running_broker_has_not_written_yet_are_not_reported(transactional: LogBench, rows: int) -> None:
    path = transactional.path(max(int(path.stem) for path in transactional.directory.glob("*.log")), ".txnindex")
    content = path.read_bytes() if path.exists() else b""
    path.write_bytes(content[: 34 * rows])
    check = LogCheck(transactional.directory, Circumstances(is_in_use=True), lambda _: None)
    assert list(check.run()) == []


def test_transactions_partly_removed_by_retention_and_the_cleaner_are_not_reported(transactional: LogBench) -> None:
    log = transactional.open(log_config(segment_bytes=1024, compact=True))
    log.delete_records(log.segments[1].base_offset + 1)
    log.delete_old_segments()
    transactional.scheduler.advance(3_600_000)
    clean(log)
    transactional.scheduler.advance(3_600_000)
    transactional.close(log)
    assert findings(transactional.directory.parent) == []


@pytest.mark.parametrize("content", ["0\n2\n0 0\n", "1\n0\n", "0\n1\nx 0\n", "0\n2\n3 0\n2 5\n", "0\n1\n7 100000\n"])
def test_a_bad_leader_epoch_checkpoint_is_found(written: Written, content: str) -> None:
    path = written.file("leader-epoch-checkpoint")
    path.write_text(content)
    assert {finding.path for finding in findings(written.log_dir)} == {path}


@pytest.mark.parametrize("content", ["0\n5\norders 0 1\n", "x", "0\n1\norders 0\n", "0\n1\norders 0 100000\n"])
@pytest.mark.parametrize("name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint"])
def test_a_bad_checkpoint_of_the_data_directory_is_found(written: Written, name: str, content: str) -> None:
    path = written.log_dir / name
    path.write_text(content)
    assert [finding.path for finding in findings(written.log_dir)] == [path]


def test_bad_partition_metadata_and_topic_ids_that_differ_are_found(written: Written) -> None:
    other = written.log_dir / "orders-1"
    other.mkdir()
    (other / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg")
    (found,) = findings(written.log_dir)
    assert found.path == other / "partition.metadata"
    (other / "partition.metadata").write_text("nonsense")
    (found,) = findings(written.log_dir)
    assert found.path == other / "partition.metadata"


def test_names_that_prevent_a_brokers_start_are_found(written: Written, tmp_path: Path) -> None:
    (written.log_dir / "not a partition").mkdir()
    (written.log_dir / "lost+found").mkdir()
    (written.log_dir / "notes.txt").write_text("")
    (found,) = findings(written.log_dir)
    assert found.path.name == "not a partition"
    second = tmp_path / "second"
    (second / "orders-0").mkdir(parents=True)
    assert {finding.path for finding in findings(second, written.log_dir)} == {found.path, written.directory}


def test_deleted_files_and_directories_are_not_reported(written: Written) -> None:
    written.file(f"{SEGMENT}.log.deleted").write_bytes(b"anything")
    gone = written.log_dir / f"orders-7.{'0' * 32}-delete"
    gone.mkdir()
    (gone / f"{SEGMENT}.log").write_bytes(b"anything")
    assert findings(written.log_dir) == []


def test_a_leftover_of_the_cleaner_is_found_after_a_clean_stop_and_accepted_after_a_crash(written: Written) -> None:
    unfinished = written.file(f"{SEGMENT}.log.cleaned")
    unfinished.write_bytes(b"half a batch")
    finished = written.file(f"{SEGMENT}.log.swap")
    shutil.copy(written.file(f"{SEGMENT}.log"), finished)
    assert [finding.path for finding in findings(written.log_dir)] == [unfinished, finished]
    (written.log_dir / ".kafka_cleanshutdown").unlink()
    assert findings(written.log_dir) == []


@pytest.mark.parametrize("position", [70, -1])
def test_damage_in_a_complete_swap_is_found_because_a_start_would_use_it(written: Written, position: int) -> None:
    (written.log_dir / ".kafka_cleanshutdown").unlink()
    content = bytearray(written.file(f"{SEGMENT}.log").read_bytes())
    content[position] ^= 1
    swap = written.file(f"{SEGMENT}.log.swap")
    swap.write_bytes(content)
    (finding,) = findings(written.log_dir)
    assert finding.path == swap
    assert "a start would use as a segment: stored crc" in finding.message
    swap.write_bytes(content[:-5])
    assert "bytes at its end" in findings(written.log_dir)[-1].message


def test_the_lock_of_another_process_is_detected_without_taking_it(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from barnabas.broker.storage.directories.lock import DirectoryLock\n"
        "DirectoryLock(Path(sys.argv[1])).acquire(); print('held', flush=True); sys.stdin.read()"
    )
    assert lock_holder(tmp_path) is None
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=Path(__file__).resolve().parents[3],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"held\n"
        assert lock_holder(tmp_path) == process.pid != os.getpid()
        process.stdin.close()
        process.wait(30)
    assert (tmp_path / ".lock").exists()  # the process died without a clean stop and left the file
    assert lock_holder(tmp_path) is None


def test_the_end_of_a_log_in_use_is_not_checked(written: Written) -> None:
    path = written.file(f"{written.bases[-1]:020d}.log")
    path.write_bytes(path.read_bytes() + plain(3, base_offset=written.end_offset)[:-5])
    check = LogCheck(written.directory, Circumstances(is_in_use=True), lambda _: None)
    assert list(check.run()) == []
    sealed = written.file(f"{SEGMENT}.log")
    size = sealed.stat().st_size
    sealed.write_bytes(sealed.read_bytes() + b"torn")
    written.patch(f"{SEGMENT}.log", 70, b"\xff")
    damaged = LogCheck(written.directory, Circumstances(is_in_use=True), lambda _: None)
    assert [finding.position for finding in damaged.run()] == [0, size]
