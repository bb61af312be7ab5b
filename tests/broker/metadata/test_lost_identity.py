"""Directories that hold data and do not say whose: meta.properties lost, damaged or cut, and partition.metadata."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.broker.metadata.directories.examine import examine
from barnabas.broker.metadata.directories.meta_properties import read_meta_properties
from barnabas.broker.metadata.directories.report import BARNABAS, BARNABAS_READ_ONLY
from barnabas.broker.metadata.errors import MetadataError
from barnabas.protocol.messages.topics.topics import NewTopic
from tests.support.storage.metadata_store import open_store, opened, tree

NODE = {"node_id": "7"}


def write_node(*directories: Path) -> None:
    with opened(*directories, **NODE) as store:
        store.create(NewTopic(name="orders", partitions=4))


def deleted(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def garbage(path: Path) -> None:
    path.write_bytes(b"\x01\x02garbage")


def zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def cut_in_the_cluster_id(path: Path) -> None:
    path.write_bytes(path.read_bytes().partition(b"cluster.id=")[0] + b"cluster.id=tPyPotqPSmus")


def without_the_directory_id(path: Path) -> None:
    path.write_bytes(path.read_bytes().partition(b"directory.id=")[0])


FAULTS = [deleted, empty, garbage, zeros, cut_in_the_cluster_id]


def refusal(*directories: Path) -> str:
    """Return the sentence with which a start is refused; check that it changes nothing and is of one line."""
    before = [tree(directory) for directory in directories]
    with pytest.raises(MetadataError) as refused:
        open_store(*directories)
    assert [tree(directory) for directory in directories] == before
    report = examine(directories)
    assert [problem.code for problem in report.stopping(BARNABAS)] == ["identity"]
    assert report.stopping(BARNABAS_READ_ONLY) == ()
    sentence = str(refused.value)
    assert "\n" not in sentence
    return sentence


def follow(sentence: str) -> None:
    """Do what the refusal says."""
    command = re.search(r"printf .*", sentence)
    assert command is not None, sentence
    subprocess.run(["sh", "-c", command[0]], check=True)


@pytest.mark.parametrize("spoil", FAULTS)
def test_a_lost_identity_of_the_only_directory_is_refused_until_the_operator_writes_one(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    write_node(tmp_path)
    before = read_meta_properties(tmp_path)
    spoil(tmp_path / "meta.properties")
    sentence = refusal(tmp_path)
    assert "if nobody knows it, with a new one as here" in sentence
    follow(sentence)
    after = read_meta_properties(tmp_path)
    assert before is not None
    assert after is not None
    assert (after.node_id, after.directory_id) == (7, before.directory_id)
    with opened(tmp_path) as store:
        assert (store.store.node_id, store.store.cluster_id) == (7, after.cluster_id)


@pytest.mark.parametrize("spoil", [*FAULTS, without_the_directory_id])
@pytest.mark.parametrize("number", [0, 1])
def test_the_other_directories_and_the_metadata_log_offer_the_lost_identity(
    tmp_path: Path, spoil: Callable[[Path], None], number: int
) -> None:
    directories = (tmp_path / "one", tmp_path / "other's")
    write_node(*directories)
    before = [read_meta_properties(directory) for directory in directories]
    spoil(directories[number] / "meta.properties")
    sentence = refusal(*directories)
    if spoil is without_the_directory_id:
        line = re.search(r"add the line (directory\.id=\S+)", sentence)
        assert line is not None
        with (directories[number] / "meta.properties").open("a") as file:
            file.write(f"{line[1]}\n")
    else:
        assert "nobody knows" not in sentence
        follow(sentence)
    assert [read_meta_properties(directory) for directory in directories] == before
    with opened(*directories) as store:
        assert len(store.log_manager.logs()) == 4


def test_a_new_disk_needs_no_identity_and_a_file_system_may_have_made_its_directory(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    write_node(one)
    (other / "lost+found").mkdir(parents=True)
    with opened(one, other) as store:
        assert store.store.warnings == ()
    assert read_meta_properties(other) is not None


def test_a_new_directory_with_files_of_somebody_else_is_used_with_a_warning(tmp_path: Path) -> None:
    for name in ("important.txt", "later.txt", ".profile", "bootstrap.checkpoint.tmp"):
        (tmp_path / name).write_text("mine")
    with opened(tmp_path) as store:
        (warning,) = store.store.warnings
        assert warning.startswith(f"{tmp_path} becomes a log directory, and holds other files, important.txt among")
    assert (tmp_path / "important.txt").read_text() == "mine"
    with opened(tmp_path) as store:
        assert store.store.warnings == ()


@pytest.mark.parametrize("keep", [0, 20, 42])
@pytest.mark.parametrize("filled", [False, True])
@pytest.mark.parametrize("where", ["orders-2", "__cluster_metadata-0"])
def test_a_topic_id_that_was_cut_off_is_written_again(
    tmp_path: Path, keep: int, filled: bool, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    write_node(tmp_path)
    path = tmp_path / where / "partition.metadata"
    content = path.read_bytes()
    path.write_bytes(content[:keep] + bytes(len(content) - keep if filled else 0))
    with opened(tmp_path) as store:
        assert len(store.log_manager.logs()) == 4
    assert path.read_bytes() == content
    assert f"{path} was cut off: it is written again" in caplog.text


def test_a_damaged_topic_id_that_is_not_cut_off_is_refused(tmp_path: Path) -> None:
    write_node(tmp_path)
    path = tmp_path / "orders-2" / "partition.metadata"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(MetadataError, match="remove it: the metadata log has the topic id"):
        open_store(tmp_path)
