"""Apache Kafka carries the records of mirrors: it starts, changes other configs and writes snapshots, and they stay."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas import Admin, AdminConfig
from barnabas.broker.metadata.directories.examine import examine
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.mirrors.promotion import EPOCH_STRIDE
from tests.support.daemon import start_daemon
from tests.support.eventually import eventually
from tests.support.kafka.apache_kafka import Kafka, initial_features, need_kafka
from tests.support.kafka.combinations import NEWEST, OLDEST
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.mirrored_topics import add_mirror, broker_config
from tests.support.storage.records import plain

pytestmark = pytest.mark.timeout(300)  # many JVM starts in sequence, on machines of any speed
VERSIONS = (NEWEST, OLDEST)
CONFIGS = "kafka.admin.ConfigCommand"
SNAPSHOT_ALWAYS = {"metadata_log_max_record_bytes_between_snapshots": "1"}


def stored(directory: Path) -> MetadataImage:
    return examine([directory]).image


@pytest.mark.parametrize("version", VERSIONS)
async def test_mirrors_survive_kafka_and_its_snapshots(tmp_path: Path, version: str) -> None:
    need_kafka(version)
    data = tmp_path / "barnabas" / "data"
    with start_daemon(tmp_path / "barnabas", initial_features(version)) as daemon:
        assert daemon.stop() == 0
    add_mirror(broker_config(data), "east", {"orders": 2}, groups=["readers-[0-9]+"])
    before = stored(data)
    assert set(before.mirrors.definitions) == {"east"}
    assert before.mirror_of("orders") is not None

    kafka = Kafka(version, data, tmp_path / "kafka", node_id=1, **SNAPSHOT_ALWAYS)
    with kafka.running() as broker:
        default = ("--bootstrap-server", broker.bootstrap, "--entity-type", "brokers", "--entity-default")
        kafka.tool(CONFIGS, *default, "--alter", "--add-config", "log.retention.ms=100000")
        kafka.tool(CONFIGS, *default, "--alter", "--add-config", "num.io.threads=9")
        kafka.tool(CONFIGS, *default, "--alter", "--delete-config", "log.retention.ms")
        described = kafka.tool(CONFIGS, *default, "--describe")
        metadata_log = data / "__cluster_metadata-0"
        eventually(lambda: snapshot_with_records(metadata_log), what="Kafka's snapshot")
        log = broker.log
    assert "num.io.threads=9" in described
    assert "barnabas" not in described
    assert not [line for line in log.splitlines() if " ERROR " in line or " FATAL " in line]

    after = stored(data)
    assert after.mirrors == before.mirrors
    assert dict(after.default_broker_configs()) == {"num.io.threads": "9"}
    with start_daemon(tmp_path / "barnabas") as daemon:
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            (found,) = await admin.mirrors.describe_all()
        assert daemon.stop() == 0
    assert (found.name, found.state, found.fields["groups"]) == ("east", "paused", ["readers-[0-9]+"])
    assert [(each.topic, each.state) for each in found.topics] == [("orders", "mirrored")]
    assert [(each.topic, each.partition, each.offset) for each in found.partitions] == [
        ("orders", 0, 0),
        ("orders", 1, 0),
    ]


def snapshot_with_records(metadata_log: Path) -> Path | None:
    """Return a snapshot other than the bootstrap checkpoint."""
    return next((each for each in metadata_log.glob("*-*.checkpoint") if int(each.stem.split("-")[0]) > 0), None)


@pytest.mark.parametrize("version", VERSIONS[:1])
async def test_a_topic_that_kafka_deletes_and_creates_again_is_no_mirror(tmp_path: Path, version: str) -> None:
    need_kafka(version)
    data = tmp_path / "barnabas" / "data"
    with start_daemon(tmp_path / "barnabas", initial_features(version)) as daemon:
        assert daemon.stop() == 0
    add_mirror(broker_config(data), "east", {"orders": 1})
    kafka = Kafka(version, data, tmp_path / "kafka", node_id=1)
    with kafka.running() as broker:
        topics = ("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", broker.bootstrap)
        kafka.tool(*topics, "--delete", "--topic", "orders")
        kafka.tool(*topics, "--create", "--topic", "orders", "--partitions", "1")
    image = stored(data)
    assert "orders" in image.topics
    assert "orders" in image.mirrors.topics
    assert image.mirror_of("orders") is None


@pytest.mark.parametrize("version", VERSIONS[:1])  # 3.9 deletes by AlterConfigs, which keeps unnamed mirrors
def test_kafka_configs_shows_pauses_and_deletes_a_definition_of_ours(tmp_path: Path, version: str) -> None:
    need_kafka(version)
    kafka = Kafka(version, tmp_path / "unused", tmp_path / "kafka")
    with start_daemon(tmp_path / "barnabas") as daemon:
        assert daemon.stop() == 0
    add_mirror(broker_config(tmp_path / "barnabas" / "data"), "east", {}, desired="running")
    key = "barnabas.mirror.definition.east"
    with start_daemon(tmp_path / "barnabas") as daemon:
        default = ("--bootstrap-server", daemon.bootstrap, "--entity-type", "brokers", "--entity-default")
        shown = kafka.tool(CONFIGS, *default, "--describe")
        (line,) = [each.strip() for each in shown.splitlines() if key in each]
        text = line.removeprefix(f"{key}=").partition(" sensitive=")[0]
        changed = tmp_path / "changed.properties"
        changed.write_text(f"{key}={text.replace('running', 'paused')}\n")
        kafka.tool(CONFIGS, *default, "--alter", "--add-config", "log.retention.ms=100000")
        kafka.tool(CONFIGS, *default, "--alter", "--add-config-file", str(changed))
        assert '"desired":"paused"' in kafka.tool(CONFIGS, *default, "--describe")
        kafka.tool(CONFIGS, *default, "--alter", "--delete-config", key)
        shown = kafka.tool(CONFIGS, *default, "--describe")
        assert (key in shown, "log.retention.ms=100000" in shown) == (False, True)
        assert daemon.stop() == 0


@pytest.mark.parametrize("version", VERSIONS)
async def test_kafka_starts_on_promoted_topics_and_goes_on_with_their_leader_epoch(
    tmp_path: Path, version: str
) -> None:
    need_kafka(version)
    data = tmp_path / "barnabas" / "data"
    with start_daemon(tmp_path / "barnabas", initial_features(version)) as daemon:
        assert daemon.stop() == 0
    add_mirror(broker_config(data), "east", {"orders": 1})
    with start_daemon(tmp_path / "barnabas") as daemon:
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            await admin.mirrors.promote("east")
        await asyncio.to_thread(
            eventually, lambda: True if "topic orders is promoted" in daemon.log else None, what="the promotion"
        )
        with KafkaWire("127.0.0.1", daemon.port) as wire:
            assert wire.produce(9, "orders", plain(2), acks=-1).error_code == 0
        assert daemon.stop() == 0
    kafka = Kafka(version, data, tmp_path / "kafka", node_id=1, **SNAPSHOT_ALWAYS)
    with kafka.running() as broker, KafkaWire("127.0.0.1", broker.port) as wire:
        assert wire.produce(9, "orders", plain(2), acks=-1).base_offset == 2
        log = broker.log
    assert not [line for line in log.splitlines() if " ERROR " in line or " FATAL " in line]
    epochs = (data / "orders-0" / "leader-epoch-checkpoint").read_text().split("\n", 2)[2].split()
    assert epochs[:2] == [str(EPOCH_STRIDE), "0"]
    assert not epochs[2:] or (int(epochs[2]) > EPOCH_STRIDE, epochs[3:]) == (True, ["2"])
    promoted = stored(data).mirror_of("orders")
    assert promoted is not None
    assert (promoted.state, promoted.is_read_only) == ("promoted", False)
    with start_daemon(tmp_path / "barnabas") as daemon:
        with KafkaWire("127.0.0.1", daemon.port) as wire:
            assert wire.produce(9, "orders", plain(1), acks=-1).base_offset == 4
        assert daemon.stop() == 0
