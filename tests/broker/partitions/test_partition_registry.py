"""The registry's maps for the kernels follow the partitions that are served."""

from __future__ import annotations

from pathlib import Path

from barnabas.broker.partitions.registry import PartitionRegistry
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.manual_loop import ManualLoop
from tests.support.transactions.real_partitions import RealPartitions

ID = b"i" * 16


def test_maps_by_name_and_id_hold_partitions_by_number_and_forget_topics_without_any(tmp_path: Path) -> None:
    real = RealPartitions(tmp_path, {TopicPartition("t", number): ID for number in range(3)}, loop := ManualLoop())
    first, second, third = real.all.values()
    registry = PartitionRegistry()
    registry.add(TopicPartition("t", 2), third)
    assert registry.by_name == {b"t": [None, None, third]}
    registry.add(TopicPartition("t", 0), first)
    registry.add(TopicPartition("t", 1), second)
    registry.remove(TopicPartition("t", 1))
    assert registry.by_name == {b"t": [first, None, third]}
    assert registry.by_id == {ID: [first, None, third]}
    registry.remove(TopicPartition("t", 0))
    registry.remove(TopicPartition("t", 2))
    assert (registry.by_name, registry.by_id) == ({}, {})
    real.close()
    loop.close()


def test_an_id_finds_only_its_own_partitions_when_a_topic_is_created_again(tmp_path: Path) -> None:
    new_id = b"n" * 16
    ids: dict[tuple[str, int], bytes] = {TopicPartition("t", 0): ID, TopicPartition("t", 1): ID}
    real = RealPartitions(tmp_path / "old", ids, loop := ManualLoop())
    again = RealPartitions(tmp_path / "new", dict.fromkeys(ids, new_id), loop)
    old, old_second = real.all.values()
    new, new_second = again.all.values()
    registry = PartitionRegistry()
    registry.add(TopicPartition("t", 0), old)
    registry.add(TopicPartition("t", 1), old_second)
    registry.add(TopicPartition("t", 0), new)
    assert registry.by_id == {ID: [None, old_second], new_id: [new]}
    registry.remove(TopicPartition("t", 1))
    assert registry.by_id == {new_id: [new]}
    registry.add(TopicPartition("t", 1), new_second)
    assert (registry.by_name, registry.by_id) == ({b"t": [new, new_second]}, {new_id: [new, new_second]})
    registry.remove(TopicPartition("t", 0))
    registry.remove(TopicPartition("t", 1))
    assert (registry.by_name, registry.by_id) == ({}, {})
    real.close()
    again.close()
    loop.close()
