"""Producer id, epoch and partition count of a task and micro-batch, which a replay must find again."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.clients.producer.sequences import MAX_EPOCH
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.sink.identity import TaskIdentity


def identity(checkpoint: Path, batch_id: int, *, new_id: int, task: int = 3) -> tuple[int, int]:
    kept = TaskIdentity(str(checkpoint), task, batch_id)
    if kept.needs_producer_id:
        kept.keep_producer_id(new_id, "here")
    producer = kept.producer()
    return producer.producer_id, producer.epoch


def test_a_task_keeps_its_id_and_every_micro_batch_has_its_own_epoch(tmp_path: Path) -> None:
    assert identity(tmp_path, 0, new_id=41) == (41, 0)
    assert identity(tmp_path, 1, new_id=99) == (41, 1)
    assert identity(tmp_path, 1, new_id=99) == (41, 1)
    assert identity(tmp_path, 5, new_id=99) == (41, 5)
    assert identity(tmp_path, 5, new_id=42, task=4) == (42, 0)


def test_when_the_epochs_are_used_up_a_new_id_begins_and_older_micro_batches_keep_theirs(tmp_path: Path) -> None:
    assert identity(tmp_path, 7, new_id=1) == (1, 0)
    assert identity(tmp_path, 7 + MAX_EPOCH, new_id=2) == (1, MAX_EPOCH)
    assert identity(tmp_path, 8 + MAX_EPOCH, new_id=3) == (3, 0)
    assert identity(tmp_path, 9 + MAX_EPOCH, new_id=4) == (3, 1)
    assert identity(tmp_path, 7 + MAX_EPOCH, new_id=5) == (1, MAX_EPOCH)


def test_of_two_attempts_at_once_the_first_ones_id_holds_for_both(tmp_path: Path) -> None:
    one, other = TaskIdentity(str(tmp_path), 0, 0), TaskIdentity(str(tmp_path), 0, 0)
    assert one.needs_producer_id
    assert other.needs_producer_id
    one.keep_producer_id(10, "here")
    other.keep_producer_id(11, "here")
    assert one.producer().producer_id == other.producer().producer_id == 10


def test_a_replay_spreads_keys_over_as_many_partitions_as_before(tmp_path: Path) -> None:
    assert TaskIdentity(str(tmp_path), 0, 2).partitions("t", 6, has_begun=False) == 6
    assert TaskIdentity(str(tmp_path), 0, 2).partitions("t", 12, has_begun=True) == 6
    assert TaskIdentity(str(tmp_path), 0, 3).partitions("t", 12, has_begun=True) == 6
    assert TaskIdentity(str(tmp_path), 0, 3).partitions("t", 12, has_begun=False) == 12
    assert TaskIdentity(str(tmp_path), 0, 3).partitions("t", 24, has_begun=False) == 12
    assert TaskIdentity(str(tmp_path), 0, 4).partitions("t", 24, has_begun=False) == 24
    assert TaskIdentity(str(tmp_path), 0, 2).partitions("t", 24, has_begun=True) == 6


@pytest.mark.parametrize("content", [b"", b"[]", b'{"producer_id": "x"}', b'{"producer_id": -2}', b"{}", b"\xff"])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    assert identity(tmp_path, 0, new_id=1) == (1, 0)
    (file,) = tmp_path.rglob("producer-*.json")
    file.write_bytes(content)
    with pytest.raises(PipelineError, match=r"producer-0000000000\.json"):
        identity(tmp_path, 1, new_id=2)


def test_what_is_no_file_of_ours_is_not_read(tmp_path: Path) -> None:
    directory = tmp_path / "barnabas-sink" / "00003"
    directory.mkdir(parents=True)
    (directory / ".producer-0000000000.json.a1b2").write_text("half")
    (directory / "notes.txt").write_text("hello")
    assert identity(tmp_path, 4, new_id=8) == (8, 0)


@pytest.mark.parametrize(("first", "second"), [("one", "two"), ("one", None), (None, "two")])
def test_the_files_of_one_query_are_not_anothers(tmp_path: Path, first: str | None, second: str | None) -> None:
    TaskIdentity(str(tmp_path), 0, 0, first).keep_producer_id(7, "here")
    assert TaskIdentity(str(tmp_path), 0, 0, first).producer().producer_id == 7
    with pytest.raises(PipelineError, match=r"its barnabas-sink belongs to .* this is .*give each its own checkpoint"):
        TaskIdentity(str(tmp_path), 0, 0, second).producer()
