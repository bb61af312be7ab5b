"""meta.properties: adoption of the node id, consistency of the directories, and old versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.broker.metadata.directories.meta_properties import (
    NodeIdentity,
    read_meta_properties,
    settle_identity,
    write_identity,
    write_meta_properties,
)
from barnabas.broker.metadata.errors import MetadataError
from barnabas.protocol.uuids import parse_uuid, uuid_text

CLUSTER = "4U-bO_IpSqiQIRYAfhkjSA"
DIRECTORY = parse_uuid("AAECAwQFBgcICQoLDA0ODw")
KAFKA_FILE = """#
#Sat Nov 21 03:14:06 UTC 2026
cluster.id=4U-bO_IpSqiQIRYAfhkjSA
directory.id=AAECAwQFBgcICQoLDA0ODw
node.id=7
version=1
"""


def directories(tmp_path: Path, *contents: str | None) -> list[Path]:
    paths = [tmp_path / f"d{number}" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.mkdir()
        if content is not None:
            (path / "meta.properties").write_text(content)
    return paths


def settled(paths: list[Path], node_id: int | None = None) -> tuple[NodeIdentity, list[Path]]:
    return settle_identity({path: read_meta_properties(path) for path in paths}, node_id)


def test_a_file_that_kafka_wrote_is_read(tmp_path: Path) -> None:
    (directory,) = directories(tmp_path, KAFKA_FILE)
    found = read_meta_properties(directory)
    assert found is not None
    assert (found.version, found.node_id, found.cluster_id, found.directory_id) == (1, 7, CLUSTER, DIRECTORY)


def test_a_written_file_is_read_back_even_with_characters_that_java_escapes(tmp_path: Path) -> None:
    write_meta_properties(tmp_path, node_id=3, cluster_id="my=cluster:1\\#", directory_id=DIRECTORY)
    found = read_meta_properties(tmp_path)
    assert found is not None
    assert (found.version, found.node_id, found.cluster_id, found.directory_id) == (1, 3, "my=cluster:1\\#", DIRECTORY)


def test_an_empty_directory_becomes_node_1_of_a_new_cluster(tmp_path: Path) -> None:
    paths = directories(tmp_path, None)
    identity, outdated = settled(paths)
    assert identity.node_id == 1
    assert len(parse_uuid(identity.cluster_id)) == 16
    assert outdated == paths
    assert not list(paths[0].iterdir())
    write_identity(identity, outdated)
    assert settled(paths) == (identity, [])


def test_an_unset_node_id_adopts_that_of_the_directory(tmp_path: Path) -> None:
    identity, outdated = settled(directories(tmp_path, KAFKA_FILE))
    assert (identity.node_id, identity.cluster_id, outdated) == (7, CLUSTER, [])


def test_the_node_id_of_another_node_is_refused_with_both_numbers(tmp_path: Path) -> None:
    with pytest.raises(MetadataError, match=r"node\.id is 2, but .*meta\.properties belongs to node 7"):
        settled(directories(tmp_path, KAFKA_FILE), 2)


def test_a_second_empty_directory_joins_the_node_and_gets_an_id_of_its_own(tmp_path: Path) -> None:
    paths = directories(tmp_path, KAFKA_FILE, None)
    identity, outdated = settled(paths)
    assert outdated == [paths[1]]
    assert identity.directory_ids[paths[0]] == DIRECTORY
    assert identity.directory_ids[paths[1]] != DIRECTORY


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("node.id=7", "node.id=8", "two nodes"),
        (CLUSTER, "another-cluster", "two clusters"),
        ("version", "version", "same directory.id"),
    ],
)
def test_directories_that_do_not_belong_together_are_refused(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    with pytest.raises(MetadataError, match=sentence):
        settled(directories(tmp_path, KAFKA_FILE, KAFKA_FILE.replace(old, new)))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (KAFKA_FILE.replace("version=1", "version=2"), "has version 2"),
        (KAFKA_FILE.replace("node.id=7", "node.id=x"), "node.id='x', which is not a number"),
        (KAFKA_FILE.replace("node.id=7\n", ""), "has no node.id"),
        (KAFKA_FILE.replace("cluster.id=4U-bO_IpSqiQIRYAfhkjSA\n", ""), "has no cluster.id"),
        (KAFKA_FILE.replace("AAECAwQFBgcICQoLDA0ODw", "AAECAwQF"), "invalid directory.id"),
        ("", "has no version: it is empty or damaged"),
        ("\x01\x02garbage", "has no version"),
        ("\0" * 90, "has no version"),
        ("version=1\nnode.id=7\ncluster.id=4U-bO_IpSq", "is cut off: its cluster.id '4U-bO_IpSq' has not 22"),
        ("version=1\nnode.id=7\ncluster.id=4U-bO_IpSq" + "\0" * 12, "is cut off"),
        (KAFKA_FILE.replace("AAECAwQFBgcICQoLDA0ODw", uuid_text(bytes(15) + b"\x02")), "reserved directory.id"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_by_name(tmp_path: Path, content: str, sentence: str) -> None:
    with pytest.raises(MetadataError, match=sentence):
        settled(directories(tmp_path, content))


def test_a_cluster_id_of_another_form_is_accepted_in_a_whole_file(tmp_path: Path) -> None:
    (directory,) = directories(tmp_path, "version=1\nnode.id=7\ncluster.id=orders-in-production\n")
    assert settled([directory])[0].cluster_id == "orders-in-production"
    (directory / "meta.properties").write_text(f"version=1\nnode.id=7\ncluster.id={CLUSTER}")
    assert settled([directory])[0].cluster_id == CLUSTER


def test_a_file_written_with_zookeeper_keeps_its_broker_id_and_is_rewritten(tmp_path: Path) -> None:
    paths = directories(tmp_path, f"#\nversion=0\nbroker.id=5\ncluster.id={CLUSTER}\n")
    identity, outdated = settled(paths)
    assert (identity.node_id, identity.cluster_id, identity.zookeeper) == (5, CLUSTER, True)
    assert outdated == paths
    write_identity(identity, outdated)
    assert settled(paths, 5)[1] == []


def test_a_file_of_kafka_before_3_7_gets_a_directory_id(tmp_path: Path) -> None:
    paths = directories(tmp_path, KAFKA_FILE.replace("directory.id=AAECAwQFBgcICQoLDA0ODw\n", ""))
    identity, outdated = settled(paths)
    assert (outdated, identity.zookeeper) == (paths, False)
