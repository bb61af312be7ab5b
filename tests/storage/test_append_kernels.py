"""The compiled appends and the Python path do the same, byte for byte, with the same random traffic."""

from __future__ import annotations

import gc
import random
import resource
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.storage.kernels import kernel
from barnabas.broker.storage.log.append import AppendOrigin, TransactionEnd
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.records.end_marker import EndMarker
from tests.support.storage.bench import START_MS, LogBench, batch, log_config, sized_batch

pytest.importorskip("barnabas.broker.storage.kernels._append")

_OPERATIONS = 1_000
_PRODUCERS = 4
_CONFIGS: tuple[dict[str, Any], ...] = (
    {},
    {"timestamp_type": "LogAppendTime"},
    {"compact": True},
    {"flush_messages": 3},
    {"flush_messages": 3, "flush_acks_all": True},
    {"timestamp_before_max_ms": 5_000, "timestamp_after_max_ms": 5_000},
    {"max_message_bytes": 150},
    {"compression_type": "gzip"},
    {"compression_type": "uncompressed"},
    {"segment_ms": 10_000},
    {"segment_ms": 2**63 - 1},
)
_BASE = {"segment_bytes": 60_000, "segment_index_bytes": 8_192, "index_interval_bytes": 0, "segment_jitter_ms": 0}


class _Counting:
    """Passes calls on to a kernel and counts the batches that it appended."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.appended = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        def counted(*arguments: object) -> object:
            result = method(*arguments)
            self.appended += result is not None
            return result

        return counted


class _Pair:
    """Two logs: one with the compiled kernels, one without."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.benches = [LogBench(path / name) for name in ("compiled", "python")]
        self.logs = [self.benches[0].open(log_config(**_BASE))]
        with monkeypatch.context() as patch:
            patch.setattr(kernel, "_append_kernel", None)
            self.logs.append(self.benches[1].open(log_config(**_BASE)))
        appender: Any = self.logs[0]._appender
        self.batches = appender._kernel = _Counting(appender._kernel)
        trusted: Any = appender._append_trusted.__self__
        self.trusted = trusted._kernel = _Counting(trusted._kernel)
        markers: Any = self.logs[0].append_marker.__self__  # type: ignore[attr-defined]
        self.markers = _Counting(SimpleNamespace(append=markers._append_commit))
        markers._append_commit = self.markers.append

    def both(self, action: Any) -> None:
        """Run an action on each log and compare its results and both logs' states."""
        found, expected = (_outcome(action, log) for log in self.logs)
        assert found == expected
        assert _state(self.logs[0]) == _state(self.logs[1])

    def advance(self, milliseconds: int) -> None:
        for bench in self.benches:
            bench.scheduler.advance(milliseconds)

    def files(self) -> tuple[dict[str, bytes], dict[str, bytes]]:
        compiled, python = (
            {path.name: path.read_bytes() for path in bench.directory.iterdir()} for bench in self.benches
        )
        return compiled, python


class _Producer:
    """A producer's sequences and transaction, as a client keeps them."""

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = 0
        self.sequence = 0
        self.in_transaction = False


@pytest.mark.parametrize("seed", range(3))
def test_random_traffic_leaves_equal_answers_files_indexes_and_producers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    pair = _Pair(tmp_path, monkeypatch)
    producers = [_Producer(number) for number in range(_PRODUCERS)]
    for _ in range(_OPERATIONS):
        _step(rng, pair, producers)
    compiled, python = pair.files()
    assert compiled.keys() == python.keys()
    assert [name for name in compiled if compiled[name] != python[name]] == []
    assert pair.batches.appended > _OPERATIONS // 5
    assert min(pair.trusted.appended, pair.markers.appended) > 10
    for log in pair.logs:
        log.close()
    compiled, python = pair.files()
    assert [name for name in compiled if compiled[name] != python[name]] == []
    assert len(compiled) > 8  # segments were rolled


def test_a_write_that_fails_half_way_leaves_log_file_and_batch_as_they_were(bench: LogBench) -> None:
    log = bench.open(log_config(timestamp_type="LogAppendTime", preallocate=True, segment_bytes=10_000))
    for _ in range(2):
        log.append_as_leader(sized_batch(100), leader_epoch=0)
    append_kernel = log.append_kernel
    assert append_kernel is not None
    sent = sized_batch(200)
    before = (bytes(sent), _state(log), bench.log_path().read_bytes())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, hard))
    try:
        assert append_kernel.append_as_leader(sent, 0, False, START_MS) is None
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    # The limit refuses to lengthen the file to its preallocated size again; an ordinary full disk does not.
    assert (bytes(sent), _state(log), bench.log_path().read_bytes()) == (*before[:2], before[2][:200])
    assert log.append_as_leader(sent, leader_epoch=0).base_offset == 2
    assert log.core.end.size_bytes == 400


def test_a_taken_lock_leaves_the_append_to_python(bench: LogBench) -> None:
    log = bench.open()
    log.append_as_leader(sized_batch(100), leader_epoch=0)
    append_kernel = log.append_kernel
    assert append_kernel is not None
    with log.core.lock:
        assert append_kernel.append_as_leader(sized_batch(100), 0, False, START_MS) is None
        assert log.core.lock.locked()
    assert append_kernel.append_as_leader(sized_batch(100), 0, False, START_MS) is not None
    assert not log.core.lock.locked()


def test_appends_leave_no_reference_behind(bench: LogBench) -> None:
    log = bench.open(log_config(index_interval_bytes=0, segment_index_bytes=1 << 20))
    end = TransactionEnd(1, 0, EndMarker(True, 0), 0)

    def transaction(first_sequence: int) -> None:
        header: dict[str, Any] = {
            "producer_id": 1,
            "producer_epoch": 0,
            "base_sequence": first_sequence,
            "is_transactional": True,
        }
        compressed = batch((START_MS, b"k", bytes(200)), codec=3, **header)
        log.append_as_leader(compressed, leader_epoch=0, origin=AppendOrigin.TRANSACTION)
        log.append_as_leader(sized_batch(100), leader_epoch=0)
        log.append_as_leader(sized_batch(100, START_MS + first_sequence), leader_epoch=0, origin=AppendOrigin.RAFT)
        log.append_marker(end, leader_epoch=0)

    for number in range(100):
        transaction(number)
    names = [log.core, log.core.active, log.core.active.log, log.core.producers.producers[1], None, True, False]
    gc.collect()
    objects, references = len(gc.get_objects()), [sys.getrefcount(each) for each in names]
    blocks = sys.getallocatedblocks()
    for number in range(100, 2_600):
        transaction(number)
    gc.collect()
    # Other tests' threads create and free objects meanwhile; a leak has 2,500.
    assert len(gc.get_objects()) < objects + 1_000
    assert sys.getallocatedblocks() < blocks + 1_250
    for each, count in zip(names, references, strict=True):
        assert abs(sys.getrefcount(each) - count) < 50, each


def _step(rng: random.Random, pair: _Pair, producers: list[_Producer]) -> None:
    draw = rng.random()
    if draw < 0.75:
        _append_client(rng, pair, rng.choice(producers))
    elif draw < 0.83:
        producer = rng.choice(producers)
        data = _batch(rng, producer_id=rng.choice((-1, producer.producer_id)), producer_epoch=producer.epoch)
        pair.both(lambda log: _append(log, data, AppendOrigin.COORDINATOR))
    elif draw < 0.93:
        _end(rng, pair, rng.choice([each for each in producers if each.in_transaction] or producers))
    elif draw < 0.95:
        pair.advance(rng.choice((1, 500, 6_000)))
    elif draw < 0.96:
        pair.both(lambda log: log.flush())
    elif draw < 0.965:
        pair.both(lambda log: log.roll().base_offset)
    else:
        config = log_config(**{**_BASE, **rng.choice((rng.choice(_CONFIGS), {}))})
        config = replace(config, segment_bytes=rng.choice((2_000, 60_000, 60_000)))
        for log in pair.logs:
            log.update_config(config)


def _append_client(rng: random.Random, pair: _Pair, producer: _Producer) -> None:
    """Append a client's batch: mostly its producer's next one, else a repeated, wrong or damaged one."""
    origin = rng.choice((AppendOrigin.CLIENT, AppendOrigin.TRANSACTION))
    header: dict[str, Any] = {}
    count = rng.choice((1, 1, 2, 5))
    if rng.random() < 0.7:
        transactional = origin is AppendOrigin.TRANSACTION and rng.random() < 0.9
        sequence = producer.sequence if rng.random() < 0.93 else rng.choice((0, producer.sequence - 1, 7, -1))
        epoch = producer.epoch + rng.choice((0,) * 30 + (-1, 1))
        if epoch > producer.epoch and rng.random() < 0.8:
            sequence = 0
        header = {
            "producer_id": producer.producer_id,
            "producer_epoch": epoch,
            "base_sequence": sequence,
            "is_transactional": transactional,
        }
    data = _batch(rng, count, **header)
    if rng.random() < 0.06:
        at = rng.randrange(len(data))
        data = memoryview(bytearray(data))
        data[at] ^= 1 << rng.randrange(8)
    if rng.random() < 0.02:
        data = data[: rng.randrange(len(data))]
    before = pair.logs[1].log_end_offset
    pair.both(lambda log: _append(log, data, origin))
    if header and pair.logs[1].log_end_offset > before:
        producer.epoch = header["producer_epoch"]
        producer.sequence = header["base_sequence"] + count
        producer.in_transaction = producer.in_transaction or transactional


def _end(rng: random.Random, pair: _Pair, producer: _Producer) -> None:
    version = rng.choice((0, 2))
    epoch = producer.epoch + (version == 2) + rng.choice((0,) * 10 + (-1,))
    marker = EndMarker(rng.random() < 0.8, rng.choice((3, 3, 3, 3, 4, 2)))
    before = pair.logs[1].log_end_offset
    pair.both(
        lambda log: log.append_marker(TransactionEnd(producer.producer_id, epoch, marker, version), leader_epoch=0)
    )
    if pair.logs[1].log_end_offset > before:
        producer.in_transaction = False
        if epoch > producer.epoch:
            producer.epoch, producer.sequence = epoch, 0


def _batch(rng: random.Random, count: int = 1, **header: Any) -> memoryview:
    size = rng.choice((0, 10, 10, 100, 100, 400, 40_000 if rng.random() < 0.05 else 7))
    records = [
        (
            rng.choice((START_MS, START_MS, START_MS + 1_000, START_MS + 20_000, -1, 0)) + rng.choice((0, 1)),
            rng.choice((None, b"key", b"key")),
            rng.choice((None, bytes(size), rng.randbytes(size))),
        )
        for _ in range(count)
    ]
    return batch(*records, codec=rng.choice((0,) * 12 + (1, 2, 3, 4)), **header)


def _append(log: PartitionLog, data: memoryview, origin: AppendOrigin) -> object:
    sent = memoryview(bytearray(data))
    try:
        result = log.append_as_leader(sent, leader_epoch=0, origin=origin)
    except BrokerError as error:
        return type(error), error.code, error.message, bytes(sent)
    return result, [type(each) for each in result], bytes(sent)


def _outcome(action: Any, log: PartitionLog) -> object:
    try:
        return action(log)
    except BrokerError as error:
        return error.code, error.message


def _state(log: PartitionLog) -> object:
    core = log.core
    segment: Any = core.active
    indexes = (segment.offset_index, segment.time_index)
    return (
        (core.log_end_offset, core.durable_offset, core.first_unstable_offset, core.latest_epoch, core.state),
        (type(core.end), core.end.segment is segment, core.end._replace(segment=None)),  # type: ignore[arg-type]
        (segment.base_offset, segment.log.size_bytes, segment._bytes_since_index_entry, segment._first_timestamp),
        (type(segment._largest), segment._largest, segment.index_is_full, segment.roll_after),
        [(each.entries, each.max_entries, each.last_offset, each._allocated_bytes) for each in indexes],
        segment.time_index.last_timestamp,
        _slots(core.producers.open_transactions),
        {number: _slots(entry) for number, entry in core.producers.producers.items()},
        list(core.producers.producers),
        list(core.producers.overdue),
        core.lock.locked(),
    )


def _slots(owner: Any) -> dict[str, object]:
    return {name: getattr(owner, name) for name in type(owner).__slots__}
