"""Partitions whose logs could not be created, because the disk had no room for one more file, until it has."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from click.testing import CliRunner

from barnabas.commands.main import main
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.topics.topics import CreateTopicsRequest, NewTopic
from tests.broker.conftest import Batch
from tests.support.daemon import Daemon, start_daemon, with_fault
from tests.support.groups.committed import commit, create_topic, fetch
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.wire_producer import WireProducer, coordinator_error
from tests.support.metrics import healthz, metric, wait_for_metric
from tests.support.small_disk import small_disk_or_skip, use_up_files
from tests.support.wire import WireClient

WITHOUT_LOG = "barnabas_partitions_without_log"
HASTE = """
import barnabas.broker.coordinator_log.log as log
import barnabas.broker.image_applier as applier
import barnabas.broker.metadata_changes as changes
log.REFUSAL_SECONDS = changes.RETRY_SECONDS = 0.1
applier.MISSING_AT_ONCE = 2
"""
SETTINGS = ("offsets.topic.num.partitions=2", "transaction.state.log.num.partitions=2")


def doctor(daemon: Daemon) -> str:
    return CliRunner().invoke(main, ["doctor", "client", f"{daemon.host}:{daemon.port}"]).output


def test_partitions_without_a_log_are_served_once_there_is_room_and_said_to_be_missing_before(
    tmp_path: Path, batch: Batch
) -> None:
    with (
        small_disk_or_skip(tmp_path / "disk", "64m", files=300) as disk,
        start_daemon(
            tmp_path / "daemon", f"log.dirs={disk / 'data'}", *SETTINGS, environ=with_fault(tmp_path, HASTE)
        ) as daemon,
    ):
        with WireClient(daemon.host, daemon.port) as client, KafkaWire(daemon.host, daemon.port) as wire:
            create_topic(wire, "t")
            use_up_files(disk / "filler")
            (refused,) = client.call(CreateTopicsRequest(topics=[NewTopic(name="late", partitions=3)])).topics
            assert refused.error == ErrorCode.KAFKA_STORAGE_ERROR
            assert client.produce("late", batch(b"x"), 1).error == ErrorCode.KAFKA_STORAGE_ERROR
            for group in ("a", "b"):  # one of each partition
                assert commit(wire, group, "t", {0: 5}) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
                assert coordinator_error(wire, group, is_group=True) == ErrorCode.COORDINATOR_NOT_AVAILABLE
            producer = WireProducer(wire, "id", wait_s=0)
            assert producer.init() == ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert coordinator_error(wire, "id") == ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert metric(daemon, WITHOUT_LOG) == 7
            assert healthz(daemon) == "serving, but 7 partitions have no log\n"

            assert "7 partition(s) have no leader, and cannot be used: __consumer_offsets-0, " in doctor(daemon)

            shutil.rmtree(disk / "filler")
            wait_for_metric(daemon, WITHOUT_LOG, 0)
            assert healthz(daemon) == "serving\n"
            assert "no problem" in doctor(daemon)
            assert [client.produce("late", batch(b"x"), number).error for number in range(3)] == [ErrorCode.NONE] * 3
            for group in ("a", "b"):
                assert coordinator_error(wire, group, is_group=True) == ErrorCode.NONE
                assert commit(wire, group, "t", {0: 5}) == [ErrorCode.NONE]
            assert coordinator_error(wire, "id") == ErrorCode.NONE
            assert producer.init() == ErrorCode.NONE
        said = (tmp_path / "daemon" / "daemon.log").read_text()
        assert said.count("logs of late cannot be created, their partitions are not served until they can be") == 1
        assert "offline" not in said
        assert " is created" not in said
        assert said.count("logs of __consumer_offsets cannot be created, their partitions are not served") == 1
        daemon.restart()
        with WireClient(daemon.host, daemon.port) as client, KafkaWire(daemon.host, daemon.port) as wire:
            assert [client.end_offset("late", number) for number in range(3)] == [1, 1, 1]
            assert fetch(wire, "a", "t") == {0: (5, ErrorCode.NONE, "")}
        assert not [name for name in os.listdir(disk / "data") if name.endswith("-stray")]
