"""`__consumer_offsets` is compatible with Kafka in both directions: its decoder and broker read ours, and we read its.

One directory goes from our daemon to Apache Kafka and back; librdkafka reads the offsets from both.
"""

from __future__ import annotations

import json
import re
import time
from datetime import timedelta
from pathlib import Path

import pytest

from barnabas.broker.coordinator_log.topic import partition_of
from barnabas.protocol.topic_name import OFFSETS_TOPIC
from tests.support.daemon import start_daemon
from tests.support.kafka.apache_kafka import Kafka, initial_features
from tests.support.kafka.kafka_wire import KafkaWire

VERSIONS = ("4.3.0", "3.9.1")
GROUPS = ("billing", "my-group", "gr\u00fcppe")
"""The second has a negative hash, which Kafka maps to a partition in one of two ways, depending on the class."""
PARTITIONS = 5


def commit(bootstrap: str, group: str, offsets: dict[int, int], metadata: str) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    partitions = [TopicPartition("orders", number, offset, metadata) for number, offset in offsets.items()]
    for result in consumer.commit(offsets=partitions, asynchronous=False):
        assert result.error is None
    consumer.close()


def committed(bootstrap: str, group: str, partitions: int) -> dict[int, int]:
    from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    wanted = [TopicPartition("orders", number) for number in range(partitions)]
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                return {each.partition: each.offset for each in consumer.committed(wanted, 30.0)}
            except KafkaException as error:
                # Kafka answers so for a moment after its start.
                if error.args[0].code() != KafkaError.NOT_COORDINATOR or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
    finally:
        consumer.close()


def make_topic(bootstrap: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic("orders", 2, 1)]).values():
        made.result(30)


def delete_group(bootstrap: str, group: str) -> None:
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": bootstrap})
    for deleted in admin.delete_consumer_groups([group]).values():
        deleted.result(30)


@pytest.mark.parametrize("version", VERSIONS)
def test_kafka_decodes_and_serves_our_offsets_and_we_serve_its(tmp_path: Path, version: str) -> None:
    data = tmp_path / "data"
    settings = (f"offsets.topic.num.partitions={PARTITIONS}", "node.id=1", initial_features(version))
    with start_daemon(tmp_path, *settings) as daemon:
        make_topic(daemon.bootstrap)
        for number, group in enumerate(GROUPS):
            commit(daemon.bootstrap, group, {0: 1, 1: 2}, "old")
            commit(daemon.bootstrap, group, {0: 10 + number, 1: 20 + number}, f"note {number}")
        commit(daemon.bootstrap, "deleted", {0: 7}, "")
        delete_group(daemon.bootstrap, "deleted")
        assert daemon.stop() == 0

    kafka = Kafka(version, data, tmp_path / "kafka", offsets_topic_num_partitions=str(PARTITIONS))
    for number, group in enumerate(GROUPS):
        segment = data / f"{OFFSETS_TOPIC}-{partition_of(group, PARTITIONS)}" / f"{0:020d}.log"
        printed = kafka.dump_log_segments("--offsets-decoder", "--files", str(segment))
        assert f'"group":"{group}"' in printed
        assert re.search(rf'"offset":{10 + number},.*"metadata":"note {number}', printed), printed
        assert "Could not deserialize" not in printed

    with kafka.running() as broker:
        for number, group in enumerate(GROUPS):
            assert committed(broker.bootstrap, group, 2) == {0: 10 + number, 1: 20 + number}
        assert committed(broker.bootstrap, "deleted", 1) == {0: -1001}
        commit(broker.bootstrap, "my-group", {0: 111}, "kafka's")
        commit(broker.bootstrap, "kafkas-own", {1: 222}, "kafka's")
        delete_group(broker.bootstrap, "billing")

    with start_daemon(tmp_path, *settings) as daemon:
        assert committed(daemon.bootstrap, "my-group", 2) == {0: 111, 1: 21}
        assert committed(daemon.bootstrap, "kafkas-own", 2) == {0: -1001, 1: 222}
        assert committed(daemon.bootstrap, "gr\u00fcppe", 2) == {0: 12, 1: 22}
        assert committed(daemon.bootstrap, "billing", 2) == {0: -1001, 1: -1001}


def test_kafka_decodes_every_record_of_a_group_that_subscribes_by_an_expression(tmp_path: Path) -> None:
    with start_daemon(tmp_path, "offsets.topic.num.partitions=1", "node.id=1") as daemon:
        make_topic(daemon.bootstrap)
        with KafkaWire(daemon.host, daemon.port) as wire:
            joined = wire.call(
                "consumer_group_heartbeat",
                1,
                group_id="matching",
                member_id="m",
                member_epoch=0,
                instance_id=None,
                rack_id=None,
                rebalance_timeout=timedelta(seconds=60),
                subscribed_topic_names=None,
                subscribed_topic_regex="ord.*",
                server_assignor=None,
                topic_partitions=(),
            )
        assert joined.error_code == 0, joined.error_message
        assert daemon.stop() == 0
    kafka = Kafka(VERSIONS[0], tmp_path / "data", tmp_path / "kafka")
    segment = tmp_path / "data" / f"{OFFSETS_TOPIC}-0" / f"{0:020d}.log"
    printed = kafka.dump_log_segments("--offsets-decoder", "--files", str(segment))
    assert "Could not deserialize" not in printed
    expression = re.search(r'"type":"16","data":(\{.*?\}).*?"topics":\["orders"\]', printed)
    assert expression is not None, printed
    assert json.loads(expression[1]) == {"groupId": "matching", "regularExpression": "ord.*"}
