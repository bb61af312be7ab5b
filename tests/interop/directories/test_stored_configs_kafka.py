"""What Kafka has stored is in force here as it is there: topics that it keeps are kept.

Kafka takes a list that names an entry twice, and stores it as it was sent. Stored configs of unknown names, such as
those of Kafka 3, are not described, and can be deleted.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any, Final

from barnabas.protocol.messages.cluster.configs import OP_DELETE, OP_SET
from barnabas.protocol.metadata.records import ConfigRecord
from tests.support.daemon import start_daemon
from tests.support.eventually import eventually
from tests.support.kafka.apache_kafka import Kafka
from tests.support.kafka.kafka_wire import KafkaWire, schema
from tests.support.kafka.two_brokers import Batch, Topic, create_topics, feed
from tests.support.storage.bench import batch
from tests.support.storage.directories import append_metadata

BROKER, TOPIC, GROUP = 4, 2, 32
EARLIEST: Final = -2
DAY_MS: Final = 24 * 3600 * 1000
SMALL = {"internal.segment.bytes": "1024"}
DELETED = "deleted"
TOPICS = {
    "repeated": Topic(1, SMALL | {"cleanup.policy": "compact,compact"}),
    "of-the-broker": Topic(1, SMALL),
    "compacted": Topic(1, SMALL | {"cleanup.policy": "compact"}),
    DELETED: Topic(1, SMALL | {"cleanup.policy": "delete, delete"}),
}
KEPT = [name for name in TOPICS if name != DELETED]
CHECKED: Final = {"log.retention.check.interval.ms": "100", "log.initial.task.delay.ms": "100"}


def policy(wire: KafkaWire, topic: str) -> tuple[str, int]:
    """Return the topic's cleanup.policy and its source as DescribeConfigs gives them."""
    kinds = schema("describe_configs", 4, "request")
    resource = kinds.DescribeConfigsResource(
        resource_type=TOPIC, resource_name=topic, configuration_keys=("cleanup.policy",)
    )
    (result,) = wire.call("describe_configs", 4, resources=(resource,)).results
    return result.configs[0].value, result.configs[0].config_source


def set_default(wire: KafkaWire, name: str, value: str) -> None:
    """Set a dynamic default of all brokers."""
    kinds = schema("incremental_alter_configs", 1, "request")
    alter(wire, BROKER, "", kinds.AlterableConfig(name=name, config_operation=OP_SET, value=value))


def alter(wire: KafkaWire, kind: int, resource_name: str, config: Any) -> None:
    kinds = schema("incremental_alter_configs", 1, "request")
    resource = kinds.AlterConfigsResource(resource_type=kind, resource_name=resource_name, configs=(config,))
    (result,) = wire.call("incremental_alter_configs", 1, resources=(resource,), validate_only=False).responses
    assert result.error_code == 0, result.error_message


def starts_after_retention(wire: KafkaWire) -> dict[str, int]:
    """Return the earliest offsets of the other topics once retention has deleted from the one that it may."""

    def start(topic: str) -> int:
        return int(wire.list_offset(7, topic, EARLIEST).offset)

    eventually(lambda: start(DELETED) or None, what="the deletion of old segments")
    return {name: start(name) for name in KEPT}


def test_topics_that_kafka_compacts_by_a_list_with_a_repetition_are_compacted_and_not_deleted(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours" / "data"
    kafka = Kafka("4.3.0", theirs, tmp_path / "kafka", log_retention_ms=str(7 * DAY_MS))
    kafka.format()
    old_ms = time.time_ns() // 1_000_000 - 40 * DAY_MS
    with kafka.running() as broker, KafkaWire("127.0.0.1", broker.port) as wire:
        set_default(wire, "log.cleanup.policy", "compact,compact")
        create_topics(wire, TOPICS)
        for name in TOPICS:
            feed(wire, [Batch(name, 0, bytes(batch((old_ms, b"%d" % key, bytes(600))))) for key in range(4)])
        described = {name: policy(wire, name) for name in TOPICS}
    shutil.copytree(theirs, ours)
    # Later than Kafka reads the dynamic values: until then it deletes by its static ones.
    kafka.settings |= CHECKED | {"log.initial.task.delay.ms": "5000"}
    with kafka.running() as broker, KafkaWire("127.0.0.1", broker.port) as wire:
        assert starts_after_retention(wire) == dict.fromkeys(KEPT, 0)

    settings = [f"{name}={value}" for name, value in CHECKED.items()]
    with start_daemon(ours.parent, *settings, "log.cleaner.enable=false", f"log.retention.ms={7 * DAY_MS}") as daemon:
        with KafkaWire(daemon.host, daemon.port) as wire:
            assert starts_after_retention(wire) == dict.fromkeys(KEPT, 0)
            assert {name: policy(wire, name) for name in TOPICS} == described
        assert daemon.stop() == 0
    assert described == {
        "repeated": ("compact", 1),
        "of-the-broker": ("compact", 3),
        "compacted": ("compact", 1),
        DELETED: ("delete", 1),
    }
    assert [name for name in KEPT if f"segments of {name}-0 by" in daemon.log] == []


UNKNOWN: Final = ((TOPIC, "t", "message.format.version"), (TOPIC, "t", "made.up"), (GROUP, "g", "consumer.new"))


def own_configs(wire: KafkaWire) -> dict[str, str]:
    """Return what a topic and a group have of their own, as DescribeConfigs gives it."""
    kinds = schema("describe_configs", 4, "request")
    resources = tuple(
        kinds.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name in ((TOPIC, "t"), (GROUP, "g"))
    )
    results = wire.call("describe_configs", 4, resources=resources).results
    return {each.name: each.value for found in results for each in found.configs if each.config_source in (1, 8)}


def test_stored_configs_of_unknown_names_are_not_described_and_can_be_deleted(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours" / "data"
    kafka = Kafka("4.3.0", theirs, tmp_path / "kafka")
    kafka.format()
    with kafka.running() as broker, KafkaWire("127.0.0.1", broker.port) as wire:
        create_topics(wire, {"t": Topic(1, {"retention.ms": "1000000"})})
    append_metadata(
        theirs,
        *(ConfigRecord(*each, "3.0") for each in UNKNOWN),
        ConfigRecord(GROUP, "g", "consumer.session.timeout.ms", "50000"),
    )
    shutil.copytree(theirs, ours)
    kinds = schema("incremental_alter_configs", 1, "request")

    def check(wire: KafkaWire) -> None:
        assert own_configs(wire) == {"retention.ms": "1000000", "consumer.session.timeout.ms": "50000"}
        for kind, resource, name in UNKNOWN:
            alter(wire, kind, resource, kinds.AlterableConfig(name=name, config_operation=OP_DELETE, value=None))

    with kafka.running() as broker, KafkaWire("127.0.0.1", broker.port) as wire:
        check(wire)
    with start_daemon(ours.parent) as daemon, KafkaWire(daemon.host, daemon.port) as wire:
        check(wire)
        daemon.restart()
    assert "message.format.version" not in daemon.log.rpartition("--- start")[2]
