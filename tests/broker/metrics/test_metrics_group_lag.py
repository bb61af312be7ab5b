"""The lag of groups in the metrics of a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas import Admin, AdminConfig, Producer, ProducerConfig, TopicPartition
from barnabas.clients.group_offsets import CommittedOffset
from tests.support.daemon import Daemon, start_daemon
from tests.support.metrics import metric

LAG = 'barnabas_group_lag_records{group="billing",partition="%d",topic="orders"}'
COMMITTED = 'barnabas_group_committed_offset{group="billing",partition="%d",topic="orders"}'


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with start_daemon(tmp_path, "metrics.group.lag.enable=true") as running:
        yield running


async def fill_and_commit(daemon: Daemon) -> None:
    """Produce ten records to partition 0 of orders and none to 1; commit offset 4 for billing."""
    async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
        await admin.create_topic("orders", partitions=3)
        async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
            for _ in range(10):
                await producer.send("orders", b"x", partition=0)
        offsets = {TopicPartition("orders", 0): CommittedOffset(4), TopicPartition("orders", 1): CommittedOffset(0)}
        await admin.set_group_offsets("billing", offsets)


async def test_a_groups_lag_is_what_it_has_still_to_read_in_each_partition(daemon: Daemon) -> None:
    await fill_and_commit(daemon)
    assert (metric(daemon, LAG % 0), metric(daemon, COMMITTED % 0)) == (6, 4)
    assert (metric(daemon, LAG % 1), metric(daemon, COMMITTED % 1)) == (0, 0)
    assert metric(daemon, LAG % 2) is None
    async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
        await admin.set_group_offsets("billing", {TopicPartition("orders", 0): CommittedOffset(11)})
        assert metric(daemon, LAG % 0) == 0  # the committed offset is beyond the log end: the lag is 0, not negative
        await admin.delete_group("billing")
        assert metric(daemon, LAG % 0) is None


async def test_lag_is_there_after_a_restart_and_goes_with_the_topic(daemon: Daemon) -> None:
    await fill_and_commit(daemon)
    daemon.restart(clean=False)
    async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
        assert await admin.group_offsets("billing")  # responds once the groups are loaded
        assert metric(daemon, LAG % 0) == 6
        await admin.delete_topic("orders")
    assert metric(daemon, LAG % 0) is None


async def test_groups_are_left_out_unless_the_switch_asks_for_them(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon:
        await fill_and_commit(daemon)
        assert metric(daemon, LAG % 0) is None
        assert metric(daemon, "barnabas_groups_empty") is not None
