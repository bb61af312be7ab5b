"""The broker's own topics have the same partitions and configs whoever makes them, and get missing ones at a start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.image_builder import ImageBuilder
from barnabas.broker.metadata.own_topics import config_warnings
from barnabas.protocol.metadata.records import ConfigRecord, TopicRecord
from barnabas.protocol.topic_name import INTERNAL_TOPICS, OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.own_topics import (
    DELETE,
    SET,
    alter,
    by_create_topics,
    by_first_use,
    by_metadata,
    delete,
    described,
)

SEGMENT = {"segment.bytes": "104857600"}
EXPECTED = {
    OFFSETS_TOPIC: (2, {"cleanup.policy": "compact", "compression.type": "producer", **SEGMENT}),
    TRANSACTION_TOPIC: (
        3,
        {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": "1",
            "unclean.leader.election.enable": "false",
            **SEGMENT,
        },
    ),
    SHARE_STATE_TOPIC: (
        4,
        {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": "1",
            "retention.ms": "-1",
            **SEGMENT,
        },
    ),
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(
        tmp_path_factory.mktemp("own-topics"),
        "offsets.topic.num.partitions=2",
        "transaction.state.log.num.partitions=3",
        "share.coordinator.state.topic.num.partitions=4",
    ) as daemon:
        yield daemon


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as kafka:
        yield kafka


def test_the_list_is_that_of_the_internal_topics() -> None:
    assert EXPECTED.keys() == INTERNAL_TOPICS


@pytest.mark.parametrize("make", [by_metadata, by_create_topics, by_first_use])
@pytest.mark.parametrize("name", EXPECTED)
def test_whoever_makes_a_topic_it_has_kafkas_configs_and_partitions(
    kafka: KafkaWire, name: str, make: Callable[[KafkaWire, str], None]
) -> None:
    delete(kafka, name)
    make(kafka, name)
    assert described(kafka, name) == EXPECTED[name]


@pytest.mark.parametrize(
    ("topic", "name", "value", "is_warned"),
    [
        (OFFSETS_TOPIC, "cleanup.policy", "compact,compact", False),
        (OFFSETS_TOPIC, "cleanup.policy", " compact", False),
        (OFFSETS_TOPIC, "cleanup.policy", "", False),
        (OFFSETS_TOPIC, "cleanup.policy", "archive", False),  # not understood: the log is kept
        (OFFSETS_TOPIC, "cleanup.policy", "compact,delete", True),
        (SHARE_STATE_TOPIC, "cleanup.policy", "compact", True),
        (SHARE_STATE_TOPIC, "retention.ms", "-01", False),
        (SHARE_STATE_TOPIC, "retention.ms", "0", True),
    ],
)
def test_a_value_that_deletes_needed_records_is_warned_about_however_it_is_written(
    topic: str, name: str, value: str, is_warned: bool
) -> None:
    builder = ImageBuilder(MetadataImage())
    builder.apply(TopicRecord(topic, bytes(15) + b"\7"))
    builder.apply(ConfigRecord(2, topic, name, value))
    assert bool(config_warnings(builder.build(), [])) is is_warned


def test_a_start_adds_the_configs_that_an_older_version_did_not_set_and_says_so(tmp_path: Path) -> None:
    """Such a topic of share groups' states was deleted from by the retention of user topics, seven days."""
    with start_daemon(tmp_path, "share.coordinator.state.topic.num.partitions=1") as daemon:
        with KafkaWire(daemon.host, daemon.port) as kafka:
            by_metadata(kafka, SHARE_STATE_TOPIC)
            configs = EXPECTED[SHARE_STATE_TOPIC][1]
            alter(kafka, SHARE_STATE_TOPIC, DELETE, dict.fromkeys(configs))
            assert described(kafka, SHARE_STATE_TOPIC) == (1, {})
        daemon.restart()
        with KafkaWire(daemon.host, daemon.port) as kafka:
            assert described(kafka, SHARE_STATE_TOPIC) == (1, configs)
            alter(kafka, SHARE_STATE_TOPIC, SET, {"retention.ms": "3600000"})
        added = "from being deleted: added cleanup.policy=delete compression.type=producer"
        assert daemon.log.count(added) == 1
        daemon.restart()
        with KafkaWire(daemon.host, daemon.port) as kafka:
            assert described(kafka, SHARE_STATE_TOPIC) == (1, {**configs, "retention.ms": "3600000"})
        assert daemon.log.count(added) == 1
        assert (
            "has retention.ms=3600000, which deletes records that are still needed: set retention.ms=-1" in daemon.log
        )
