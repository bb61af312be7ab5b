"""A member that leaves while the disk is full. As in Kafka (SharePartition.rollbackOrProcessStateUpdates)."""

from __future__ import annotations

from pathlib import Path

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.builder import RecordBatchBuilder
from tests.support.daemon import start_daemon
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.metrics import metric, wait_for_metric
from tests.support.share.share_wire import ShareMember, acquired, states
from tests.support.small_disk import fill_up, small_disk_or_skip

ACCEPT = 1
RECORDS = 500
SETTINGS = (
    "initial.features=share.version=1",
    "share.coordinator.state.topic.num.partitions=1",
    "group.share.record.lock.duration.ms=3000",
    "group.share.min.record.lock.duration.ms=1000",
    "log.index.size.max.bytes=4096",
)


def test_records_of_a_member_that_leaves_on_a_full_disk_are_delivered_again_when_their_locks_run_out(
    tmp_path: Path,
) -> None:
    """A release that cannot be stored is undone. A lock runs out, and the group's last member goes, without a write."""
    with (
        small_disk_or_skip(tmp_path / "disk", "8m") as disk,
        start_daemon(tmp_path / "daemon", f"log.dirs={disk / 'data'}", *SETTINGS) as daemon,
        KafkaWire(daemon.host, daemon.port) as wire,
    ):
        topic_id = wire.topic_id("t").bytes
        builder = RecordBatchBuilder(max_bytes=1 << 20)
        for _ in range(RECORDS):
            assert builder.append(1_700_000_000_000, None, b"v")
        row = {"partition": 0, "state_epoch": 0, "start_offset": 0}
        assert states(wire, "initialize_share_group_state", 0, "g", topic_id, row)[0].error_code == 0
        with KafkaWire(daemon.host, daemon.port) as staying_wire:
            staying = ShareMember(staying_wire, "g", "staying", topic_id)
            assert acquired(staying.fetch(0)) == []
            with KafkaWire(daemon.host, daemon.port) as leaving_wire:
                assert wire.produce(9, "t", bytes(builder.build())).error_code == 0
                leaving = ShareMember(leaving_wire, "g", "leaving", topic_id)
                assert acquired(leaving.fetch(0)) == [(0, RECORDS - 1, 1)]
                fill_up(disk / "filler")
                stored = 0
                while accept(leaving, stored):  # what is left of the last block of the state's log
                    stored += 1
            assert acquired(staying.fetch(max_wait_ms=60_000)) == [(stored, RECORDS - 1, 2)]
            assert metric(daemon, "barnabas_share_records_released_total") == 0
            assert metric(daemon, "barnabas_share_lock_timeouts_total") == RECORDS - stored

        # Nobody is left: the group's next member begins with what is stored.
        wait_for_metric(daemon, "barnabas_connections_open", 1)
        following = ShareMember(wire, "g", "following", topic_id)
        assert acquired(following.fetch(0, max_wait_ms=60_000)) == [(stored, RECORDS - 1, 1)]
        (disk / "filler").unlink()
        assert accept(following, stored)


def accept(member: ShareMember, offset: int) -> bool:
    """Return whether a record could be accepted."""
    (partition,) = member.acknowledge({0: [(offset, offset, [ACCEPT])]}).responses[0].partitions
    assert partition.error_code in (ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE), partition
    return bool(partition.error_code == ErrorCode.NONE)
