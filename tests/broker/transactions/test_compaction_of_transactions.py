"""Compaction of a topic that transactions write: the cleaner and the coordinator of a running daemon, and a model."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.compacted_topic import DIRTY_AT_ONCE, QUICK, active_base, await_clean, await_until, clean_offset
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.transactions.committed_reads import end_offset, fetch_committed
from tests.support.transactions.desk import Desk
from tests.support.transactions.partition_model import PartitionModel
from tests.support.wire import WireClient

TOPIC = "accounts"
KEYS = 12
CONFIGS = {**DIRTY_AT_ONCE, "segment_bytes": "3000", "file_delete_delay_ms": "1", "delete_retention_ms": "0"}


def some_transactions(desk: Desk, draw: random.Random, count: int, *, numbers: tuple[int, ...]) -> None:
    """Run interleaved transactions of these producers to their ends."""
    for _ in range(count):
        number = draw.choice(numbers)
        if number in desk.open and draw.random() < 0.4:
            desk.end(number, is_commit=draw.random() < 0.6)
        else:
            key = b"key-%d" % draw.randrange(KEYS)
            desk.write(number, b"%d-" % desk.model.end_offset + bytes(draw.randrange(100)), key=key)
    for number in numbers:
        if number in desk.open:
            desk.end(number, is_commit=True)


def check(desk: Desk, kafka: KafkaWire, clean_to: int) -> None:
    """Compare a compacted partition with the model."""
    model = desk.model
    assert end_offset(kafka, TOPIC, 0, committed=True) == model.last_stable_offset
    assert end_offset(kafka, TOPIC, 0, committed=False) == model.end_offset
    committed = fetch_committed(kafka, TOPIC, 0, 0).values
    expected = model.committed()
    assert set(committed) <= set(expected)
    kept = set(committed)
    last = last_offsets(model, clean_to)
    for offset, value in expected:
        row = model.log[offset]
        assert row is not None
        assert ((offset, value) in kept) == (offset >= clean_to or last[row[1]] == offset), (offset, clean_to)
    shown = {offset for offset, _ in desk.read_uncommitted()}
    written = {offset for offset, _ in model.everything()}
    aborted = {offset for offset in written if offset < min(clean_to, model.last_stable_offset)} - dict(expected).keys()
    assert aborted
    assert not aborted & shown
    assert {offset for offset in written if offset >= clean_to} <= shown


def last_offsets(model: PartitionModel, clean_to: int) -> dict[bytes | None, int]:
    """Return the offset of each key's last committed record below `clean_to`."""
    return {model.log[offset][1]: offset for offset, _ in model.committed() if offset < clean_to}  # type: ignore[index]


def await_clean_to(daemon: Daemon, desk: Desk) -> int:
    """Wait until all segments are clean but the active one and those that an open transaction holds back."""
    if desk.model.last_stable_offset > active_base(daemon.data_directory, TOPIC):
        return await_clean(daemon, TOPIC)
    directory = daemon.data_directory
    bases = sorted(int(path.stem) for path in (directory / f"{TOPIC}-0").glob("*.log"))
    target = max(base for base in bases if base <= desk.model.last_stable_offset)
    await_until(daemon, lambda: clean_offset(directory, TOPIC) == target, f"{TOPIC} to be clean to {target}")
    return target


@pytest.mark.parametrize("seed", range(2))
def test_committed_records_are_compacted_aborted_ones_go_and_open_ones_wait(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    settings = (*QUICK, "transaction.state.log.num.partitions=1")
    with start_daemon(tmp_path, *settings) as daemon:
        with WireClient(daemon.host, daemon.port) as wire, KafkaWire(daemon.host, daemon.port) as kafka:
            wire.create_topic(TOPIC, 1, **CONFIGS)
            desk = Desk(wire, kafka, TOPIC, levels=(2, 2, 0, 2))
            some_transactions(desk, draw, 120, numbers=(0, 1, 2))
            check(desk, kafka, await_clean_to(daemon, desk))
            desk.write(3, b"open", key=b"key-0")
            opened_at = desk.model.end_offset - 1
            some_transactions(desk, draw, 80, numbers=(0, 1, 2))
            clean_to = await_clean_to(daemon, desk)
            assert clean_to <= opened_at
            check(desk, kafka, clean_to)
            desk.end(3, is_commit=seed == 0)
            some_transactions(desk, draw, 40, numbers=(0, 1, 2))
            clean_to = await_clean_to(daemon, desk)
            assert clean_to > opened_at
            check(desk, kafka, clean_to)
        daemon.restart(clean=False)
        with WireClient(daemon.host, daemon.port) as wire, KafkaWire(daemon.host, daemon.port) as kafka:
            desk.move_to(wire, kafka)
            check(desk, kafka, clean_to)
