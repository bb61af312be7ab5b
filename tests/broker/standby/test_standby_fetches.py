"""Who may fetch as a standby does, beyond the high watermark: such a fetch also says what the standby has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.mirrors.kafka_source import KafkaSource
from barnabas.broker.mirrors.source import FetchFrom
from barnabas.clients.config import ClientConfig
from barnabas.clients.network.cluster import Cluster
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.fetch import STANDBY_REPLICA_ID
from barnabas.protocol.messages.security.resources import CLUSTER_NAME, Operation, ResourceType
from barnabas.protocol.topic_partition import TopicPartition
from tests.broker.standby.test_standby_changes import SECURITY
from tests.support.authorization.describe_world import call, log_in
from tests.support.daemon import start_daemon
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.storage.records import plain

COUNT = 3
ANOTHER_NODE = 7
VERSIONS = (9, 12, 17)
"""With the name of the topic, with the last epoch, and with a topic id and the replica in a tagged field."""


def allow(admin: KafkaWire, kind: ResourceType, name: str, operation: Operation) -> None:
    """Give `watcher` a right."""
    creation = {
        "resource_type": int(kind),
        "resource_name": name,
        "resource_pattern_type": 3,
        "principal": "User:watcher",
        "host": "*",
        "operation": int(operation),
        "permission_type": 3,
    }
    answer = call(admin, "create_acls", 2, {"creations": [creation]})[1]
    assert [each.error_code.value for each in answer.results] == [0]


def readable(wire: KafkaWire, version: int) -> tuple[int, bytes]:
    """Return the high watermark and the records that a consumer gets."""
    answer = wire.fetch(version, "t", 0)
    assert answer.error_code == 0
    return answer.high_watermark, answer.records or b""


def refused(answer: Any) -> ErrorCode:
    """Return the error of a fetch that must give nothing away."""
    assert not answer.records
    return ErrorCode(int(answer.error_code))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_without_cluster_action_neither_reads_nor_acknowledges_as_a_standby(
    tmp_path: Path, version: int
) -> None:
    settings = [f"{name}={value}" for name, value in SECURITY.items()]
    with (
        start_daemon(tmp_path, *settings, "standby.min.acks=1") as active,
        log_in(active, "admin") as admin,
        log_in(active, "watcher") as watcher,
    ):
        admin.topic_id("t")
        allow(admin, ResourceType.TOPIC, "t", Operation.READ)
        assert admin.produce(9, "t", bytes(plain(COUNT))).error_code == 0
        assert readable(watcher, version) == (0, b"")
        for offset in (0, COUNT):
            answer = watcher.fetch(version, "t", offset, replica_id=STANDBY_REPLICA_ID)
            assert refused(answer) is ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert answer.high_watermark == -1
        assert readable(watcher, version) == (0, b"")
        allow(admin, ResourceType.CLUSTER, CLUSTER_NAME, Operation.CLUSTER_ACTION)
        copied = watcher.fetch(version, "t", 0, replica_id=STANDBY_REPLICA_ID)
        assert (copied.error_code, copied.high_watermark) == (0, COUNT)
        assert copied.records
        assert readable(watcher, version) == (0, b"")
        assert watcher.fetch(version, "t", COUNT, replica_id=STANDBY_REPLICA_ID).error_code == 0
        assert readable(watcher, version) == (COUNT, copied.records)


async def test_a_standby_that_compares_batches_acknowledges_nothing(tmp_path: Path) -> None:
    """It asks for offsets at which it has other records than the active broker."""
    key = TopicPartition("t", 0)
    with start_daemon(tmp_path, "standby.min.acks=1") as active, KafkaWire(active.host, active.port) as wire:
        topic_id = wire.topic_id("t")
        assert wire.produce(9, "t", bytes(plain(COUNT))).error_code == 0
        cluster = Cluster(ClientConfig(bootstrap=active.bootstrap, client_id="standby"))
        try:
            await cluster.load(["t"])
            node = await KafkaSource(cluster, STANDBY_REPLICA_ID).node(*cluster.node_ids)
            for offset in range(COUNT + 1):
                wanted = {key: FetchFrom(topic_id.bytes, offset, -1, -1, 1)}
                found = await node.fetch(wanted, max_wait_ms=0, max_bytes=1, compares=True)
                assert (key in found and bool(found[key].records)) == (offset < COUNT)
            assert readable(wire, 9) == (0, b"")
            await node.fetch({key: FetchFrom(topic_id.bytes, COUNT, -1, -1, 1000)}, max_wait_ms=0, max_bytes=1)
            assert readable(wire, 9)[0] == COUNT
        finally:
            await cluster.close()


def test_without_an_authorizer_every_client_is_trusted_as_a_standby_but_no_other_follower(tmp_path: Path) -> None:
    with start_daemon(tmp_path, "standby.min.acks=1") as active, KafkaWire(active.host, active.port) as wire:
        wire.topic_id("t")
        assert wire.produce(9, "t", bytes(plain(COUNT))).error_code == 0
        for version in VERSIONS:
            answer = wire.fetch(version, "t", COUNT, replica_id=ANOTHER_NODE)
            assert refused(answer) is ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert readable(wire, version) == (0, b"")
            assert wire.fetch(version, "t", 0, replica_id=STANDBY_REPLICA_ID).records
        assert wire.fetch(9, "t", COUNT, replica_id=STANDBY_REPLICA_ID).error_code == 0
        assert readable(wire, 9)[0] == COUNT
