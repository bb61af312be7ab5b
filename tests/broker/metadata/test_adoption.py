"""Topics of a directory without a metadata log: refused, or adopted with configs that delete and compact nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.broker.metadata.directories.examine import examine
from barnabas.broker.metadata.directories.report import BARNABAS, BARNABAS_READ_ONLY, kafka
from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.log.batches import encode_change
from barnabas.broker.metadata.log.log_replay import METADATA_DIRECTORY
from barnabas.broker.metadata.read_only import read_metadata
from barnabas.broker.storage.files.clean_shutdown import CLEAN_SHUTDOWN_FILE
from barnabas.broker.storage.log_manager import LogManager
from barnabas.config import BrokerConfig, Setting
from barnabas.protocol.messages.topics.topics import NewTopic, config_rows
from barnabas.protocol.metadata.records import (
    TOPIC_RESOURCE,
    BeginTransactionRecord,
    ConfigRecord,
    MetadataRecord,
    TopicRecord,
)
from barnabas.protocol.records import iter_batches
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.uuids import parse_uuid
from tests.support.storage.bench import append, keyed_batch
from tests.support.storage.metadata_store import SEGMENT, Opened, open_store, opened, tree

LONG_AGO_MS = 1_577_836_800_000
ORDERS = TopicPartition("orders", 0)
BATCHES = 40
HELD = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
SMALL = {"log_segment_bytes": "1024"}
DELETES_AND_COMPACTS = {
    **SMALL,
    "log_retention_ms": "1000",
    "log_retention_bytes": "1024",
    "log_cleanup_policy": "compact,delete",
    "log_cleaner_min_cleanable_ratio": "0.01",
}


def zookeeper_directory(directory: Path) -> Path:
    """Write a directory as a Kafka with ZooKeeper leaves it: old records of few keys, in many segments."""
    with opened(directory, **SMALL, log_retention_ms="-1") as store:
        store.create(
            NewTopic(name="orders", partitions=1),
            NewTopic(name="__consumer_offsets", partitions=1, configs=config_rows({"cleanup.policy": "compact"})),
        )
        log = store.log_manager.get(ORDERS)
        assert log is not None
        for number in range(BATCHES):
            append(log, keyed_batch(120, LONG_AGO_MS + number, b"key%d" % (number % 2)))
    shutil.rmtree(directory / METADATA_DIRECTORY)
    (directory / "bootstrap.checkpoint").unlink()
    (directory / "meta.properties").write_text("#\nversion=0\nbroker.id=3\ncluster.id=wGTJk2O0RASo6YcCSC4gRQ\n")
    return directory


def without_identity(directory: Path) -> None:
    (directory / "meta.properties").unlink()


def of_kraft(directory: Path) -> None:
    (directory / "meta.properties").write_text("version=1\nnode.id=3\ncluster.id=wGTJk2O0RASo6YcCSC4gRQ\n")


def as_it_is(directory: Path) -> None:
    pass


def end_and_start(store: Opened) -> tuple[int, int, int]:
    """Run retention and the cleaner; return the log's start and end and how many bytes it has."""
    manager: LogManager = store.log_manager
    manager.maintenance.run_retention()
    assert manager.cleaner is not None
    manager.cleaner.run_pass()
    log = manager.get(ORDERS)
    assert log is not None
    return log.log_start_offset, log.log_end_offset, sum(segment.size_bytes for segment in log.segments)


@pytest.mark.parametrize("change", [as_it_is, without_identity, of_kraft])
def test_a_start_refuses_it_in_one_sentence_that_names_the_flag_and_changes_nothing(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    change(zookeeper_directory(tmp_path))
    before = tree(tmp_path)
    with pytest.raises(MetadataError, match="--adopt-topics") as refused:
        open_store(tmp_path)
    assert "\n" not in str(refused.value)
    assert tree(tmp_path) == before
    report = examine([tmp_path])
    assert report.stopping(BARNABAS) == report.stopping(kafka("4.3")) != ()
    assert report.stopping(BARNABAS_READ_ONLY) == ()


@pytest.mark.parametrize("change", [as_it_is, without_identity, of_kraft])
def test_nothing_of_an_adopted_topic_is_deleted_or_compacted_until_its_configs_are_set(
    tmp_path: Path, change: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    change(zookeeper_directory(tmp_path))
    with opened(tmp_path, **DELETES_AND_COMPACTS, adopt_topics="true") as store:
        before = end_and_start(store)
        assert before[:2] == (0, BATCHES)
        assert before[2] > BATCHES * 119
        assert store.store.image.topic_configs("orders") == HELD
        assert store.store.image.topic_configs("__consumer_offsets")["cleanup.policy"] == "compact"
        assert "its 2 topics are adopted, and until their configs are set nothing is deleted" in caplog.text
    with opened(tmp_path, **DELETES_AND_COMPACTS) as store:  # the flag is for one start
        assert end_and_start(store) == before
        assert store.store.warnings == ()
        store.store.commit([ConfigRecord(TOPIC_RESOURCE, "orders", name, None) for name in HELD])
        store.log_manager.update_topic_config("orders", store.log_config_of("orders"))
        assert end_and_start(store) != before


def test_an_adoption_that_a_crash_interrupts_is_begun_again(tmp_path: Path) -> None:
    zookeeper_directory(tmp_path)
    with opened(tmp_path, adopt_topics="true") as store:
        topic_id = store.store.image.topics["orders"].topic_id
    shutil.rmtree(tmp_path / METADATA_DIRECTORY)  # meta.properties was written before the metadata log
    with pytest.raises(MetadataError, match="--adopt-topics"):
        open_store(tmp_path)
    with opened(tmp_path, adopt_topics="true") as store:
        assert store.store.node_id == 3
        assert store.store.image.topics["orders"].topic_id == topic_id


@pytest.mark.parametrize("in_transaction", [False, True])
def test_an_adoption_whose_append_was_torn_is_begun_again_and_makes_no_partition_a_stray(
    tmp_path: Path, in_transaction: bool
) -> None:
    zookeeper_directory(tmp_path)
    with opened(tmp_path, adopt_topics="true"):
        pass
    (tmp_path / CLEAN_SHUTDOWN_FILE).unlink()
    segment = tmp_path / SEGMENT
    with segment.open("r+b") as file:
        leader = next(iter_batches(file.read()))  # the records of the adoption are in the batches after it
        torn = b""
        if in_transaction:
            begin: list[MetadataRecord] = [BeginTransactionRecord("a change"), TopicRecord("orders", bytes([1] * 16))]
            torn, _ = encode_change(
                begin, level=19, base_offset=leader.next_offset, leader_epoch=1, timestamp_ms=LONG_AGO_MS
            )
        file.truncate(leader.size_bytes)
        file.seek(leader.size_bytes)
        file.write(torn)
    before = tree(tmp_path)
    with pytest.raises(MetadataError, match="--adopt-topics"):
        open_store(tmp_path)
    assert tree(tmp_path) == before
    with opened(tmp_path, adopt_topics="true") as store:
        assert store.store.image.topic_configs("orders") == HELD
        assert end_and_start(store)[:2] == (0, BATCHES)
    with opened(tmp_path) as store:
        assert end_and_start(store)[:2] == (0, BATCHES)


@pytest.mark.parametrize(("change", "separate"), [(as_it_is, False), (without_identity, False), (of_kraft, True)])
def test_topics_are_not_adopted_while_a_directory_is_empty_because_its_disk_may_be_missing(
    tmp_path: Path, change: Callable[[Path], None], separate: bool
) -> None:
    used, empty = tmp_path / "used", tmp_path / "empty"
    used.mkdir()
    change(zookeeper_directory(used))
    empty.mkdir()
    before = tree(tmp_path)
    log_dirs, settings = ([used], {"metadata_log_dir": str(empty)}) if separate else ([empty, used], {})
    with pytest.raises(MetadataError, match=f"{empty} is empty.* mount its disk"):
        open_store(*log_dirs, adopt_topics="true", **settings)
    assert tree(tmp_path) == before
    report = examine([used], adopt_topics=True, are_all=False)
    assert "a log directory is offline" in report.stopping(BARNABAS)[0].sentence


def a_foreign_directory(directory: Path) -> str:
    (directory / "photos-0").mkdir()
    (directory / "photos-0" / "sea.jpg").touch()
    return "photos-0 is not a partition's directory: it holds no log: move it away"


def a_link_to_one(directory: Path) -> str:
    (directory / "backup-2024").symlink_to(directory.parent)
    return "backup-2024 is not a partition's directory: it holds no log: move it away"


def a_name_of_no_topic(directory: Path) -> str:
    (directory / "orders-0").rename(directory / "orders@old-0")
    return "orders@old-0 is not a partition's directory: 'orders@old' contains .* move it away"


def a_copy(directory: Path) -> str:
    shutil.copytree(directory / "orders-0", directory / "orders-copy-0")
    return "have the same topic id .*: one is a copy of the other: move the outdated one away"


def a_torn_id(directory: Path) -> str:
    (directory / "orders-0" / "partition.metadata").write_bytes(b"")
    return "restore the file, or remove it: the topic's id is then that of its other partitions, or a new one"


@pytest.mark.parametrize("change", [a_foreign_directory, a_link_to_one, a_name_of_no_topic, a_copy, a_torn_id])
def test_what_is_no_whole_topic_is_not_adopted_and_not_written_to(
    tmp_path: Path, change: Callable[[Path], str]
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    sentence = change(zookeeper_directory(data))
    before = tree(data)
    with pytest.raises(MetadataError, match=sentence) as refused:
        open_store(data, adopt_topics="true")
    assert "metadata log has the topic id" not in str(refused.value)
    assert tree(data) == before


def test_a_topic_of_our_own_without_its_last_partitions_is_not_adopted_unless_its_count_is_set(tmp_path: Path) -> None:
    zookeeper_directory(tmp_path)
    before = tree(tmp_path)
    sentence = (
        "holds 1 partitions of __consumer_offsets, and offsets.topic.num.partitions=50 in the test: .* if the topic "
        "had no more, set offsets.topic.num.partitions=1 for this start"
    )
    with pytest.raises(MetadataError, match=sentence):
        open_store(tmp_path, adopt_topics="true", offsets_topic_num_partitions="50")
    assert tree(tmp_path) == before
    with opened(tmp_path, adopt_topics="true", offsets_topic_num_partitions="1") as store:
        assert len(store.store.image.topics["__consumer_offsets"].partitions) == 1


def test_a_directory_of_zookeeper_times_is_adopted_with_a_new_directory_for_the_metadata_log(tmp_path: Path) -> None:
    used, empty = tmp_path / "used", tmp_path / "empty"
    used.mkdir()
    zookeeper_directory(used)
    with opened(used, adopt_topics="true", metadata_log_dir=str(empty)) as store:
        assert store.store.image.topic_configs("orders") == HELD


def test_the_flag_changes_nothing_where_a_metadata_log_is_and_a_warning_says_to_remove_it(tmp_path: Path) -> None:
    with opened(tmp_path, adopt_topics="true") as store:
        store.create(NewTopic(name="orders", partitions=1))
        assert store.store.warnings == ()
    with opened(tmp_path, adopt_topics="true") as store:
        assert store.store.image.topic_configs("orders") == {}
        (warning,) = store.store.warnings
        assert warning.startswith("adopt.topics=true in the test has no effect where a metadata log is: remove it")


def test_read_only_shows_the_configs_with_which_it_would_be_adopted(tmp_path: Path) -> None:
    zookeeper_directory(tmp_path)
    texts = {"log.dirs": str(tmp_path), "read.only": "true"}
    found = read_metadata(BrokerConfig.of({name: Setting(text, "the test") for name, text in texts.items()}))
    assert found.image.topic_configs("orders") == HELD
    assert len(parse_uuid(found.cluster_id)) == 16
