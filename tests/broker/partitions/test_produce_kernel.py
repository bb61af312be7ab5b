"""Plain Produce requests of one connection have the same results with the compiled handler as without it."""

from __future__ import annotations

import gc
import os
import random
import struct
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgpack
import pytest

from barnabas.broker.partitions.partition import Partition
from barnabas.broker.storage.log.append import TransactionEnd
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.end_marker import EndMarker
from tests.support.kafka.produce_broker import IDS, PARTITIONS, Broker
from tests.support.kafka.produce_traffic import ProduceTraffic, Sent, SentTopic
from tests.support.manual_loop import ManualLoop
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


def is_usable(sent: Sent) -> bool:
    """Return whether a request neither closes the connection nor needs the transaction coordinator."""
    return sent.spoil is None and sent.acks != 0 and sent.transactional_id is None and 3 <= sent.version <= 13


def plain_request(*partitions: int, acks: int = 1, topic: str = "a", version: int = 9) -> Sent:
    return Sent(version, 7, "one", [SentTopic(topic, [(each, bytes(plain(1))) for each in partitions])], acks=acks)


def test_a_native_request_among_others_is_answered_in_its_turn(brokers: tuple[Broker, Broker]) -> None:
    batch = bytes(plain(1))
    header = msgpack.packb([0, 0, 9, "native", {"acks": 1, "topics": [["a", [[0, len(batch)]]]]}])
    frame = struct.pack(">iI", 4 + len(header) + len(batch), 0xB7 << 24 | len(header)) + header + batch
    native: Any = SimpleNamespace(frame=lambda _: frame)
    compiled, python = brokers
    burst = [plain_request(0), native, plain_request(0), native, native]

    answers = compiled.answers(burst)

    assert answers == python.answers(burst)
    assert [answers.count(each) for each in (b"\xb7\x00\x00", b"\xa6topics")] == [3, 3]
    assert compiled.state() == python.state()


@pytest.mark.parametrize("seed", range(3))
def test_random_pipelined_requests_have_the_same_results(brokers: tuple[Broker, Broker], seed: int) -> None:
    compiled, python = brokers
    chance = random.Random(seed)
    requests = iter([sent for sent in ProduceTraffic(seed, [*IDS, "d"], PARTITIONS).requests(600) if is_usable(sent)])
    while burst := list(islice(requests, chance.choice([1, 2, 8]))):
        assert compiled.answers(burst) == python.answers(burst)
        clients = [broker.harness.connection.session.client_id for broker in brokers]
        assert clients == [burst[-1].client_id] * 2
    assert compiled.state() == python.state()


class Transactions:
    """Random requests of two transactional producers; some are spoilt, repeated, or out of order."""

    def __init__(self, seed: int, broker: Broker) -> None:
        self.chance = random.Random(seed)
        self._broker = broker
        self._sequences: dict[tuple[str, int, int], int] = {}

    def burst(self) -> list[Sent]:
        """Return requests whose sequences follow those that the broker has stored."""
        self._sequences.clear()
        return [self._request() for _ in range(self.chance.choice([1, 1, 2, 5]))]

    def _request(self) -> Sent:
        chance = self.chance
        producer_id = chance.choice([5, 6])
        topics = []
        for name in chance.sample(["a", "b"], chance.choice([1, 2])):
            numbers = chance.sample(range(PARTITIONS + (chance.random() < 0.05)), chance.choice([1, 2, 3]))
            topics.append(SentTopic(name, [(number, self._records(name, number, producer_id)) for number in numbers]))
        transactional_id = chance.choice([*["id"] * 30, "", None])
        return Sent(chance.choice([3, 8, 9, 10, 11, 12, 13]), 7, "one", topics, -1, transactional_id)

    def _records(self, topic: str, number: int, producer_id: int) -> bytes:
        chance = self.chance
        if chance.random() < 0.02:
            producer_id = 7
        key = topic, number, producer_id
        partition = self._broker.partitions.get(topic, number)
        state = None if partition is None else partition.producer(producer_id)
        sequence = self._sequences.get(key, 0 if state is None else state.last_sequence + 1)
        if chance.random() < 0.03:
            sequence = max(0, sequence + chance.choice([-1, 1]))
        count = chance.choice([1, 3])
        self._sequences[key] = sequence + count
        return bytes(
            plain(
                count,
                is_transactional=chance.random() > 0.02,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=sequence,
            )
        )


@pytest.mark.parametrize("seed", range(3))
def test_random_transactions_have_the_same_results_and_admissions(brokers: tuple[Broker, Broker], seed: int) -> None:
    compiled, python = brokers
    traffic = Transactions(seed, python)
    for _ in range(120):
        burst = traffic.burst()
        assert compiled.answers(burst) == python.answers(burst)
        if traffic.chance.random() < 0.2:
            end = TransactionEnd(traffic.chance.choice([5, 6]), 0, EndMarker(is_commit=True, coordinator_epoch=0), 1)
            for broker in brokers:
                for topic in ("a", "b"):
                    for number in range(PARTITIONS):
                        cast("Partition", broker.partitions.get(topic, number)).append_marker(end)
    assert compiled.coordinator.calls == python.coordinator.calls
    assert compiled.state() == python.state()


def transactional_request(sequence: int, *partitions: int) -> Sent:
    batches: list[tuple[int, bytes | None]] = []
    for each in partitions:
        records = plain(1, is_transactional=True, producer_id=5, producer_epoch=0, base_sequence=sequence)
        batches.append((each, bytes(records)))
    return Sent(12, 7, "one", [SentTopic("a", batches)], -1, "id")


def test_a_mirrored_partition_refuses_batches_and_the_others_of_the_request_take_theirs(
    brokers: tuple[Broker, Broker],
) -> None:
    mirrored = [cast("Partition", broker.partitions.get("a", 1)) for broker in brokers]
    requests = [plain_request(0, 1, 2), plain_request(1), transactional_request(0, 0, 1)]
    for broker in brokers:
        broker.answers([plain_request(0, 1, 2)])  # the first batch of a log is left to Python
    for partition in mirrored:
        partition.set_mirror("east")
    compiled, python = (broker.answers(requests) for broker in brokers)
    assert compiled == python
    assert b"copied by mirror 'east'" in compiled
    assert [partition.log.log_end_offset for partition in mirrored] == [1, 1]
    assert [broker.partitions.get("a", 0).log.log_end_offset for broker in brokers] == [3, 3]  # type: ignore[union-attr]
    for partition in mirrored:
        partition.set_mirror(None)
    compiled, python = (broker.answers([plain_request(1)]) for broker in brokers)
    assert compiled == python
    assert [partition.log.log_end_offset for partition in mirrored] == [2, 2]


@pytest.mark.parametrize("access", [None, SimpleNamespace(write_topic={"a": True}, write_transaction={"id": True})])
def test_an_admitted_request_leaves_nothing_to_the_dispatcher(brokers: tuple[Broker, Broker], access: object) -> None:
    broker = brokers[0]
    broker.coordinator.admit = lambda *_, **__: {}  # type: ignore[method-assign]
    assert broker.answers([transactional_request(0, 0, 1)])
    broker.harness.connection.session.access = cast("Any", access)
    broker.forbid_dispatcher()
    assert broker.answers([transactional_request(1, 0, 1)])
    assert broker.partitions.get("a", 1).log.core.log_end_offset == 2  # type: ignore[union-attr]


def test_a_client_that_may_not_write_in_the_transaction_is_refused(brokers: tuple[Broker, Broker]) -> None:
    for broker in brokers:
        broker.coordinator.admit = lambda *_, **__: {}  # type: ignore[method-assign]
        assert broker.answers([transactional_request(0, 0)])
        broker.harness.connection.session.access = cast(
            "Any",
            SimpleNamespace(write_topic={"a": True}, write_transaction={"id": False}, allows=lambda *_, **__: False),
        )
    compiled, python = brokers
    assert compiled.answers([transactional_request(1, 0)]) == python.answers([transactional_request(1, 0)])
    assert compiled.partitions.get("a", 0).log.core.log_end_offset == 1  # type: ignore[union-attr]
    assert compiled.state() == python.state()


def test_a_partition_that_is_not_plain_does_not_repeat_those_before_it(brokers: tuple[Broker, Broker]) -> None:
    compiled, python = brokers
    for broker in brokers:
        broker.answers([plain_request(0), plain_request(1)])
        assert broker.partitions.get("a", 2).log.core.log_end_offset == 0  # type: ignore[union-attr]
    # The first append of partition 2 begins its leader epoch, which is left to the Python path.
    request = [plain_request(0, 2, 1), plain_request(0, 1)]
    assert compiled.answers(request) == python.answers(request)
    assert compiled.state() == python.state()


def test_decisions_of_the_authorizer_hold_after_partitions_are_warm(brokers: tuple[Broker, Broker]) -> None:
    for broker in brokers:
        assert broker.answers([plain_request(0), plain_request(0)])
        broker.harness.connection.session.access = cast(
            "Any", SimpleNamespace(write_topic={"a": False}, allows=lambda *_, **__: False)
        )
    compiled, python = brokers
    assert compiled.answers([plain_request(0)]) == python.answers([plain_request(0)])
    assert compiled.probes.api("produce").errors == {"topic_authorization_failed": 1}
    assert compiled.state() == python.state()


def test_a_remembered_grant_leaves_nothing_to_the_dispatcher(brokers: tuple[Broker, Broker]) -> None:
    broker = brokers[0]
    assert broker.answers([plain_request(0), plain_request(0)])
    broker.harness.connection.session.access = cast("Any", SimpleNamespace(write_topic={"a": True}))
    broker.forbid_dispatcher()
    assert broker.answers([plain_request(0)])


def test_acks_all_is_refused_when_the_topic_needs_more_replicas(brokers: tuple[Broker, Broker]) -> None:
    from dataclasses import replace

    compiled, python = brokers
    for broker in brokers:
        assert broker.answers([plain_request(0), plain_request(0)])
        log: Any = broker.partitions.get("a", 0).writable_log  # type: ignore[union-attr]
        log.update_config(replace(log.core.config, min_insync_replicas=2))
    burst = [plain_request(0, acks=-1), plain_request(0), plain_request(0, acks=-1)]
    assert compiled.answers(burst) == python.answers(burst)
    assert compiled.probes.api("produce").errors == {"not_enough_replicas": 2}
    assert compiled.state() == python.state()


def test_ten_thousand_requests_keep_no_reference(brokers: tuple[Broker, Broker]) -> None:
    broker = brokers[0]
    burst = [plain_request(0, 0), plain_request(0, version=13)] * 50
    ensure_no_reference_is_kept(broker, lambda: broker.answers(burst), 100)


def test_ten_thousand_transactional_batches_keep_no_reference(brokers: tuple[Broker, Broker]) -> None:
    broker = brokers[0]
    sequences = iter(range(1_000_000))
    refusals: dict[tuple[str, int], ErrorCode] = {}
    broker.coordinator.admit = lambda *_, **__: dict(refusals)  # type: ignore[method-assign]

    def burst() -> None:
        refusals.clear()
        assert broker.answers([transactional_request(next(sequences), 0, 1) for _ in range(9)])
        refusals["a", 2] = ErrorCode.CONCURRENT_TRANSACTIONS
        assert broker.answers([transactional_request(next(sequences), 0, 1, 2)])

    ensure_no_reference_is_kept(broker, burst, 500)


def ensure_no_reference_is_kept(broker: Broker, burst: Callable[[], object], times: int) -> None:
    """Serve a burst many times and compare the counts of references and of objects."""
    held = broker.harness.connection.session, broker.partitions.get("a", 0), broker.partitions.by_name
    burst()
    gc.collect()
    objects = len(gc.get_objects())
    kept = [sys.getrefcount(each) for each in held]
    for _ in range(times):
        burst()
    gc.collect()
    assert [sys.getrefcount(each) for each in held] == kept
    # Other tests' threads create and free objects meanwhile; a leak has 10,000.
    assert len(gc.get_objects()) < objects + 1_000
