"""Examination of undamaged directories."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.broker.metadata.directories.examine import examine
from barnabas.broker.metadata.directories.report import ALL_KAFKA, BARNABAS, WRITERS, LastWriter, kafka
from barnabas.protocol.messages.topics.topics import NewTopic, config_rows
from barnabas.protocol.metadata.levels import METADATA_VERSION
from barnabas.protocol.metadata.records import FeatureLevelRecord
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.uuids import parse_uuid, uuid_text
from tests.support.storage.metadata_store import append, opened


def test_problems_for_kafka_name_its_versions(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.create(
            NewTopic(name="small", partitions=1, replication_factor=1, configs=config_rows({"segment.bytes": "65536"}))
        )
    append(tmp_path, FeatureLevelRecord(METADATA_VERSION, 21), FeatureLevelRecord("group.version", 1))
    report = examine([tmp_path])
    assert report.last_writer is LastWriter.BARNABAS
    assert report.stopping(BARNABAS) == ()
    versions = ("3.7", "3.9", "4.0.0", "4.1.1", "4.3.0")
    stopped = {version: [each.code for each in report.stopping(kafka(version))] for version in versions}
    assert stopped == {
        "3.7": ["feature-level", "feature-level"],
        "3.9": ["feature-level"],
        "4.0.0": [],
        "4.1.1": ["small-segments"],
        "4.3.0": ["small-segments"],
    }


def test_an_unknown_feature_level_stops_every_version(tmp_path: Path) -> None:
    with opened(tmp_path):
        pass
    append(tmp_path, FeatureLevelRecord("transaction.version", 3))
    (problem,) = examine([tmp_path]).problems
    assert problem.stops == ALL_KAFKA


@pytest.mark.parametrize(
    ("level", "readers"), [(31, set()), (6, {kafka("3.7"), kafka("3.8"), kafka("3.9")})], ids=["newer", "older"]
)
def test_an_unsupported_level_stops_older_kafkas_only_if_it_is_newer(
    tmp_path: Path, level: int, readers: set[str]
) -> None:
    with opened(tmp_path):
        pass
    append(tmp_path, FeatureLevelRecord(METADATA_VERSION, level))
    report = examine([tmp_path])
    (problem,) = report.problems
    assert WRITERS - problem.stops == readers
    assert report.last_writer is LastWriter.UNKNOWN


def test_a_new_directory_has_no_problems_and_is_not_created(tmp_path: Path) -> None:
    report = examine([tmp_path / "new"])
    assert (report.problems, report.is_new, report.last_writer, report.cluster_id) == (
        (),
        True,
        LastWriter.NOBODY,
        None,
    )
    assert not (tmp_path / "new").exists()


def test_a_report_names_the_node_and_its_partitions(tmp_path: Path) -> None:
    with opened(tmp_path, node_id="4") as store:
        store.create(NewTopic(name="orders", partitions=2))
    report = examine([tmp_path])
    assert (report.node_id, report.was_clean) == (4, True)
    assert sorted(report.directories[0].partitions) == [TopicPartition("orders", 0), TopicPartition("orders", 1)]
    assert report.identity is not None
    assert parse_uuid(uuid_text(report.identity.directory_ids[tmp_path])) == report.identity.directory_ids[tmp_path]
    (tmp_path / ".kafka_cleanshutdown").unlink()
    assert not examine([tmp_path]).was_clean
