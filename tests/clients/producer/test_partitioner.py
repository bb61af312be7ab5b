from __future__ import annotations

import itertools

import pytest

from barnabas.clients.producer.partitioner import StickyPartition, partition_for_key


@pytest.mark.parametrize(
    ("key", "java_hash"),
    [  # org.apache.kafka.common.utils.UtilsTest.testMurmur2
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_a_key_goes_to_the_partition_that_javas_producer_chooses(key: bytes, java_hash: int) -> None:
    for count in (1, 2, 7, 1000):
        assert partition_for_key(key, count) == (java_hash & 0x7FFFFFFF) % count
        assert partition_for_key(memoryview(key), count) == partition_for_key(bytearray(key), count)


def test_without_a_key_records_stay_on_one_partition_for_a_batch_of_bytes_and_then_move() -> None:
    sticky = StickyPartition(1000)
    leaders = [1, 1, 1]
    stays = [[sticky.choose(100, leaders) for _ in range(10)] for _ in range(50)]
    assert all(len(set(stay)) == 1 for stay in stays)
    assert all(before[0] != after[0] for before, after in itertools.pairwise(stays))
    assert {stay[0] for stay in stays} == {0, 1, 2}


def test_without_a_key_partitions_without_a_leader_are_avoided() -> None:
    sticky = StickyPartition(1)
    assert {sticky.choose(10, [-1, 1, -1]) for _ in range(20)} == {1}
    assert sticky.choose(10, [-1, -1]) in (0, 1)  # nobody leads: any will have to wait


def test_a_partition_that_loses_its_leader_is_left_immediately() -> None:
    sticky = StickyPartition(1000)
    first = sticky.choose(1, [1, 1])
    leaders = [1, 1]
    leaders[first] = -1
    assert sticky.choose(1, leaders) == 1 - first
