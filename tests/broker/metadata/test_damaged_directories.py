"""Randomly damaged metadata directories are either refused untouched or opened without loss of acknowledged state.

Damages come from seeds. To try further seeds, and directories of other brokers (each with one or more log directories
in it), by hand:

    BARNABAS_DAMAGE_SEEDS=0:20000 BARNABAS_DAMAGE_DIRECTORIES="/tmp/of-kafka-3.9.1 ..." \
        python -m pytest tests/broker/metadata/test_damaged_directories.py -q

A failure message contains its seed; the same seed causes the same damage.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from barnabas.broker.metadata.directories.examine import examine
from barnabas.broker.metadata.directories.report import BARNABAS
from barnabas.broker.metadata.errors import MetadataError
from barnabas.protocol.messages.topics.topics import NewTopic, config_rows
from barnabas.protocol.metadata.records import TOPIC_RESOURCE, ConfigRecord, ProducerIdsRecord, UnknownRecord
from tests.support.storage.acknowledged import States, holding, states_of
from tests.support.storage.damage import Damage, damage
from tests.support.storage.metadata_store import open_store, opened, release, tree
from tests.support.storage.security_records import acl_record, quota_record, scram_record

GIVEN_SEEDS = os.environ.get("BARNABAS_DAMAGE_SEEDS")
FEW = 10
UNSERVED = UnknownRecord(99, 0, b"of the future")


def log_dirs(root: Path) -> list[Path]:
    """Return the log directories below `root`; the one with the metadata log first, as Kafka has it."""
    found = sorted(path for path in root.iterdir() if path.is_dir() and path.name.startswith("disk"))
    return sorted(found, key=lambda path: not (path / "__cluster_metadata-0").exists())


def write_some(root: Path, disks: int, snapshots: str) -> None:
    """Write every kind of record that Barnabas writes, and a carried one.

    `snapshots` is "none", "one", or "trimmed" for two snapshots with the log trimmed in between.
    """
    directories = [root / f"disk-{number}" for number in range(disks)]
    with opened(*directories) as store:
        store.create(
            NewTopic(name="orders", partitions=3),
            NewTopic(
                name="payments", partitions=1, replication_factor=1, configs=config_rows({"retention.ms": "1000"})
            ),
        )
        store.store.commit([UNSERVED, quota_record(), acl_record(), scram_record(), ProducerIdsRecord(1, 1, 1000)])
        if snapshots != "none":
            store.store._snapshotter.take()
        if snapshots == "trimmed":
            store.store._writer.cut(store.store._log.roll)
        store.create(NewTopic(name="later", partitions=2))
        store.store.commit([ConfigRecord(TOPIC_RESOURCE, "orders", "retention.bytes", "5000")])
        if snapshots == "trimmed":
            store.store._snapshotter.take()
    with opened(*directories, ignore_security="true") as store:
        store.store.commit([ProducerIdsRecord(1, 1, 2000)])
        store.create(NewTopic(name="last", partitions=1))


def as_killed(root: Path) -> None:
    """Remove the clean-shutdown markers, as if the broker had been killed."""
    for marker in root.rglob(".kafka_cleanshutdown"):
        marker.unlink()


def check(root: Path, copy: Path, states: States, seed: int) -> str:
    """Open a copy of `root` after one damage; return "refused" or "opened"."""
    shutil.copytree(root, copy)
    done: Damage | None = None
    try:
        names = [path.name for path in log_dirs(root)]
        done = damage(copy, seed)
        return _opens_whole_or_not_at_all(copy, [copy / name for name in names], states)
    except BaseException as error:
        error.add_note(f"seed {seed} on {root}: {done}")
        raise
    finally:
        shutil.rmtree(copy)


def _opens_whole_or_not_at_all(root: Path, directories: list[Path], states: States) -> str:
    states = states._replace(segment=directories[0] / states.segment.relative_to(states.segment.parents[1]))
    before = tree(root)
    try:
        problems = examine(directories, ignore_security=True).stopping(BARNABAS)
        unlisted = ""
    except OSError as error:
        problems, unlisted = (), str(error)
    assert tree(root) == before, "an examination changed something"
    allowed = states.allowed()
    if problems or unlisted:
        with pytest.raises(MetadataError) as refused:
            open_store(*directories, ignore_security="true")
        assert "\n" not in str(refused.value)
        assert tree(root) == before, f"a refused start changed something: {refused.value}"
        return "refused"
    store = open_store(*directories, ignore_security="true")
    try:
        assert holding(store.store.image) in allowed, "something acknowledged is lost"
    except BaseException:
        release(store.log_manager)
        raise
    store.close()
    with opened(*directories, ignore_security="true") as again:
        assert holding(again.store.image) in allowed, "something acknowledged is lost by the second start"
    return "opened"


KINDS = [
    (disks, snapshots, killed)
    for disks in (1, 2)
    for snapshots in ("none", "one", "trimmed")
    for killed in (False, True)
]


@pytest.mark.parametrize(("number", "disks", "snapshots", "killed"), [(at, *kind) for at, kind in enumerate(KINDS)])
def test_a_damaged_directory_is_refused_untouched_or_opened_without_loss(
    tmp_path: Path, number: int, disks: int, snapshots: str, killed: bool
) -> None:
    root = tmp_path / "whole"
    write_some(root, disks, snapshots)
    if killed:
        as_killed(root)
    search(root, tmp_path, range(number * FEW, (number + 1) * FEW))


@pytest.mark.parametrize("root", os.environ.get("BARNABAS_DAMAGE_DIRECTORIES", "").split())
def test_a_damaged_given_directory_is_refused_untouched_or_opened_without_loss(tmp_path: Path, root: str) -> None:
    search(Path(root), tmp_path, range(FEW))


def search(root: Path, scratch: Path, seeds: Iterable[int]) -> None:
    if GIVEN_SEEDS is not None:
        first, _, last = GIVEN_SEEDS.partition(":")
        seeds = range(int(first), int(last))
    states = states_of(log_dirs(root)[0])
    outcomes = [check(root, scratch / "damaged", states, seed) for seed in seeds]
    assert set(outcomes) == {"refused", "opened"}
