"""Loading of a coordinator's log whose topic is deleted meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.coordinator_log.loading import Loaded, LogLoading
from barnabas.broker.coordinator_log.log import CoordinatorLog
from barnabas.broker.coordinator_log.parts import LogParts
from barnabas.broker.metadata.own_topics import TRANSACTION_STATE
from barnabas.broker.partitions.registry import PartitionRegistry
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.metadata.partition_state import NO_LEADER
from barnabas.protocol.topic_name import TRANSACTION_TOPIC
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.manual_loop import ManualLoop
from tests.support.transactions.real_partitions import RealPartitions


def test_a_partition_is_not_served_before_it_has_a_log_and_is_served_then(tmp_path: Path) -> None:
    """Whether a client creates the topic now, the disk was full, or another broker leads it."""
    loop = ManualLoop()
    states = {number: SimpleNamespace(leader=NO_LEADER if number == 2 else 1) for number in range(3)}
    image = SimpleNamespace(topics={TRANSACTION_TOPIC: SimpleNamespace(partitions=states)})
    store = cast(Any, SimpleNamespace(image=image))
    none = cast(Any, None)
    partitions = RealPartitions(tmp_path, {(TRANSACTION_TOPIC, number): bytes(16) for number in range(3)}, loop)
    registry = PartitionRegistry()
    registry.add_without_log(TopicPartition(TRANSACTION_TOPIC, 1), "no room")
    log = CoordinatorLog(TRANSACTION_STATE, LogParts(registry, store, none, none, none, none, loop))

    assert not LogLoading(log, registry, store, keys_name="ids").begin()
    keys = {log.partition_of(key): key for key in map(str, range(20))}
    for number in range(3):
        with pytest.raises(BrokerError, match=f"{TRANSACTION_TOPIC}-{number}") as refused:
            log.ensure_loaded(keys[number])
        assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert not log.is_complete
        registry.add(TopicPartition(TRANSACTION_TOPIC, number), partitions.all[TRANSACTION_TOPIC, number])
        log.ensure_loaded(keys[number])
    assert log.is_complete
    partitions.close()
    loop.close()


def test_partitions_of_a_new_topic_are_not_loaded_in_place_of_deleted_ones(tmp_path: Path) -> None:
    loop = ManualLoop()
    partitions = RealPartitions(tmp_path, {(TRANSACTION_TOPIC, number): bytes(16) for number in range(2)}, loop)
    image = SimpleNamespace(topics={TRANSACTION_TOPIC: SimpleNamespace(partitions={0: None, 1: None})})
    store = cast(Any, SimpleNamespace(image=image))
    none = cast(Any, None)
    log = CoordinatorLog(TRANSACTION_STATE, LogParts(partitions.registry, store, none, none, none, none, loop))
    loading = LogLoading(log, partitions.registry, store, keys_name="ids")
    for number in range(2):
        log.begin_loading(number)
    loading._to_load = [0, 1]
    read: list[int] = []

    async def read_partition(number: int, _partition: object) -> Loaded:
        read.append(number)
        await asyncio.sleep(0)
        log.forget_topic()
        return Loaded(0)

    loop.run_until_complete(loading.run(read_partition, str))
    assert read == [0]
    partitions.close()
    loop.close()
