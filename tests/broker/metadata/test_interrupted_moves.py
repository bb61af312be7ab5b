"""Partition moves interrupted at any moment: the next start loses nothing and has the partition in one directory."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.config import BrokerConfig, Setting
from barnabas.protocol.messages.topics.topics import NewTopic
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.storage.bench import START_MS, append, read_batches, sized_batch
from tests.support.storage.metadata_store import Opened, release

TP = TopicPartition("orders", 0)
BATCHES = 20

STAGES = ("copying", "before assign", "after assign", "old one renamed", "new one renamed")


class Broker:
    """A broker with two log directories, and the metadata log in a third one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.meta, self.a, self.b = (root / name for name in ("meta", "a", "b"))
        self.opened: Opened | None = None

    def open(self) -> Opened:
        settings = {
            "log.dirs": f"{self.a},{self.b}",
            "metadata.log.dir": str(self.meta),
            "log.segment.bytes": "1024",
            "log.retention.ms": "-1",
            "replica.alter.log.dirs.io.max.bytes.per.second": "0",  # moves are halted until a test allows them
            "log.message.timestamp.after.max.ms": str(2**62),
        }
        self.opened = Opened(BrokerConfig.of({name: Setting(value, "test") for name, value in settings.items()}))
        return self.opened

    def copy_as(self, root: Path) -> Broker:
        """Copy the files, as a kill -9 at this moment would leave them."""
        shutil.copytree(self.root, root, ignore=shutil.ignore_patterns(".lock"))
        return Broker(root)

    def close(self) -> None:
        if self.opened is not None:
            release(self.opened.log_manager)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    running = Broker(tmp_path / "running")
    yield running
    running.close()


def run_moves(opened: Opened) -> None:
    moves = opened.log_manager.moves
    moves._max_bytes_per_second = lambda: 2**62
    while moves.running:
        moves.step()


def kinds(path: Path) -> list[str]:
    names = [entry.name for entry in path.iterdir() if entry.is_dir()]
    return sorted(name.split(".")[0] + ("-" + name.rpartition("-")[2] if "." in name else "") for name in names)


def assigned(opened: Opened) -> list[Path]:
    """Return the directories assigned by the metadata."""
    state = opened.store.image.partition(*TP)
    assert state is not None
    return [path for path, identity in opened.store.directory_ids.items() if identity in state.directories]


def start_with_log_in_a(broker: Broker) -> tuple[Opened, PartitionLog]:
    opened = broker.open()
    opened.create(NewTopic(name="orders", partitions=1))
    log = opened.log_manager.get(TP)
    assert log is not None
    assert log.log_dir == broker.a
    for index in range(BATCHES):
        append(log, sized_batch(200, START_MS + index))
    return opened, log


def move_and_keep_each_stage(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Broker]:
    """Move orders-0 from a to b; return a copy of the directories at each stage."""
    opened, log = start_with_log_in_a(broker)
    kept: dict[str, Broker] = {}

    def keep(stage: str) -> None:
        kept[stage] = broker.copy_as(tmp_path / stage.replace(" ", "-"))

    real_assign, real_rename = opened.store.assign, LogCore.rename

    def assign(log: PartitionLog, log_dir: Path) -> None:
        keep("before assign")
        real_assign(log, log_dir)
        keep("after assign")

    def rename(renamed: LogCore, name: str) -> None:
        real_rename(renamed, name)
        keep("new one renamed" if renamed is future.log.core else "old one renamed")

    monkeypatch.setattr(opened.store, "assign", assign)
    opened.log_manager.move(TP, broker.b)
    [future] = opened.log_manager.moves.futures()
    future.catch_up(log, 500)
    keep("copying")
    monkeypatch.setattr(LogCore, "rename", rename)
    run_moves(opened)
    monkeypatch.setattr(LogCore, "rename", real_rename)
    assert log.log_dir == broker.b
    assert tuple(kept) == STAGES
    return kept


@pytest.mark.parametrize("stage", STAGES)
def test_a_move_that_dies_at_any_stage_is_finished_after_the_start(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    left = move_and_keep_each_stage(broker, tmp_path, monkeypatch)[stage]
    opened = left.open()
    try:
        log = opened.log_manager.get(TP)
        assert log is not None
        assert [batch.base_offset for batch in read_batches(log)] == list(range(BATCHES))
        assert append(log, sized_batch(200)) == BATCHES
        run_moves(opened)
        assert log.directory == left.b / "orders-0"
        assert [batch.base_offset for batch in read_batches(log)] == list(range(BATCHES + 1))
        assert assigned(opened) == [left.b]
        assert (kinds(left.a), kinds(left.b)) == (["orders-0-delete"], ["orders-0"])
    finally:
        left.close()


def test_a_start_records_the_directory_in_which_a_log_is_found(broker: Broker) -> None:
    opened, _ = start_with_log_in_a(broker)
    opened.close()
    shutil.move(broker.a / "orders-0", broker.b / "orders-0")
    opened = broker.open()
    log = opened.log_manager.get(TP)
    assert log is not None
    assert log.log_dir == broker.b
    assert assigned(opened) == [broker.b]
    opened.close()
    assert assigned(broker.open()) == [broker.b]


def stop_in_the_middle(broker: Broker) -> Path:
    """Stop cleanly with a half-filled copy of orders-0 in b; return the copy's directory."""
    opened, log = start_with_log_in_a(broker)
    opened.log_manager.move(TP, broker.b)
    future = opened.log_manager.moves.futures()[0]
    future.catch_up(log, 500)
    opened.close()
    return future.log.directory


def test_a_copy_without_its_log_is_kept_as_stray(broker: Broker) -> None:
    stop_in_the_middle(broker)
    shutil.rmtree(broker.a / "orders-0")
    opened = broker.open()
    log = opened.log_manager.get(TP)
    assert log is not None
    assert log.log_end_offset == 0  # created empty, as every missing log is
    assert kinds(broker.b) == ["orders-0-stray"]


def test_a_copy_waits_while_the_directory_of_its_log_is_offline(broker: Broker) -> None:
    copy = stop_in_the_middle(broker)
    away = broker.root / "unplugged"
    broker.a.rename(away)
    broker.a.write_text("no directory")
    opened = broker.open()
    assert opened.log_manager.get(TP) is None
    assert copy.is_dir()
    opened.close()
    broker.a.unlink()
    away.rename(broker.a)
    opened = broker.open()
    run_moves(opened)
    log = opened.log_manager.get(TP)
    assert log is not None
    assert log.log_dir == broker.b
    assert len(list(read_batches(log))) == BATCHES


def test_a_copy_of_an_unknown_topic_is_kept_as_stray(broker: Broker) -> None:
    copy = stop_in_the_middle(broker)
    copy.rename(copy.with_name("unknown-0" + copy.name.removeprefix("orders-0")))
    broker.open()
    assert kinds(broker.b) == ["unknown-0-stray"]


def test_a_copy_beside_its_log_and_a_second_copy_are_deleted(broker: Broker) -> None:
    copy = stop_in_the_middle(broker)
    shutil.copytree(copy, broker.a / copy.name)
    shutil.copytree(copy, broker.b / copy.name.replace(copy.name[9:12], "abc"))
    opened = broker.open()
    assert kinds(broker.a) == ["orders-0", "orders-0-delete"]
    assert kinds(broker.b) == ["orders-0-delete", "orders-0-future"]
    run_moves(opened)
    assert "orders-0" in kinds(broker.b)


def test_a_log_and_its_copy_do_not_count_as_a_partition_in_two_directories(broker: Broker) -> None:
    stop_in_the_middle(broker)
    opened = broker.open()
    opened.close()
    shutil.copytree(broker.a / "orders-0", broker.b / "orders-0")
    with pytest.raises(MetadataError, match="two log directories"):
        broker.open()


def test_the_checkpoints_of_both_directories_hold_the_copy_and_the_log(broker: Broker) -> None:
    stop_in_the_middle(broker)
    read: dict[str, Any] = {
        name: (broker.root / name / "recovery-point-offset-checkpoint").read_text() for name in ("a", "b")
    }
    assert read["a"] == f"0\n1\norders 0 {BATCHES}\n"
    assert read["b"].startswith("0\n1\norders 0 ")
    assert read["b"] != read["a"]
