"""Damaged, foreign or newer directories are opened with a one-sentence warning, or refused and left unchanged."""

from __future__ import annotations

import gc
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from barnabas.broker.metadata.directories.examine import examine
from barnabas.broker.metadata.directories.meta_properties import write_meta_properties
from barnabas.broker.metadata.directories.report import BARNABAS, BARNABAS_READ_ONLY
from barnabas.broker.metadata.directories.security import EnforcedSecurity
from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.log.batches import encode_change
from barnabas.broker.metadata.log.log_replay import replay_metadata_directory
from barnabas.broker.metadata.log.snapshot_file import RaftState, encode_snapshot
from barnabas.broker.storage.files.partition_metadata_file import write_partition_metadata
from barnabas.commands.main import main
from barnabas.config import BrokerConfig
from barnabas.config.tables.security_properties import STANDARD_AUTHORIZER
from barnabas.protocol.messages.topics.topics import NewTopic
from barnabas.protocol.metadata.levels import METADATA_VERSION
from barnabas.protocol.metadata.partition_state import PartitionState
from barnabas.protocol.metadata.records import (
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    TopicRecord,
    UnknownRecord,
)
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.uuids import random_uuid
from tests.support.daemon import DaemonError, start_daemon
from tests.support.storage.metadata_store import SEGMENT, append, open_store, opened, tree
from tests.support.storage.security_records import acl_record, quota_record, scram_record, token_record

OTHER_ID = bytes([3] * 16)


def write_node(directory: Path, **settings: str) -> None:
    """Write a cleanly stopped directory with one topic."""
    with opened(directory, **settings) as store:
        store.create(NewTopic(name="orders", partitions=2))
    assert (directory / ".kafka_cleanshutdown").exists()


def test_a_metadata_log_torn_at_every_byte_of_its_last_batch_opens(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = tmp_path / "whole"
    with opened(whole) as store:
        store.create(NewTopic(name="orders", partitions=1))
        before = (whole / SEGMENT).stat().st_size
        store.create(NewTopic(name="lost", partitions=1))
    data = (whole / SEGMENT).read_bytes()
    assert len(data) - before > 100
    torn = tmp_path / "torn"
    (torn / SEGMENT).parent.mkdir(parents=True)
    for size in range(before, len(data)):
        (torn / SEGMENT).write_bytes(data[:size])
        caplog.clear()
        assert list(replay_metadata_directory((torn / SEGMENT).parent).image.topics) == ["orders"]
        said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
        assert len(said) == (size > before)
        assert all(f"position={before} bytes={size - before}" in sentence for sentence in said)


def test_a_last_batch_without_its_pages_is_dropped_after_an_unclean_stop(tmp_path: Path) -> None:
    write_node(tmp_path)
    damaged_at_the_end_of_a_clean_stop(tmp_path)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    with opened(tmp_path) as store:
        assert list(store.store.image.topics) == []


def test_a_damaged_segment_may_be_moved_away_if_a_snapshot_covers_it(tmp_path: Path) -> None:
    write_node(tmp_path)
    damaged_behind_a_snapshot(tmp_path)
    for path in (tmp_path / SEGMENT).parent.glob("00000000000000000000.*"):
        path.unlink()
    with opened(tmp_path) as store:
        assert sorted(store.store.image.topics) == ["later", "orders"]


def test_a_log_with_lost_segments_restarts_after_its_snapshot(tmp_path: Path) -> None:
    write_node(tmp_path)
    with opened(tmp_path) as store:
        store.store._snapshotter.take()
        end_offset = store.store.image.end_offset
    for path in (tmp_path / SEGMENT).parent.glob("*.log"):
        path.unlink()
    for count in (1, 2):
        with opened(tmp_path) as store:
            assert len(store.store.image.topics) == count
            assert store.store._log.start_offset == end_offset
            store.create(NewTopic(name=f"later-{count}", partitions=1))


@pytest.mark.parametrize("lost_bytes", [1, 20, 61])
def test_a_start_on_a_torn_metadata_log_cuts_it_and_goes_on(tmp_path: Path, lost_bytes: int) -> None:
    write_node(tmp_path)
    with opened(tmp_path) as store:
        store.create(NewTopic(name="lost", partitions=1))
    os.truncate(tmp_path / SEGMENT, (tmp_path / SEGMENT).stat().st_size - lost_bytes)
    with opened(tmp_path) as store:
        assert list(store.store.image.topics) == ["orders"]
        store.create(NewTopic(name="after", partitions=1))
    with opened(tmp_path) as store:
        assert sorted(store.store.image.topics) == ["after", "orders"]
    assert [path.name.split(".")[0] for path in tmp_path.glob("*-stray")] == ["lost-0"]


def test_a_snapshot_without_footer_is_skipped_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_node(tmp_path)
    image = replay_metadata_directory((tmp_path / SEGMENT).parent).image
    whole = encode_snapshot(image, epoch=1, last_timestamp_ms=1, raft=RaftState())
    path = (tmp_path / SEGMENT).with_name(f"{image.end_offset:020d}-0000000001.checkpoint")
    path.write_bytes(whole[:-70])
    with opened(tmp_path) as store:
        assert list(store.store.image.topics) == ["orders"]
    said = [record.getMessage() for record in caplog.records if "torn snapshot" in record.getMessage()]
    assert len(said) == 1
    assert str(path) in said[0]


def test_lost_records_may_be_given_up_by_removing_the_clean_shutdown_marker(tmp_path: Path) -> None:
    write_node(tmp_path)
    shorter_than_the_clean_stop_left_it(tmp_path)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    with opened(tmp_path) as store:
        assert list(store.store.image.topics) == ["orders"]


def test_a_snapshot_with_misplaced_batches_is_skipped(tmp_path: Path) -> None:
    write_node(tmp_path)
    image = replay_metadata_directory((tmp_path / SEGMENT).parent).image
    whole = encode_snapshot(image, epoch=1, last_timestamp_ms=1, raft=RaftState())
    head = 12 + int.from_bytes(whole[8:12], "big")
    records = head + 12 + int.from_bytes(whole[head + 8 : head + 12], "big")
    path = (tmp_path / SEGMENT).with_name(f"{image.end_offset:020d}-0000000001.checkpoint")
    path.write_bytes(whole[:head] + whole[records:] + whole[head:records])  # the footer before the records
    with opened(tmp_path) as store:
        assert list(store.store.image.topics) == ["orders"]


def test_a_record_of_an_unknown_key_is_kept(tmp_path: Path) -> None:
    write_node(tmp_path)
    strange = UnknownRecord(77, 5, b"of the future")
    append(tmp_path, strange)
    with opened(tmp_path) as store:
        store.create(NewTopic(name="more", partitions=1))
    with opened(tmp_path) as store:
        assert list(store.store.image.carried) == [strange]
        assert sorted(store.store.image.topics) == ["more", "orders"]


def newer_record(directory: Path) -> None:
    append(directory, UnknownRecord(3, 9, bytes(40)))


def newer_level(directory: Path) -> None:
    append(directory, FeatureLevelRecord(METADATA_VERSION, 31))


def newer_snapshot(directory: Path) -> None:
    log = (directory / SEGMENT).parent
    image = replay_metadata_directory(log).image
    data, _ = encode_change([UnknownRecord(2, 4, b"?")], level=19, base_offset=1, leader_epoch=1, timestamp_ms=1)
    whole = encode_snapshot(image, epoch=1, last_timestamp_ms=1, raft=RaftState())
    header = 12 + int.from_bytes(whole[8:12], "big")
    (log / f"{image.end_offset:020d}-0000000001.checkpoint").write_bytes(whole[:header] + data + whole[header:])


def foreign_topic_id(directory: Path) -> None:
    with opened(directory) as store:
        store.create(NewTopic(name="payments", partitions=1))
        payments = store.store.image.topics["payments"].topic_id
    write_partition_metadata(directory / "orders-1", payments)


def damaged_partition_metadata(directory: Path) -> None:
    (directory / "orders-1/partition.metadata").write_text("version: 7\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA")


def foreign_directory(directory: Path) -> None:
    (directory / "backup of march").mkdir()


def damaged_in_the_middle(directory: Path) -> None:
    data = bytearray((directory / SEGMENT).read_bytes())
    data[130] ^= 1
    (directory / SEGMENT).write_bytes(data)


def damaged_behind_a_snapshot(directory: Path) -> None:
    with opened(directory) as store:
        store.store._snapshotter.take()
        store.create(NewTopic(name="later", partitions=1))
    damaged_in_the_middle(directory)


def damaged_at_the_end_of_a_clean_stop(directory: Path) -> None:
    data = bytearray((directory / SEGMENT).read_bytes())
    data[-3] ^= 1
    (directory / SEGMENT).write_bytes(data)


def out_of_its_place(directory: Path) -> None:
    """Change the offset of the second batch, which its CRC does not cover."""
    data = bytearray((directory / SEGMENT).read_bytes())
    second = 12 + int.from_bytes(data[8:12], "big")
    data[second + 7] ^= 8
    (directory / SEGMENT).write_bytes(data)


def torn_before_another_segment(directory: Path) -> None:
    with opened(directory) as store:
        store.store._writer.cut(store.store._log.roll)
        store.create(NewTopic(name="later", partitions=1))
    (directory / ".kafka_cleanshutdown").unlink()
    os.truncate(directory / SEGMENT, (directory / SEGMENT).stat().st_size - 5)


def shorter_than_the_clean_stop_left_it(directory: Path) -> None:
    """Remove whole batches from the end, and leave the first bytes of the next one."""
    whole = (directory / SEGMENT).stat().st_size
    with opened(directory) as store:
        store.create(NewTopic(name="lost", partitions=1), NewTopic(name="too", partitions=1))
        store.create(NewTopic(name="last", partitions=1))
    os.truncate(directory / SEGMENT, whole + 30)


def a_segment_after_a_kill_without_its_log(directory: Path) -> None:
    with opened(directory) as store:
        store.store._snapshotter.take()
        store.store._writer.cut(store.store._log.roll)
        store.create(NewTopic(name="later", partitions=1))
    (directory / ".kafka_cleanshutdown").unlink()
    max((directory / SEGMENT).parent.glob("*.log")).unlink()


def a_directory_in_the_place_of_a_file(directory: Path) -> None:
    (directory / SEGMENT).with_name("leader-epoch-checkpoint").unlink()
    (directory / SEGMENT).with_name("leader-epoch-checkpoint").mkdir()


def damaged_partition_metadata_of_the_metadata_log(directory: Path) -> None:
    (directory / SEGMENT).with_name("partition.metadata").write_text("version: 9\n")


def another_topic_id_of_the_metadata_log(directory: Path) -> None:
    write_partition_metadata((directory / SEGMENT).parent, OTHER_ID)


def the_last_leader_epoch(directory: Path) -> None:
    (directory / SEGMENT).with_name("quorum-state").write_text('{"leaderEpoch":2147483647,"data_version":1}')


def unreadable_properties(directory: Path) -> None:
    (directory / "meta.properties").write_text("version=1\nnode.id=one\ncluster.id=c\n")


def another_brokers_partition(directory: Path) -> None:
    append(
        directory,
        TopicRecord("elsewhere", OTHER_ID),
        PartitionRecord(0, OTHER_ID, PartitionState((1, 2), (1, 2), 2, directories=(bytes(16), bytes(16)))),
    )


def scram_user(directory: Path) -> None:
    append(directory, scram_record())


def one_acl(directory: Path) -> None:
    append(directory, acl_record(), scram_record())


def no_metadata_log(directory: Path) -> None:
    shutil.rmtree(directory / "__cluster_metadata-0")


@pytest.mark.parametrize(
    ("spoil", "code", "sentence"),
    [
        (newer_record, "unsupported-metadata", "written by a newer Kafka: Partition record has version 9"),
        (newer_level, "unsupported-metadata", "metadata.version 31; this program knows 7 to 30"),
        (newer_snapshot, "unsupported-metadata", "written by a newer Kafka: Topic record has version 4"),
        (foreign_topic_id, "foreign-topic-id", r"orders-1 has the topic id \S+, which belongs to topic payments"),
        (damaged_partition_metadata, "damaged-partition-metadata", "partition.metadata has version 7"),
        (foreign_directory, "foreign-directory", "is not named <topic>-<partition>"),
        (damaged_in_the_middle, "damaged-metadata", r"is damaged at position \d+, and whole records follow"),
        (damaged_behind_a_snapshot, "damaged-metadata", "a snapshot covers its records, so that it may be moved"),
        (damaged_at_the_end_of_a_clean_stop, "damaged-metadata", "although the last stop was clean"),
        (out_of_its_place, "damaged-metadata", "a batch has offset 9 and leader epoch 1 after offset 0 and epoch 1"),
        (torn_before_another_segment, "damaged-metadata", "and later segments follow"),
        (
            shorter_than_the_clean_stop_left_it,
            "damaged-metadata",
            r"ends at offset \d+, but the last stop was clean and left it at offset \d+",
        ),
        (a_segment_after_a_kill_without_its_log, "damaged-metadata", "has the index of a segment .* not the segment"),
        (a_directory_in_the_place_of_a_file, "damaged-metadata", "leader-epoch-checkpoint is not a file"),
        (
            damaged_partition_metadata_of_the_metadata_log,
            "damaged-partition-metadata",
            r"partition\.metadata does not consist of .*__cluster_metadata-0",
        ),
        (another_topic_id_of_the_metadata_log, "damaged-partition-metadata", "__cluster_metadata-0 has the topic id"),
        (the_last_leader_epoch, "damaged-metadata", "has the leaderEpoch 2147483647, which no other can follow"),
        (unreadable_properties, "identity", "node.id='one', which is not a number"),
        (another_brokers_partition, "several-brokers", r"elsewhere-0 has replicas \[1, 2\]"),
        (scram_user, "security", "holds 1 SCRAM credential, and no listener authenticates its clients"),
        (one_acl, "security", "holds 1 ACL, and no authorizer enforces them"),
        (no_metadata_log, "metadata-log", "has nothing in __cluster_metadata-0, but .* holds records of topic orders"),
    ],
)
def test_it_is_refused_with_one_sentence_and_nothing_changes(
    tmp_path: Path, spoil: Callable[[Path], None], code: str, sentence: str
) -> None:
    write_node(tmp_path)
    spoil(tmp_path)
    before = tree(tmp_path)
    with pytest.raises(MetadataError, match=sentence) as refused:
        open_store(tmp_path)
    assert str(refused.value).count("\n") == 0
    assert tree(tmp_path) == before
    problems = examine([tmp_path]).stopping(BARNABAS)
    assert [problem.code for problem in problems] == [code]
    assert all(problem.remedy for problem in problems)
    assert tree(tmp_path) == before


def test_two_directories_of_two_clusters_are_refused_and_nothing_changes(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    write_node(one)
    write_meta_properties(other_made(other), node_id=1, cluster_id="another", directory_id=random_uuid())
    before = tree(tmp_path)
    with pytest.raises(MetadataError, match=r"log\.dirs names directories of two clusters"):
        open_store(one, other)
    assert tree(tmp_path) == before
    assert [problem.code for problem in examine([one, other]).problems] == ["identity"]


def other_made(directory: Path) -> Path:
    directory.mkdir()
    return directory


def test_a_partition_in_two_directories_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    with opened(one, other) as store:
        store.create(NewTopic(name="orders", partitions=2))
    shutil.copytree(one / "orders-0", other / "orders-0")
    before = tree(tmp_path)
    with pytest.raises(MetadataError, match="orders-0 is in two log directories"):
        open_store(one, other)
    assert tree(tmp_path) == before


def test_an_unmounted_disk_is_refused_and_may_be_replaced_under_its_id(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    with opened(one, other) as store:
        store.create(NewTopic(name="orders", partitions=4))
    properties = (other / "meta.properties").read_text()
    there = sorted(path.name for path in other.glob("orders-*"))
    other.rename(tmp_path / "not mounted")
    other.mkdir()
    before = tree(tmp_path)
    for given in ([one], [one, other]):
        with pytest.raises(MetadataError, match=r"2 partitions, orders-\d among them, are in a log dir"):
            open_store(*given)
        assert [problem.code for problem in examine(given).stopping(BARNABAS)] == ["missing-directory"]
        assert tree(tmp_path) == before
    (other / "meta.properties").write_text(properties)
    with opened(one, other) as store:
        assert len(store.store.image.topics["orders"].partitions) == 4
        assert sorted(path.name for path in other.glob("orders-*")) == there


def test_a_partition_of_a_recreated_topic_is_not_foreign(tmp_path: Path) -> None:
    write_node(tmp_path)
    write_partition_metadata(tmp_path / "orders-1", random_uuid())
    assert examine([tmp_path]).problems == ()
    with opened(tmp_path) as store:
        assert store.log_manager.get(TopicPartition("orders", 1)) is not None
    assert len(list(tmp_path.glob("orders-1.*-stray"))) == 1


@pytest.mark.parametrize("spoil", [newer_record, foreign_topic_id, scram_user])
def test_serve_refuses_it_with_one_line_and_changes_nothing(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    write_node(tmp_path / "data")
    spoil(tmp_path / "data")
    before = tree(tmp_path / "data")
    with pytest.raises(DaemonError) as refused:
        start_daemon(tmp_path)
    assert "Traceback" not in str(refused.value)
    assert tree(tmp_path / "data") == before


def test_a_refused_start_creates_no_directory_and_removes_no_lock_file(tmp_path: Path) -> None:
    write_node(tmp_path / "kafka", node_id="7")
    (tmp_path / "kafka" / ".lock").touch()  # Kafka leaves its lock file at every stop
    settings = (f"log.dirs={tmp_path}/new/one,{tmp_path}/kafka", "node.id=3", "listeners=127.0.0.1:0")
    words = [word for setting in (*settings, "metrics.listener=") for word in ("--set", setting)]
    refused = CliRunner().invoke(main, ["serve", *words])
    assert refused.exit_code == 1, refused.output
    assert "belongs to node 7" in refused.output
    assert os.listdir(tmp_path) == ["kafka"]
    assert (tmp_path / "kafka" / ".lock").exists()


SASL_SCRAM = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl_enabled_mechanisms": "SCRAM-SHA-512",
}
AUTHORIZER = {"authorizer_class_name": STANDARD_AUTHORIZER}


def test_ignored_security_is_warned_about_once_and_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_node(tmp_path)
    append(tmp_path, quota_record(), scram_record(), acl_record(), token_record())
    with opened(tmp_path, ignore_security="true") as store:
        sentence = "1 ACL and 1 SCRAM credential and 1 delegation token in the metadata log are kept and not enforced"
        assert store.store.warnings == (f"security is ignored: {sentence}",)
        security = store.store.image.security
        assert [len(each) for each in (security.quotas, security.scram, security.acls, security.tokens)] == [1] * 4
    assert len([record for record in caplog.records if "not enforced" in record.getMessage()]) == 1


@pytest.mark.parametrize(
    ("records", "settings", "warnings"),
    [
        ([quota_record()], {}, []),
        ([scram_record()], SASL_SCRAM, []),
        ([scram_record()], AUTHORIZER, []),
        ([acl_record()], AUTHORIZER, []),
        (
            [scram_record()],
            SASL_SCRAM | {"listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"},
            ["PLAINTEXT://127.0.0.1:0 accepts clients without authentication, although the metadata log has users"],
        ),
        (
            [token_record()],
            SASL_SCRAM,
            [
                "1 delegation token in the metadata log cannot log in: that needs delegation.token.secret.key and a "
                "SCRAM mechanism"
            ],
        ),
        ([token_record()], SASL_SCRAM | {"delegation_token_secret_key": "key"}, []),
    ],
)
def test_a_configuration_that_enforces_the_security_opens_the_directory(
    tmp_path: Path, records: list[MetadataRecord], settings: dict[str, str], warnings: list[str]
) -> None:
    write_node(tmp_path)
    append(tmp_path, *records)
    with opened(tmp_path, **settings) as store:
        assert list(store.store.warnings) == warnings


def test_acls_are_refused_by_authentication_without_an_authorizer(tmp_path: Path) -> None:
    write_node(tmp_path)
    append(tmp_path, acl_record())
    with pytest.raises(MetadataError, match=f"set authorizer.class.name={STANDARD_AUTHORIZER}, or give --ignore"):
        open_store(tmp_path, **SASL_SCRAM)


@pytest.mark.parametrize("settings", [AUTHORIZER, {"ignore_security": "true"}, {}])
def test_security_of_an_unknown_version_is_never_served(tmp_path: Path, settings: dict[str, str]) -> None:
    write_node(tmp_path)
    append(tmp_path, UnknownRecord(18, 1, b"of the future"))
    with pytest.raises(MetadataError, match="AccessControlEntry record has version 1, the newest known is 0"):
        open_store(tmp_path, **settings)


def test_a_reader_of_unknown_security_must_ignore_it(tmp_path: Path) -> None:
    write_node(tmp_path)
    append(tmp_path, UnknownRecord(18, 1, b"of the future"))
    codes = [problem.code for problem in examine([tmp_path]).stopping(BARNABAS_READ_ONLY)]
    assert codes == ["security"]
    assert examine([tmp_path], ignore_security=True).stopping(BARNABAS_READ_ONLY) == ()
    assert examine([tmp_path], enforced=EnforcedSecurity(authorizer=True)).stopping(BARNABAS_READ_ONLY) == ()


@pytest.mark.parametrize("name", ["ignore.security", "adopt.topics"])
def test_serve_has_a_flag_for_what_it_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    taken: list[BrokerConfig] = []

    def run(config: BrokerConfig, ready_file: Path | None) -> int:
        taken.append(config)
        return 0

    monkeypatch.setattr("barnabas.broker.server.run", run)
    for words in ([], [f"--{name.replace('.', '-')}"]):
        result = CliRunner().invoke(main, ["serve", "--set", f"log.dirs={tmp_path}", *words])
        assert result.exit_code == 0, result.output
        assert gc.isenabled()  # off only while a start imports modules and loads logs
    assert [config.get_bool(name) for config in taken] == [False, True]
