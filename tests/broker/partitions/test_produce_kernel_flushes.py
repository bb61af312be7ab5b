"""Compiled produces that wait for the group commit, compared with the Python handler."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import cast

import pytest

from barnabas.broker.partitions.partition import Partition
from tests.support.kafka.produce_broker import IDS, PARTITIONS, Broker
from tests.support.kafka.produce_traffic import ProduceTraffic, Sent, SentTopic
from tests.support.manual_loop import ManualLoop
from tests.support.piped_connection import Harness
from tests.support.storage.records import plain

pytest.importorskip("barnabas.broker.handlers.data.kernels._produce")
if os.environ.get("BARNABAS_KERNEL") == "python":
    pytest.skip("the kernels are turned off", allow_module_level=True)


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[tuple[Broker, Broker]]:
    loop = ManualLoop()
    both = Broker(tmp_path / "compiled", loop, is_compiled=True), Broker(tmp_path / "python", loop, is_compiled=False)
    yield both
    for broker in both:
        broker.real.close()
    loop.close()


def request(*partitions: int, version: int = 9) -> Sent:
    return Sent(version, 7, "one", [SentTopic("a", [(each, bytes(plain(1))) for each in partitions])], -1)


def is_usable(sent: Sent) -> bool:
    return sent.spoil is None and sent.acks != 0 and sent.transactional_id is None and 3 <= sent.version <= 13


@pytest.mark.parametrize("seed", range(4))
def test_random_flushed_requests_have_the_same_results(brokers: tuple[Broker, Broker], seed: int) -> None:
    compiled, python = brokers
    chance = random.Random(seed)
    requests = iter([sent for sent in ProduceTraffic(seed, [*IDS, "d"], PARTITIONS).requests(400) if is_usable(sent)])
    while burst := list(islice(requests, chance.choice([1, 2, 5]))):
        if chance.random() < 0.1:
            messages, acks_all = chance.choice([(1, False), (4, False), (4, True), (1 << 62, True), (1 << 62, False)])
            for broker in brokers:
                broker.flush_each(messages, acks_all=acks_all)
        assert compiled.answers(burst) == python.answers(burst)
        while python.flushes.waiting:
            order = chance.randrange(1 << 30)
            done = [broker.complete_flushes(random.Random(order)) for broker in brokers]
            assert done[0] == done[1]
            assert compiled.answers([]) == python.answers([])
        assert compiled.flushes.waiting == []
    assert compiled.state() == python.state()


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_a_response_waits_for_its_last_flush_and_leaves_nothing_to_the_dispatcher(
    brokers: tuple[Broker, Broker], version: int
) -> None:
    broker = brokers[0]
    broker.answers([request(0, 1)] * 2)
    broker.flush_each(1)
    broker.forbid_dispatcher()
    assert broker.answers([request(0, 1, version=version)] * 2) == b""
    (_, _, first), (_, _, second) = broker.flushes.waiting
    broker.flushes.waiting = []
    first(None)
    assert broker.answers([]) == b""
    second(None)
    assert broker.answers([])
    assert len(broker.flushes.waiting) == 2
    assert sum(broker.probes.api("produce").counts) == 3


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_flush_acks_all_lets_only_acks_all_wait_and_needs_no_dispatcher(
    brokers: tuple[Broker, Broker], acks: int
) -> None:
    broker = brokers[0]
    broker.answers([request(0)] * 2)
    broker.flush_each(1 << 62, acks_all=True)
    broker.forbid_dispatcher()
    answered = broker.answers([replace(request(0), acks=acks)])
    assert len(broker.flushes.waiting) == (acks == -1)
    assert bool(answered) == (acks == 1)


def test_a_repeated_batch_waits_for_the_sync_that_its_first_answer_waits_for(brokers: tuple[Broker, Broker]) -> None:
    for broker in brokers:
        broker.flush_each(1 << 62, acks_all=True)
        batch = bytes(plain(1, producer_id=4, producer_epoch=0, base_sequence=0))
        sent = Sent(9, 7, "one", [SentTopic("a", [(0, batch)])], -1)
        assert broker.answers([sent]) == b""
        broker.harness.connection.connection_lost(None)
        broker.harness = Harness(broker.harness.connection._registry.dispatcher.serve)
        assert broker.answers([sent]) == b""
        assert [offset for _, offset, _ in broker.flushes.waiting] == [1, 1]


def test_a_client_that_disconnects_before_the_flush_is_not_answered(brokers: tuple[Broker, Broker]) -> None:
    broker = brokers[0]
    broker.answers([request(0)] * 2)
    broker.flush_each(1)
    assert broker.answers([request(0)]) == b""
    broker.harness.connection.connection_lost(None)
    broker.complete_flushes(random.Random(1))
    assert broker.harness.pipe.written == b""
    assert cast("Partition", broker.partitions.get("a", 0)).log.core.log_end_offset == 3
