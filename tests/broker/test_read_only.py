"""A broker with read.only=true: consumers are served, every change is refused, and no byte on disk changes."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from barnabas import Admin, AdminConfig, Consumer, ConsumerConfig, Producer, ProducerConfig, TopicPartition
from barnabas.broker.coordinator_log.topic import partition_of
from barnabas.broker.metadata.log.batches import encode_change
from barnabas.broker.metadata.log.log_replay import METADATA_DIRECTORY, replay_metadata_directory
from barnabas.clients.errors import RefusedError
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.metadata.partition_state import PartitionDelta
from barnabas.protocol.metadata.records import PartitionChangeRecord
from tests.support.daemon import Daemon, DaemonError, start_daemon, start_fresh_daemon
from tests.support.kafka.kafka_wire import KafkaWire, metadata_request
from tests.support.storage.files import snapshot_of
from tests.support.storage.records import plain
from tests.support.wire import WireClient

RECORDS = 200
FEW = "offsets.topic.num.partitions=2"
PARTITIONS = 3
TP0 = TopicPartition("orders", 0)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data of a killed broker: two log directories, records, a group's offsets, a torn batch at one end."""
    directory = tmp_path_factory.mktemp("killed")
    with start_daemon(directory, f"log.dirs={directory}/data/one,{directory}/data/two", FEW) as daemon:
        with WireClient(daemon.host, daemon.port) as wire:
            wire.create_topic("orders", PARTITIONS)
            for number in range(RECORDS):
                assert wire.produce("orders", plain(1), number % PARTITIONS).error == 0
        asyncio.run(commit_offset(daemon, 17))
        daemon.kill()
    (torn,) = (directory / "data").glob("*/orders-0/*.log")
    with torn.open("ab") as file:
        file.write(bytes(plain(1))[:50])
    return directory / "data"


async def commit_offset(daemon: Daemon, offset: int) -> None:
    async with Consumer(ConsumerConfig(bootstrap=daemon.bootstrap, group="workers")) as consumer:
        await consumer.assign([TP0])
        await consumer.commit({TP0: offset})


class ReadOnly:
    """A copy of the killed broker's directory, and brokers that only read it."""

    def __init__(self, killed: Path, scratch: Path) -> None:
        self.scratch = scratch
        self.start = start_daemon
        self.data = scratch / "data"
        shutil.copytree(killed, self.data)

    def serve(self, *settings: str, dirs: tuple[str, ...] = ("one", "two")) -> Daemon:
        log_dirs = ",".join(str(self.data / each) for each in dirs)
        return self.start(self.scratch / "scratch", f"log.dirs={log_dirs}", "read.only=true", *settings)


@pytest.fixture
def copy(killed: Path, tmp_path: Path) -> ReadOnly:
    return ReadOnly(killed, tmp_path)


@pytest.fixture(scope="module")
def served(killed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A read-only broker for tests without a directory of their own; fails if any file has changed at the end."""
    copy = ReadOnly(killed, tmp_path_factory.mktemp("served"))
    before = snapshot_of(copy.data)
    with copy.serve() as daemon:
        yield daemon
        assert daemon.stop() == 0
    assert snapshot_of(copy.data) == before


async def values_of(daemon: Daemon, *partitions: TopicPartition) -> int:
    """Return the number of records read from start to end of the partitions."""
    async with Consumer(ConsumerConfig(bootstrap=daemon.bootstrap)) as consumer:
        await consumer.assign(list(partitions))
        await consumer.seek_to_beginning(*partitions)
        ends = await consumer.end_offsets(partitions)
        found = 0
        while found < sum(ends.values()):
            polled = await consumer.poll()
            assert polled
            found += len(polled)
        return found


async def test_every_whole_record_is_served_and_no_half_one(served: Daemon) -> None:
    assert await values_of(served, *(TopicPartition("orders", number) for number in range(PARTITIONS))) == RECORDS


async def test_offsets_by_time_and_a_groups_offsets_are_told(served: Daemon) -> None:
    async with Consumer(ConsumerConfig(bootstrap=served.bootstrap, group="workers")) as consumer:
        await consumer.assign([TP0])
        assert await consumer.committed([TP0]) == {TP0: 17}
        assert (await consumer.beginning_offsets([TP0]))[TP0] == 0
    async with Admin(AdminConfig(bootstrap=served.bootstrap)) as admin:
        assert [group.group_id for group in await admin.list_groups()] == ["workers"]


async def test_groups_are_listed_where_other_groups_partition_is_not_here(copy: ReadOnly) -> None:
    missing = f"__consumer_offsets-{1 - partition_of('workers', 2)}"
    for found in copy.data.glob(f"*/{missing}"):
        shutil.rmtree(found)
    with copy.serve() as daemon:
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            assert [group.group_id for group in await admin.list_groups()] == ["workers"]


@pytest.mark.parametrize(
    "change",
    [
        lambda admin: admin.create_topic("new", partitions=1),
        lambda admin: admin.delete_topic("orders"),
        lambda admin: admin.create_partitions("orders", 5),
        lambda admin: admin.alter_configs(topic="orders", set_to={"retention.ms": "5"}),
        lambda admin: admin.delete_group("workers"),
    ],
    ids=["create", "delete", "grow", "alter", "delete-group"],
)
async def test_a_change_by_an_administrator_is_refused(
    served: Daemon, change: Callable[[Admin], Awaitable[object]]
) -> None:
    async with Admin(AdminConfig(bootstrap=served.bootstrap)) as admin:
        with pytest.raises(BrokerError) as refused:
            await change(admin)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION


async def test_records_are_not_deleted(served: Daemon) -> None:
    async with Admin(AdminConfig(bootstrap=served.bootstrap)) as admin:
        refused = (await admin.delete_records({TP0: 5}))[TP0]
    assert isinstance(refused, RefusedError)
    assert refused.code is ErrorCode.POLICY_VIOLATION


async def test_a_commit_of_offsets_is_refused(served: Daemon) -> None:
    with pytest.raises(BrokerError) as refused:
        await commit_offset(served, 18)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION


@pytest.mark.parametrize("idempotent", [True, False])
async def test_a_produce_is_refused(served: Daemon, idempotent: bool) -> None:
    config = ProducerConfig(bootstrap=served.bootstrap, enable_idempotence=idempotent)
    async with Producer(config) as producer:
        with pytest.raises(BrokerError) as refused:
            await producer.send_and_wait("orders", b"one more")
    assert refused.value.code is ErrorCode.POLICY_VIOLATION


def test_a_topic_that_is_asked_for_is_not_made_and_a_member_does_not_join(served: Daemon) -> None:
    with KafkaWire(served.host, served.port) as wire:
        wire.send(metadata_request(9, "nobody.made.it"))
        (unknown,) = wire.receive("metadata", 9).topics
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        joined = wire.call(
            "join_group",
            5,
            group_id="workers",
            session_timeout=timedelta(seconds=10),
            rebalance_timeout=timedelta(seconds=10),
            member_id="",
            group_instance_id=None,
            protocol_type="consumer",
            protocols=(),
        )
        assert joined.error_code == ErrorCode.POLICY_VIOLATION
        member = {"group_id": "workers", "member_id": "somebody"}
        beaten = wire.call("heartbeat", 3, generation_id=1, group_instance_id=None, **member)
        assert beaten.error_code == ErrorCode.POLICY_VIOLATION
        assert wire.call("leave_group", 2, **member).error_code == ErrorCode.POLICY_VIOLATION


async def test_a_directory_without_write_permission_is_served(copy: ReadOnly, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (copy.data, *copy.data.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = snapshot_of(copy.data)
    if os.geteuid() == 0:  # root ignores permissions unless it gives the capability up
        if shutil.which("setpriv") is None:
            pytest.skip("root needs setpriv to be bound by permissions")
        ours = Daemon.command
        drop = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"]
        monkeypatch.setattr(Daemon, "command", lambda self: drop + ours(self))
        copy.start = start_fresh_daemon  # a forked daemon does not run the command
    with pytest.raises(DaemonError):  # the permissions are effective: without read.only the start fails
        copy.start(copy.scratch / "refused", f"log.dirs={copy.data}/one")
    with copy.serve() as daemon:
        assert await values_of(daemon, *(TopicPartition("orders", number) for number in range(PARTITIONS))) == RECORDS
    assert snapshot_of(copy.data) == before


async def test_one_disk_of_two_serves_what_is_on_it_and_names_the_rest_without_a_leader(copy: ReadOnly) -> None:
    second = {int(path.name.rpartition("-")[2]) for path in (copy.data / "two").glob("orders-*")}
    assert 0 < len(second) < PARTITIONS
    shutil.rmtree(copy.data / "one")
    before = snapshot_of(copy.data)
    with copy.serve(dirs=("two",)) as daemon:
        here = [TopicPartition("orders", number) for number in second]
        assert await values_of(daemon, *here) == sum(number % PARTITIONS in second for number in range(RECORDS))
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            described = await admin.describe_topic("orders")
        led = {each.partition for each in described.partitions if each.leader >= 0}
        assert led == second
        assert "no readable metadata log" in daemon.log
    assert snapshot_of(copy.data) == before


async def test_the_node_of_a_cluster_of_several_is_read_though_others_led_its_partitions(copy: ReadOnly) -> None:
    metadata = copy.data / "one" / METADATA_DIRECTORY
    replayed = replay_metadata_directory(metadata)
    topic = replayed.image.topics["orders"]
    records = [
        PartitionChangeRecord(number, topic.topic_id, PartitionDelta(replicas=(1, 2), leader=2)) for number in (0, 1)
    ]
    elsewhere = PartitionChangeRecord(2, topic.topic_id, PartitionDelta(replicas=(2, 3), isr=(2, 3), leader=3))
    shutil.rmtree(next(copy.data.glob("*/orders-2")))
    data, _ = encode_change(
        [*records, elsewhere],
        level=19,
        base_offset=replayed.image.end_offset,
        leader_epoch=replayed.last_epoch,
        timestamp_ms=0,
    )
    with next(metadata.glob("*.log")).open("ab") as file:
        file.write(data)
    with pytest.raises(DaemonError, match="cluster of several brokers"):
        start_daemon(copy.scratch / "refused", f"log.dirs={copy.data}/one,{copy.data}/two")
    before = snapshot_of(copy.data)
    with copy.serve() as daemon:
        here = [TopicPartition("orders", number) for number in (0, 1)]
        assert await values_of(daemon, *here) == sum(number % PARTITIONS in (0, 1) for number in range(RECORDS))
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            described = await admin.describe_topic("orders")
        assert [each.leader for each in described.partitions] == [1, 1, -1]
        assert "1 of" in daemon.log
    assert snapshot_of(copy.data) == before


async def test_a_damaged_metadata_log_does_not_keep_records_from_being_served(copy: ReadOnly) -> None:
    (metadata,) = (copy.data / "one" / METADATA_DIRECTORY).glob("*.log")
    data = bytearray(metadata.read_bytes())
    data[90] ^= 0xFF  # in the first batch; the following batches are undamaged
    metadata.write_bytes(data)
    before = snapshot_of(copy.data)
    with copy.serve() as daemon:
        assert await values_of(daemon, *(TopicPartition("orders", number) for number in range(PARTITIONS))) == RECORDS
        assert "is damaged at position" in daemon.log
    assert snapshot_of(copy.data) == before


def test_a_directory_that_another_broker_has_open_is_refused(copy: ReadOnly, tmp_path: Path) -> None:
    log_dirs = f"log.dirs={copy.data}/one,{copy.data}/two"
    with (
        start_daemon(tmp_path / "writes", log_dirs) as writer,
        pytest.raises(DaemonError, match=f"another broker is using this data directory, pid={writer.pid}"),
    ):
        copy.serve()


def test_a_directory_that_is_not_there_is_refused_and_not_made(copy: ReadOnly) -> None:
    with pytest.raises(DaemonError, match=r"cannot be read: .*three"):
        copy.serve(dirs=("three",))
    assert not (copy.data / "three").exists()
