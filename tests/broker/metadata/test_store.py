"""Opening data directories: files that the first start writes, later starts, and directories refused untouched."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from barnabas.broker.metadata.directories import reconcile
from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.log.batches import encode_change
from barnabas.broker.metadata.placement import Placement
from barnabas.broker.metadata.topics import plan_create_topics, plan_delete_topics
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.topics.topics import NewTopic, TopicReference, config_rows
from barnabas.protocol.metadata.control import LeaderChange, Voter
from barnabas.protocol.metadata.levels import METADATA_VERSION
from barnabas.protocol.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    TopicRecord,
    UnknownRecord,
)
from barnabas.protocol.topic_name import OFFSETS_TOPIC
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.uuids import uuid_text
from tests.support.storage.metadata_store import SEGMENT, append, open_store, opened, records_of, tree
from tests.support.storage.security_records import scram_record


def test_a_first_start_writes_what_kafka_needs(tmp_path: Path) -> None:
    with opened(tmp_path) as first:
        assert first.store.node_id == 1
        assert first.store.image.level == 19
    names = set(tree(tmp_path))
    assert {"meta.properties", "bootstrap.checkpoint", SEGMENT, "__cluster_metadata-0/partition.metadata"} <= names
    metadata = (tmp_path / "__cluster_metadata-0/partition.metadata").read_text()
    assert metadata == "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    assert (tmp_path / "__cluster_metadata-0/leader-epoch-checkpoint").read_text() == "0\n1\n1 0\n"
    us = (Voter(1),)
    assert records_of(tmp_path) == [LeaderChange(1, us, us), FeatureLevelRecord(METADATA_VERSION, 19)]


def test_a_clean_restart_writes_nothing_and_restores_everything(tmp_path: Path) -> None:
    with opened(tmp_path) as first:
        (result,) = first.create(
            NewTopic(name="orders", partitions=2, replication_factor=1, configs=config_rows({"retention.ms": "-1"}))
        )
        before = first.store.image
    files = tree(tmp_path / "__cluster_metadata-0")
    with opened(tmp_path) as second:
        assert second.store.image == before
        assert second.store.cluster_id == first.store.cluster_id
        assert second.store.directory_ids == first.store.directory_ids
        assert second.store.image.topics["orders"].topic_id == result.topic_id
    assert tree(tmp_path / "__cluster_metadata-0")[Path(SEGMENT).name] == files[Path(SEGMENT).name]


def test_a_restart_is_clean_with_the_metadata_log_outside_of_log_dirs_too(tmp_path: Path) -> None:
    meta, data = tmp_path / "meta", tmp_path / "data"
    with opened(data, metadata_log_dir=str(meta)) as first:
        first.create(NewTopic(name="orders", partitions=1))
    with opened(data, metadata_log_dir=str(meta)):
        pass  # the partition's directory comes from the metadata
    before = records_of(meta)
    with opened(data, metadata_log_dir=str(meta)) as again:
        assert again.log_manager.get(TopicPartition("orders", 0)) is not None
    assert records_of(meta) == before
    (data / ".kafka_cleanshutdown").unlink()
    with opened(data, metadata_log_dir=str(meta)) as crashed:
        state = crashed.store.image.partition("orders", 0)
        assert state is not None
        assert state.leader_epoch == 1


def test_after_a_crash_every_partition_gets_the_next_leader_epoch(tmp_path: Path) -> None:
    first = open_store(tmp_path / "first")
    first.create(NewTopic(name="orders", partitions=2))
    left = first.crash(tmp_path / "left")
    with opened(left) as second:
        states = second.store.image.topics["orders"].partitions.values()
        assert [(state.leader, state.leader_epoch) for state in states] == [(1, 1), (1, 1)]
    assert (left / "__cluster_metadata-0/leader-epoch-checkpoint").read_text() == "0\n2\n1 0\n2 5\n"


def test_a_torn_metadata_log_opens_without_the_torn_part(tmp_path: Path) -> None:
    first = open_store(tmp_path / "first")
    first.create(NewTopic(name="orders", partitions=1))
    whole = (tmp_path / "first" / SEGMENT).stat().st_size
    first.create(NewTopic(name="lost", partitions=1))
    left = first.crash(tmp_path / "left")
    os.truncate(left / SEGMENT, whole + 30)
    with opened(left) as second:
        assert list(second.store.image.topics) == ["orders"]
        assert second.create(NewTopic(name="lost", partitions=1))[0].error is ErrorCode.NONE
    with opened(left) as third:
        assert sorted(third.store.image.topics) == ["lost", "orders"]


def test_an_open_transaction_is_aborted_before_anything_of_ours(tmp_path: Path) -> None:
    with opened(tmp_path):
        pass
    append(tmp_path, BeginTransactionRecord("half"), TopicRecord("half", bytes([1] * 16)))
    with opened(tmp_path) as second:
        second.create(NewTopic(name="orders", partitions=1))
        assert list(second.store.image.topics) == ["orders"]
    assert AbortTransactionRecord("opened by Barnabas") in records_of(tmp_path)
    with opened(tmp_path) as third:
        assert list(third.store.image.topics) == ["orders"]


def test_after_kafka_led_our_epoch_is_above_its_own(tmp_path: Path) -> None:
    with opened(tmp_path) as first:
        first.create(NewTopic(name="orders", partitions=1))
    quorum_state = '{"leaderId":1,"leaderEpoch":7,"votedId":-1,"data_version":1}'
    (tmp_path / "__cluster_metadata-0/quorum-state").write_text(quorum_state)
    for _ in range(2):
        with opened(tmp_path) as later:
            state = later.store.image.partition("orders", 0)
            assert state is not None
            assert state.leader_epoch == 1
        epochs = (tmp_path / "__cluster_metadata-0/leader-epoch-checkpoint").read_text().split("\n")[2:-1]
        assert [epoch.split()[0] for epoch in epochs] == ["1", "8"]


def test_a_formatted_directory_begins_with_its_bootstrap_records(tmp_path: Path) -> None:
    kept: list[MetadataRecord] = [FeatureLevelRecord(METADATA_VERSION, 21), scram_record()]
    data, _ = encode_change(kept, level=21, base_offset=0, leader_epoch=0, timestamp_ms=1)
    (tmp_path / "bootstrap.checkpoint").write_bytes(data)
    with opened(tmp_path, ignore_security="true") as first:
        assert first.store.image.level == 21
        assert list(first.store.image.security.scram) == [("alice", 1)]
    assert records_of(tmp_path)[1:] == kept
    assert (tmp_path / "bootstrap.checkpoint").read_bytes() == data


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        ([FeatureLevelRecord(METADATA_VERSION, 31)], "metadata.version 31"),
        ([UnknownRecord(3, 9, bytes(40))], "written by a newer Kafka"),
    ],
)
def test_a_log_that_is_too_new_is_refused_and_nothing_changes(
    tmp_path: Path, records: list[MetadataRecord], sentence: str
) -> None:
    append(tmp_path, *records)
    before = tree(tmp_path)
    with pytest.raises(MetadataError, match=sentence):
        open_store(tmp_path)
    assert tree(tmp_path) == before


def test_another_nodes_directory_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    with opened(tmp_path, node_id="4"):
        pass
    before = tree(tmp_path)
    with pytest.raises(MetadataError, match=r"node\.id is 5, but .* belongs to node 4"):
        open_store(tmp_path, node_id="5")
    assert tree(tmp_path) == before
    with opened(tmp_path) as adopted:
        assert adopted.store.node_id == 4


def test_two_directories_of_two_clusters_are_refused(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for directory in (one, other):
        with opened(directory):
            pass
    before = tree(tmp_path)
    with pytest.raises(MetadataError, match="two clusters"):
        open_store(one, other)
    assert tree(tmp_path) == before


def test_a_metadata_log_in_another_directory_is_named(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    with opened(old):
        pass
    new.mkdir()
    with pytest.raises(MetadataError, match=f"set metadata.log.dir={old}"):
        open_store(new, old)
    with opened(new, old, metadata_log_dir=str(old)) as found:
        assert len(found.store.directory_ids) == 2


def test_a_second_log_directory_takes_new_partitions(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    with opened(old) as first:
        first.create(NewTopic(name="a", partitions=2))
    with opened(old, new) as second:
        second.create(NewTopic(name="b", partitions=2))
    assert sorted(path.name for path in new.iterdir() if path.is_dir()) == ["b-0", "b-1"]
    with opened(old, new) as third:
        assert len(third.log_manager.logs()) == 4


def test_a_missing_partition_directory_is_created_again(tmp_path: Path) -> None:
    with opened(tmp_path) as first:
        (result,) = first.create(NewTopic(name="orders", partitions=2))
    for path in (tmp_path / "orders-1").iterdir():
        path.unlink()
    (tmp_path / "orders-1").rmdir()
    with opened(tmp_path) as second:
        assert second.log_manager.get(TopicPartition("orders", 1)) is not None
    text = (tmp_path / "orders-1/partition.metadata").read_text()
    assert text == f"version: 0\ntopic_id: {uuid_text(result.topic_id)}"


@pytest.mark.parametrize(
    ("topic", "level", "count"),
    [("orders", "WARNING", "count=2 partitions=1,3"), ("__transaction_state", "INFO", "count=2")],
)
def test_missing_partition_directories_of_a_topic_are_logged_in_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, topic: str, level: str, count: str
) -> None:
    with opened(tmp_path) as first:
        first.create(NewTopic(name=topic, partitions=4))
    for number in (3, 1):
        shutil.rmtree(tmp_path / f"{topic}-{number}")
    caplog.set_level("INFO")
    with opened(tmp_path):
        pass
    lines = [(each.levelname, each.getMessage()) for each in caplog.records if "were missing" in each.getMessage()]
    assert lines == [(level, f"logs of {topic} were missing, created empty ones: {count}")]


def test_logs_that_cannot_be_created_are_logged_in_one_line_per_topic(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as first:
        first.create(NewTopic(name="orders", partitions=3), NewTopic(name="bills", partitions=1))
    for name in ("orders-0", "orders-2", "bills-0"):
        shutil.rmtree(tmp_path / name)

    def refuse(*arguments: object, **options: object) -> None:
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "no space left")

    monkeypatch.setattr(reconcile, "create_log", refuse)
    with opened(tmp_path):
        pass
    lines = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert sorted(line.partition(" are missing")[0] for line in lines) == ["logs of bills", "logs of orders"]
    assert [line.rpartition("not served: ")[2] for line in sorted(lines)] == [
        "count=1 partitions=0: no space left",
        "count=2 partitions=0,2: no space left",
    ]


def test_a_partition_unknown_to_the_metadata_is_kept_as_stray(tmp_path: Path) -> None:
    with opened(tmp_path) as first:
        first.create(NewTopic(name="known", partitions=1), NewTopic(name="unknown", partitions=1))
        first.store.change(
            lambda image: plan_delete_topics(image, [TopicReference(name="unknown")], config=first.config)
        )
    with opened(tmp_path) as second:
        assert [str(log.topic_partition) for log in second.log_manager.logs()] == ["known-0"]
    strays = [path for path in tmp_path.iterdir() if path.name.endswith("-stray")]
    assert [path.name.split(".")[0] for path in strays] == ["unknown-0"]
    assert (strays[0] / "partition.metadata").exists()


def test_a_partition_of_an_older_topic_of_the_same_name_is_kept_as_stray(tmp_path: Path) -> None:
    with opened(tmp_path) as first:
        first.create(NewTopic(name="orders", partitions=1))
        first.store.change(
            lambda image: plan_delete_topics(image, [TopicReference(name="orders")], config=first.config)
        )
        (result,) = first.store.change(
            lambda image: plan_create_topics(
                image,
                [NewTopic(name="orders", partitions=1)],
                config=first.config,
                placement=Placement(1, list(first.store.directory_ids.values()), image),
            )
        )
    with opened(tmp_path) as second:
        log = second.log_manager.get(TopicPartition("orders", 0))
        assert log is not None
        assert log.topic_id == result.topic_id
    assert len([path for path in tmp_path.iterdir() if path.name.endswith("-stray")]) == 1


def test_the_topics_of_a_directory_written_with_zookeeper_are_adopted_with_their_ids(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(tmp_path) as first:
        first.create(NewTopic(name="orders", partitions=2))
        first.create(NewTopic(name=OFFSETS_TOPIC, partitions=1))
        configs = first.store.image.topic_configs(OFFSETS_TOPIC)
        topic_id = first.store.image.topics["orders"].topic_id
    for name in (*tree(tmp_path / "__cluster_metadata-0"),):
        (tmp_path / "__cluster_metadata-0" / name).unlink()
    (tmp_path / "__cluster_metadata-0").rmdir()
    (tmp_path / "bootstrap.checkpoint").unlink()
    (tmp_path / "orders-1/partition.metadata").unlink()
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=3\ncluster.id=old-cluster\n")
    with opened(tmp_path, adopt_topics="true") as second:
        assert (second.store.node_id, second.store.cluster_id) == (3, "old-cluster")
        assert f"topic {OFFSETS_TOPIC} had no configs of its own" in caplog.text
        logs = sorted(str(log.topic_partition) for log in second.log_manager.logs())
        assert logs == [f"{OFFSETS_TOPIC}-0", "orders-0", "orders-1"]
    assert (tmp_path / "orders-1/partition.metadata").exists()
    with opened(tmp_path) as third:
        assert third.store.image.topic_configs(OFFSETS_TOPIC) == configs
        assert configs["cleanup.policy"] == "compact"
        assert third.store.image.topics["orders"].topic_id == topic_id
        assert len(third.store.image.topics["orders"].partitions) == 2


def test_records_without_their_metadata_log_are_refused_not_set_aside(tmp_path: Path) -> None:
    with opened(tmp_path) as first:
        first.create(NewTopic(name="orders", partitions=1))
    (tmp_path / "__cluster_metadata-0").rename(tmp_path.parent / "moved-away")
    before = tree(tmp_path)
    with pytest.raises(MetadataError, match="restore the metadata log"):
        open_store(tmp_path)
    assert tree(tmp_path) == before


def test_the_metadata_log_does_not_take_the_topics_segment_size(tmp_path: Path) -> None:
    with opened(tmp_path, log_segment_bytes="1024", log_index_interval_bytes="1") as small:
        for number in range(20):
            small.create(NewTopic(name=f"topic-{number}", partitions=4))
    assert [path.name for path in (tmp_path / "__cluster_metadata-0").glob("*.log")] == [Path(SEGMENT).name]


def test_stored_configs_without_effect_are_warned_about(tmp_path: Path) -> None:
    with opened(tmp_path) as first:
        first.create(NewTopic(name="orders", partitions=1))
        first.store.commit([ConfigRecord(2, "orders", "retention.ms", "soon")])
    with opened(tmp_path) as second:
        assert "topic orders: retention.ms=soon" in "".join(second.store.warnings)


@pytest.mark.parametrize(("version", "migrating"), [(0, b""), (1, b""), (2, b"\0"), (4, b"\0")])
def test_a_clean_stop_stores_the_broker_epoch_of_kafkas_registration(
    tmp_path: Path, version: int, migrating: bytes
) -> None:
    def registration(node_id: int, epoch: int) -> UnknownRecord:
        body = node_id.to_bytes(4, "big") + migrating + bytes([8] * 16) + epoch.to_bytes(8, "big") + b"rest"
        return UnknownRecord(0, version, body)

    marker = tmp_path / ".kafka_cleanshutdown"
    with opened(tmp_path):
        pass
    assert marker.read_text() == '{"version":0,"brokerEpoch":-1}'
    append(tmp_path, registration(1, 7), registration(2, 90), registration(1, 42))
    with opened(tmp_path):
        pass
    assert marker.read_text() == '{"version":0,"brokerEpoch":42}'
    append(tmp_path, UnknownRecord(0, version, (1).to_bytes(4, "big")))
    with opened(tmp_path):
        pass
    assert marker.read_text() == '{"version":0,"brokerEpoch":-1}'
