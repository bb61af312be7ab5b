"""kafka-metadata-shell and DumpLogSegments read our metadata log and our snapshot of it completely."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.daemon import start_daemon
from tests.support.kafka.apache_kafka import Kafka, need_kafka
from tests.support.wire import WireClient

pytestmark = pytest.mark.timeout(300)
SNAPSHOT_AT_EACH_CHANGE = "metadata.log.max.record.bytes.between.snapshots=1"


@pytest.mark.parametrize("version", ["4.3.0", "3.9.1"])
def test_kafkas_tools_read_our_metadata_log_and_our_snapshot(tmp_path: Path, version: str) -> None:
    need_kafka(version)
    with start_daemon(tmp_path, SNAPSHOT_AT_EACH_CHANGE) as daemon:
        with WireClient(daemon.host, daemon.port) as wire:
            wire.create_topic("orders", 3, retention_ms="1000000")
            wire.create_topic("other", 1)
        assert daemon.stop() == 0
    metadata = daemon.data_directory / "__cluster_metadata-0"
    kafka = Kafka(version, daemon.data_directory, tmp_path / "kafka")
    snapshot = max(metadata.glob("*.checkpoint"))
    segments = sorted(metadata.glob("*.log"))

    files = ",".join(map(str, (*segments, snapshot)))  # in the order of the dump, which ends with the snapshot
    dump = kafka.dump_log_segments("--cluster-metadata-decoder", "--files", files)
    assert "isvalid: false" not in dump
    names = re.findall(r'"type":"TOPIC_RECORD".*?"name":"([^"]+)"', dump)
    assert names == ["orders", "other"] * 2, dump

    assert kafka.metadata_shell(snapshot, "ls", "/image/topics/byName").split() == ["orders", "other"]
    assert kafka.metadata_shell(snapshot, "ls", "/image/topics/byName/orders").split() == ["0", "1", "2", "id", "name"]
    found = kafka.metadata_shell(snapshot, "cat", "/image/topics/byName/orders/2")
    assert "replicas=[1], " in found
    assert "leader=1, " in found
    found = kafka.metadata_shell(snapshot, "cat", "/image/configs/TOPIC:orders/retention.ms")
    assert found.split() == ["1000000"]
