"""A consumer with a group commits its positions, and continues at them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas import ClientConfigError, ClientError, Consumer, ConsumerConfig, Producer, ProducerConfig, TopicPartition
from tests.support.daemon import Daemon, start_daemon

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("daemon"), "num.partitions=2") as running:
        yield running


@pytest.fixture
async def bootstrap(daemon: Daemon) -> str:
    async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
        for number in range(10):
            await producer.send("orders", b"%d" % number, partition=0)
    return daemon.bootstrap


def consumer(bootstrap: str, group: str | None) -> Consumer:
    return Consumer(ConsumerConfig(bootstrap=bootstrap, group=group, offset_reset="earliest"))


async def test_a_consumer_starts_at_its_groups_committed_offset(bootstrap: str) -> None:
    async with consumer(bootstrap, "goes-on") as first:
        await first.assign([FIRST, SECOND])
        offsets = [(await anext(first)).offset for _ in range(4)]
        assert offsets == [0, 1, 2, 3]
        assert (await first.commit())[FIRST] == 4
    async with consumer(bootstrap, "goes-on") as second:
        await second.assign([FIRST])
        assert await second.position(FIRST) == 4
        assert (await anext(second)).offset == 4
    async with consumer(bootstrap, "another") as other:
        await other.assign([FIRST])
        assert (await anext(other)).offset == 0


async def test_only_polled_records_are_committed(bootstrap: str) -> None:
    async with consumer(bootstrap, "polled") as reading:
        await reading.assign([FIRST])
        assert await reading.committed([FIRST]) == {}
        assert await reading.commit() == {}
        assert len(await reading.poll(3)) == 3
        assert await reading.commit() == {FIRST: 3}
        assert await reading.commit({SECOND: 0}) == {SECOND: 0}
        assert await reading.committed([FIRST, SECOND]) == {FIRST: 3, SECOND: 0}


async def test_a_seek_overrides_the_committed_offset(bootstrap: str) -> None:
    async with consumer(bootstrap, "sought") as reading:
        await reading.commit({FIRST: 7})
        await reading.assign([FIRST])
        reading.seek(FIRST, 2)
        assert (await anext(reading)).offset == 2


async def test_without_a_group_nothing_is_committed(bootstrap: str) -> None:
    async with consumer(bootstrap, None) as reading:
        await reading.assign([FIRST])
        with pytest.raises(ClientError, match="no group"):
            await reading.commit()


@pytest.mark.parametrize("group", ["", 7])
def test_a_group_without_a_name_is_refused(group: object) -> None:
    with pytest.raises(ClientConfigError, match="group must be a name"):
        ConsumerConfig(group=group)  # type: ignore[arg-type]
